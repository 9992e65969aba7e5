"""What pods and nodes use now, beside what they may use, from the metrics API."""

from __future__ import annotations

from typing import Any

from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets.kubernetes import tables
from toolsets.kubernetes.api import ApiError, Cluster, Listing
from toolsets.kubernetes.fields import Object, at, cores, mebibytes, name_of, namespace_of, quantity, text
from toolsets.kubernetes.grammar import stamp
from toolsets.kubernetes.kinds import Kind, well_known

METRICS = {
    "Pod": Kind(name="PodMetrics", plural="pods", group="metrics.k8s.io", version="v1beta1"),
    "Node": Kind(name="NodeMetrics", plural="nodes", group="metrics.k8s.io", version="v1beta1", namespaced=False),
}


def read(cluster: Cluster, what: str, namespace: str, selector: str, deadline: Deadline) -> Listing:
    """Raises `ToolError`, also for a cluster without the metrics API."""
    try:
        return cluster.list(METRICS[what], namespace, deadline, selector=selector)
    except ApiError as error:
        if error.status in (404, 503):
            raise ToolError(
                f"the cluster has no metrics API (metrics-server is not installed or not up: {error}); "
                "use a metrics toolset instead, and describe for requests and limits"
            ) from error
        raise


def pods_table(cluster: Cluster, usage: Listing, namespace: str, selector: str, deadline: Deadline) -> str:
    """Containers by memory, the largest first."""
    limits = _limits(cluster, namespace, selector, deadline)
    rows: list[tuple[float, list[Any]]] = []
    for pod in usage.items:
        for container in at(pod, "containers", []):
            name = text(container, "name")
            allowed = limits.get((namespace_of(pod), name_of(pod), name), {})
            cpu, memory = quantity(at(container, "usage.cpu")), quantity(at(container, "usage.memory"))
            most = [_share(cpu, allowed.get("cpu"), cores), _share(memory, allowed.get("memory"), mebibytes)]
            row = [namespace_of(pod), name_of(pod), name, cores(cpu), most[0], mebibytes(memory), most[1]]
            rows.append((memory, row))
    rows.sort(key=lambda row: -row[0])
    headers = ("NAMESPACE", "POD", "CONTAINER", "CPU", "CPU LIMIT", "MEMORY", "MEMORY LIMIT")
    return f"{_measured(usage)}\n{tables.render(headers, [row for _, row in rows])}"


def nodes_table(cluster: Cluster, usage: Listing, deadline: Deadline) -> str:
    """Nodes by memory, the largest first."""
    try:
        nodes = cluster.list(well_known("Node"), "", deadline).items
    except ToolError:
        nodes = []
    allocatable = {name_of(node): at(node, "status.allocatable", {}) for node in nodes}
    rows: list[tuple[float, list[Any]]] = []
    for node in usage.items:
        room = allocatable.get(name_of(node), {})
        cpu, memory = quantity(at(node, "usage.cpu")), quantity(at(node, "usage.memory"))
        most = [_share(cpu, room.get("cpu"), cores), _share(memory, room.get("memory"), mebibytes)]
        rows.append((memory, [name_of(node), cores(cpu), most[0], mebibytes(memory), most[1]]))
    rows.sort(key=lambda row: -row[0])
    headers = ("NODE", "CPU", "CPU ALLOCATABLE", "MEMORY", "MEMORY ALLOCATABLE")
    return f"{_measured(usage)}\n{tables.render(headers, [row for _, row in rows])}"


def _limits(cluster: Cluster, namespace: str, selector: str, deadline: Deadline) -> dict[tuple[str, str, str], Object]:
    """Limits by namespace, pod and container; none when pods can't be read."""
    try:
        pods = cluster.list(well_known("Pod"), namespace, deadline, selector=selector).items
    except ToolError:
        return {}
    return {
        (namespace_of(pod), name_of(pod), text(one, "name")): at(one, "resources.limits", {})
        for pod in pods
        for one in at(pod, "spec.containers", [])
    }


def _share(used: float, most: object, shown: Any) -> str:
    """`512Mi (97%)`."""
    amount = quantity(most)
    return f"{shown(amount)} ({used / amount:.0%})" if amount else ""


def _measured(usage: Listing) -> str:
    times = [stamp(item.get("timestamp")) for item in usage.items if item.get("timestamp")]
    return f"measured at {max(times)}" if times else "measured now"
