"""Prometheus series from the cluster model: kube-state-metrics, cAdvisor, node exporter, blackbox, HTTP servers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deploy.demo.cluster import Claim, Node, Part, Pod, Traffic, Workload
from deploy.demo.promql.evaluator import Series
from deploy.demo.shapes import Points, Shape, between, capped, counted, levels, shaken, steady

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
PERIODS_A_SECOND = 10.0  # CFS periods of 100 ms
HELP: dict[str, tuple[str, str]] = {
    "up": ("gauge", "1 when the last scrape succeeded."),
    "kube_pod_container_status_restarts_total": ("counter", "Restarts of a container."),
    "kube_pod_container_status_ready": ("gauge", "Whether the container passes its readiness check."),
    "kube_pod_container_status_waiting_reason": ("gauge", "Why a container waits."),
    "kube_pod_container_status_last_terminated_reason": ("gauge", "Why a container last ended."),
    "kube_pod_container_resource_limits": ("gauge", "Limits of a container."),
    "kube_pod_container_resource_requests": ("gauge", "Requests of a container."),
    "kube_pod_info": ("gauge", "Where a pod runs."),
    "kube_pod_status_phase": ("gauge", "The phase of a pod."),
    "kube_deployment_spec_replicas": ("gauge", "Desired replicas."),
    "kube_deployment_status_replicas_available": ("gauge", "Available replicas."),
    "kube_deployment_status_replicas_unavailable": ("gauge", "Replicas that are missing."),
    "kube_deployment_metadata_generation": ("gauge", "Generation of the desired state."),
    "kube_replicaset_created": ("gauge", "When a replica set was made, epoch seconds."),
    "kube_node_status_condition": ("gauge", "Conditions of a node."),
    "container_memory_working_set_bytes": ("gauge", "Memory that can't be reclaimed."),
    "container_cpu_usage_seconds_total": ("counter", "CPU time used."),
    "container_cpu_cfs_periods_total": ("counter", "CPU periods the container ran in."),
    "container_cpu_cfs_throttled_periods_total": ("counter", "CPU periods in which the container was held back."),
    "node_cpu_seconds_total": ("counter", "CPU time by mode."),
    "node_memory_MemTotal_bytes": ("gauge", "Memory of the node."),
    "node_filesystem_size_bytes": ("gauge", "Size of a file system."),
    "node_filesystem_avail_bytes": ("gauge", "Space left in a file system."),
    "kubelet_volume_stats_capacity_bytes": ("gauge", "Size of a volume."),
    "kubelet_volume_stats_available_bytes": ("gauge", "Space left in a volume."),
    "http_requests_total": ("counter", "Requests by status code."),
    "http_request_duration_seconds_bucket": ("counter", "Requests by duration."),
    "http_request_duration_seconds_sum": ("counter", "Seconds spent on requests."),
    "http_request_duration_seconds_count": ("counter", "Requests."),
}


def everything(cluster: Part) -> list[Series]:
    found: list[Series] = []
    for node in cluster.nodes:
        found += _node(node)
    for workload in cluster.workloads:
        found += _workload(workload)
    for claim in cluster.claims:
        found += _claim(claim)
    found += [Series({"__name__": one.name, **one.labels}, one.value) for one in cluster.gauges]
    return found


def metadata(cluster: Part) -> dict[str, tuple[str, str]]:
    """Type and help by metric name."""
    return HELP | {one.name: (one.kind, one.help) for one in cluster.gauges}


def _one(name: str, shape: Shape, **labels: str) -> Series:
    return Series({"__name__": name, **labels}, shape)


def _workload(workload: Workload) -> Iterator[Series]:
    for pod in workload.pods:
        yield from _pod(workload, pod)
    if workload.kind == "Deployment":
        yield from _deployment(workload)
    if workload.traffic is not None:
        yield from _http(workload, workload.traffic)


def _deployment(workload: Workload) -> Iterator[Series]:
    where = {"namespace": workload.namespace, "deployment": workload.name, "job": "kube-state-metrics"}

    def available(t: float) -> float:
        return float(sum(_is_ready(pod, t) for pod in workload.pods))

    generation = tuple((revision.at, float(revision.number)) for revision in workload.revisions)
    yield _one("kube_deployment_spec_replicas", steady(workload.replicas), **where)
    yield _one("kube_deployment_status_replicas_available", available, **where)
    yield _one(
        "kube_deployment_status_replicas_unavailable", lambda t: max(0.0, workload.replicas - available(t)), **where
    )
    yield _one("kube_deployment_metadata_generation", levels(generation), **where)
    for revision in workload.revisions:
        yield _one(
            "kube_replicaset_created",
            between(steady(revision.at), revision.at),
            namespace=workload.namespace,
            replicaset=f"{workload.name}-{revision.hash}",
            job="kube-state-metrics",
        )


def _is_ready(pod: Pod, t: float) -> bool:
    if t < pod.created or (pod.deleted is not None and t >= pod.deleted):
        return False
    runs = any(one.start <= t and (one.end is None or t < one.end) for one in pod.instances)
    return runs and (pod.unready_since is None or t < pod.unready_since)


def _pod(workload: Workload, pod: Pod) -> Iterator[Series]:
    container = workload.revision(pod).container
    name = workload.pod_name(pod)
    state = {"namespace": workload.namespace, "pod": name, "job": "kube-state-metrics"}
    inner = {**state, "container": container.name}

    def there(shape: Shape) -> Shape:
        return between(shape, pod.created, pod.deleted)

    yield _one("kube_pod_info", there(steady(1)), **state, node=pod.node, pod_ip=pod.ip)
    phase = "Running" if pod.instances else "Pending"
    for one in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
        yield _one("kube_pod_status_phase", there(steady(float(one == phase))), **state, phase=one)
    yield _one("kube_pod_container_status_restarts_total", there(_restarts(pod)), **inner)
    yield _one("kube_pod_container_status_ready", there(lambda t: float(_is_ready(pod, t))), **inner)
    yield from _limits(workload, pod, inner)
    if pod.waiting:
        ended = [one.end for one in pod.instances if one.end is not None]
        shape = between(steady(1), ended[0] if ended else pod.created, pod.deleted)
        yield _one("kube_pod_container_status_waiting_reason", shape, **inner, reason=pod.waiting)
    yield from _last_ends(pod, inner)
    if pod.instances:
        yield from _usage(workload, pod)


def _limits(workload: Workload, pod: Pod, inner: dict[str, str]) -> Iterator[Series]:
    container = workload.revision(pod).container
    limits = {"memory": ("byte", container.memory_limit), "cpu": ("core", container.cpu_limit)}
    requests = {"memory": ("byte", container.memory_request), "cpu": ("core", container.cpu_request)}
    for suffix, table in (("limits", limits), ("requests", requests)):
        for resource, (unit, amount) in table.items():
            if amount is not None:
                shape = between(steady(amount), pod.created, pod.deleted)
                labels = {**inner, "node": pod.node, "resource": resource, "unit": unit}
                yield _one(f"kube_pod_container_resource_{suffix}", shape, **labels)


def _restarts(pod: Pod) -> Shape:
    starts = [one.start for one in pod.instances[1:]]
    return lambda t: float(pod.earlier_restarts + sum(start <= t for start in starts))


def _last_ends(pod: Pod, inner: dict[str, str]) -> Iterator[Series]:
    ended = [one for one in pod.instances if one.end is not None]
    for reason in sorted({one.reason for one in ended}):
        first = min(one.end for one in ended if one.reason == reason and one.end is not None)
        shape = between(steady(1), first, pod.deleted)
        yield _one("kube_pod_container_status_last_terminated_reason", shape, **inner, reason=reason)


def _usage(workload: Workload, pod: Pod) -> Iterator[Series]:
    name = workload.pod_name(pod)
    labels = {
        "namespace": workload.namespace,
        "pod": name,
        "container": workload.revision(pod).container.name,
        "node": pod.node,
        "job": "kubelet",
    }
    origin = pod.instances[0].start

    def while_running(t: float) -> float | None:
        runs = any(one.start <= t and (one.end is None or t < one.end) for one in pod.instances)
        return pod.memory(t) if runs and (pod.deleted is None or t < pod.deleted) else None

    limit = workload.revision(pod).container.memory_limit
    yield _one("container_memory_working_set_bytes", capped(shaken(while_running, 0.01, name), limit), **labels)
    cpu = between(counted(pod.cpu, origin), origin, pod.deleted)
    yield _one("container_cpu_usage_seconds_total", cpu, **labels)
    if workload.revision(pod).container.cpu_limit is not None:
        held = tuple((at, share * PERIODS_A_SECOND) for at, share in pod.throttled)
        periods = between(counted(((0.0, PERIODS_A_SECOND),), origin), origin, pod.deleted)
        yield _one("container_cpu_cfs_periods_total", periods, **labels)
        throttled = between(counted(held, origin), origin, pod.deleted)
        yield _one("container_cpu_cfs_throttled_periods_total", throttled, **labels)
    serves = between(lambda t: float(while_running(t) is not None), pod.created, pod.deleted)
    port = workload.revision(pod).container.port
    yield _one("up", serves, namespace=workload.namespace, pod=name, job=workload.name, instance=f"{pod.ip}:{port}")


def _node(node: Node) -> Iterator[Series]:
    labels = {"instance": node.name, "job": "node-exporter"}
    origin = node.created
    busy = tuple((at, share * node.cores) for at, share in node.busy)
    idle = tuple((at, (1 - share) * node.cores) for at, share in node.busy)
    user = tuple((at, rate * 0.85) for at, rate in busy)
    system = tuple((at, rate * 0.15) for at, rate in busy)
    for mode, rates in (("idle", idle), ("user", user), ("system", system)):
        yield _one("node_cpu_seconds_total", counted(rates, origin), **labels, mode=mode)
    yield _one("node_memory_MemTotal_bytes", steady(node.memory), **labels)
    yield _one("node_memory_MemAvailable_bytes", shaken(steady(node.memory * 0.55), 0.01, node.name), **labels)
    root = {"mountpoint": "/", "device": "/dev/vda1", "fstype": "ext4"}
    yield _one("node_filesystem_size_bytes", steady(node.disk), **labels, **root)
    yield _one("node_filesystem_avail_bytes", lambda t: node.disk - (node.disk_used(t) or 0.0), **labels, **root)
    for condition in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
        is_true = float(condition == "Ready")
        where = {"node": node.name, "job": "kube-state-metrics", "condition": condition}
        yield _one("kube_node_status_condition", steady(is_true), **where, status="true")
        yield _one("kube_node_status_condition", steady(1 - is_true), **where, status="false")


def _claim(claim: Claim) -> Iterator[Series]:
    labels = {"namespace": claim.namespace, "persistentvolumeclaim": claim.name, "job": "kubelet"}
    yield _one("kubelet_volume_stats_capacity_bytes", steady(claim.bytes), **labels)
    yield _one("kubelet_volume_stats_used_bytes", claim.used, **labels)
    yield _one("kubelet_volume_stats_available_bytes", lambda t: claim.bytes - (claim.used(t) or 0.0), **labels)


def _http(workload: Workload, traffic: Traffic) -> Iterator[Series]:
    labels = {"namespace": workload.namespace, "service": workload.name, "job": workload.name}
    for code, rates in traffic.by_code.items():
        yield _one("http_requests_total", counted(rates, traffic.origin), **labels, code=code)
    every = _sum_of_rates(traffic)
    yield _one("http_request_duration_seconds_count", counted(every, traffic.origin), **labels)
    mean = levels(traffic.mean_seconds)
    edges = sorted({at for at, _ in (*every, *traffic.mean_seconds)})
    rate = levels(every)
    spent = tuple((at, (rate(at) or 0.0) * (mean(at) or 0.0)) for at in edges)
    yield _one("http_request_duration_seconds_sum", counted(spent, traffic.origin), **labels)
    for bound in (*BUCKETS, math.inf):
        # Durations are taken to be exponential with the mean of the moment.
        below = tuple((at, (rate(at) or 0.0) * -math.expm1(-bound / (mean(at) or 1.0))) for at in edges)
        le = "+Inf" if bound == math.inf else f"{bound:g}"
        yield _one("http_request_duration_seconds_bucket", counted(below, traffic.origin), **labels, le=le)


def _sum_of_rates(traffic: Traffic) -> Points:
    edges = sorted({at for rates in traffic.by_code.values() for at, _ in rates})
    shapes = [levels(rates) for rates in traffic.by_code.values()]
    return tuple((at, sum(shape(at) or 0.0 for shape in shapes)) for at in edges)
