"""Objects as the tables operators know, with absolute times, because an age says nothing a day later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolsets.kubernetes import pods
from toolsets.kubernetes.fields import (
    Object,
    annotation,
    at,
    changes,
    conditions,
    created,
    name_of,
    namespace_of,
    owner_of,
    pairs,
    text,
)
from toolsets.kubernetes.grammar import stamp

MAX_CELL_CHARS = 160
Column = tuple[str, Callable[[Object], Any]]


def render(headers: Sequence[str], rows: Sequence[Sequence[Any]], *, cell_chars: int = MAX_CELL_CHARS) -> str:
    """Aligned columns; empty cells are `-`, and columns that are empty throughout are left out."""
    cells = [[_cell(value, cell_chars) for value in row] for row in rows]
    kept = [index for index in range(len(headers)) if index == 0 or any(row[index] != "-" for row in cells)]
    table = [[headers[index] for index in kept], *([row[index] for index in kept] for row in cells)]
    widths = [max(len(row[column]) for row in table) for column in range(len(kept))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)


def _cell(value: Any, chars: int) -> str:
    line = " ".join(str(value).split()) if value is not None else ""
    return (line if len(line) <= chars else f"{line[: chars - 1]}…") or "-"


def objects(kind: str, items: Sequence[Object], *, with_namespace: bool) -> str:
    """Our own columns. What is not well comes first, as only the first rows may be read."""
    columns: list[Column] = [("NAMESPACE", namespace_of)] if with_namespace else []
    columns += [("NAME", name_of), *COLUMNS.get(kind, OTHER)]
    if kind == "Pod":
        items = sorted(items, key=lambda pod: (pods.is_ready(pod), -pods.restarts(pod)))
    elif wanted_and_ready := REPLICAS.get(kind):
        wanted, ready = wanted_and_ready
        items = sorted(items, key=lambda workload: at(workload, ready, 0) >= at(workload, wanted, 1))
    return render([header for header, _ in columns], [[read(item) for _, read in columns] for item in items])


def from_server(table: Object, *, with_namespace: bool) -> str:
    """The server's own table, for kinds we have no columns for: custom resources declare theirs."""
    headers = [str(column.get("name", "")).upper() for column in table.get("columnDefinitions") or []]
    rows = [list(row.get("cells") or []) for row in table["rows"]]
    if with_namespace:
        headers.insert(0, "NAMESPACE")
        rows = [[namespace_of(row.get("object") or {}), *cells] for row, cells in zip(table["rows"], rows, strict=True)]
    width = len(headers)
    return render(headers, [[*cells, *[""] * width][:width] for cells in rows])


def _of(path: str) -> Callable[[Object], Any]:
    return lambda thing: text(thing, path)


def _count(path: str) -> Callable[[Object], Any]:
    return lambda thing: at(thing, path, 0)


def _ratio(have: str, want: str) -> Callable[[Object], str]:
    return lambda thing: f"{at(thing, have, 0)}/{at(thing, want, 1)}"


def _time(path: str) -> Callable[[Object], str]:
    return lambda thing: stamp(at(thing, path))


def _images(workload: Object) -> str:
    return ",".join(text(container, "image") for container in at(workload, "spec.template.spec.containers", []))


def _owner(thing: Object) -> str:
    owner = owner_of(thing)
    return f"{owner.get('kind')}/{owner.get('name')}" if owner else ""


def _keys(thing: Object) -> str:
    return ",".join([*at(thing, "data", {}), *at(thing, "binaryData", {})])


def _changed(thing: Object) -> str:
    return next(iter(changes(thing)), "")


def _condition_line(thing: Object) -> str:
    """`Ready=False(NotReconciled)`."""
    return ",".join(
        f"{entry.get('type')}={entry.get('status')}"
        + (f"({entry['reason']})" if entry.get("reason") and entry.get("status") != "True" else "")
        for entry in conditions(thing)
    )


def _node_status(node: Object) -> str:
    """`Ready`, or what is wrong: `NotReady,MemoryPressure,SchedulingDisabled`."""
    words: list[str] = []
    for entry in conditions(node):
        true = entry.get("status") == "True"
        if entry.get("type") == "Ready":
            words.insert(0, "Ready" if true else "NotReady")
        elif true:
            words.append(str(entry.get("type")))
    return ",".join([*words, *(["SchedulingDisabled"] if at(node, "spec.unschedulable") else [])])


def _taints(node: Object) -> str:
    return ",".join(f"{taint.get('key')}:{taint.get('effect')}" for taint in at(node, "spec.taints", []))


def _ports(service: Object) -> str:
    return ",".join(
        f"{port.get('port')}->{port.get('targetPort')}/{port.get('protocol', 'TCP')}"
        for port in at(service, "spec.ports", [])
    )


def _job_end(job: Object) -> str:
    ended = [entry for entry in conditions(job) if entry.get("status") == "True"]
    return "; ".join(
        f"{entry.get('type')} {entry.get('reason', '')} {stamp(entry.get('lastTransitionTime'))}" for entry in ended
    )


def _targets(scaler: Object) -> str:
    """Current and wanted value of each metric: `cpu 97/70`."""
    current = {_metric(entry): entry for entry in at(scaler, "status.currentMetrics", [])}
    return ",".join(
        f"{_metric(entry)} {_amount(current.get(_metric(entry)), 'current')}/{_amount(entry, 'target')}"
        for entry in at(scaler, "spec.metrics", [])
    )


def _metric(entry: Object) -> str:
    kind = str(entry.get("type", ""))
    section = entry.get(kind[:1].lower() + kind[1:]) or {}
    return str(section.get("name") or at(section, "metric.name", kind))


def _amount(entry: Object | None, which: str) -> str:
    for section in (entry or {}).values():
        values = at(section, which, {}) if isinstance(section, dict) else {}
        for key in ("averageUtilization", "averageValue", "value"):
            if key in values:
                return str(values[key])
    return "?"


def _hosts(ingress: Object) -> str:
    return ",".join(text(rule, "host", "*") for rule in at(ingress, "spec.rules", []))


def _backends(ingress: Object) -> str:
    paths = [path for rule in at(ingress, "spec.rules", []) for path in at(rule, "http.paths", [])]
    services = [at(path, "backend.service", {}) for path in paths]
    names = [f"{text(one, 'name')}:{text(one, 'port.number') or text(one, 'port.name')}" for one in services]
    return ",".join(dict.fromkeys(names))


def _endpoints(entry: Object) -> str:
    found = at(entry, "endpoints", [])
    return f"{sum(at(one, 'conditions.ready', True) is True for one in found)}/{len(found)}"


REPLICAS = {
    "Deployment": ("spec.replicas", "status.readyReplicas"),
    "StatefulSet": ("spec.replicas", "status.readyReplicas"),
    "ReplicaSet": ("spec.replicas", "status.readyReplicas"),
    "DaemonSet": ("status.desiredNumberScheduled", "status.numberReady"),
}
_CREATED: Column = ("CREATED", created)
OTHER: tuple[Column, ...] = (("CONDITIONS", _condition_line), ("PHASE", _of("status.phase")), _CREATED)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        ("READY", pods.ready),
        ("STATUS", pods.phase),
        ("RESTARTS", pods.restarts),
        ("LAST-END", pods.last_end),
        _CREATED,
        ("NODE", _of("spec.nodeName")),
        ("IP", _of("status.podIP")),
    ),
    "Deployment": (
        ("READY", _ratio("status.readyReplicas", "spec.replicas")),
        ("UP-TO-DATE", _count("status.updatedReplicas")),
        ("AVAILABLE", _count("status.availableReplicas")),
        ("REVISION", lambda thing: annotation(thing, "deployment.kubernetes.io/revision")),
        _CREATED,
        ("IMAGES", _images),
    ),
    "ReplicaSet": (
        ("READY", _ratio("status.readyReplicas", "spec.replicas")),
        ("REVISION", lambda thing: annotation(thing, "deployment.kubernetes.io/revision")),
        _CREATED,
        ("OWNER", _owner),
        ("IMAGES", _images),
    ),
    "StatefulSet": (("READY", _ratio("status.readyReplicas", "spec.replicas")), _CREATED, ("IMAGES", _images)),
    "DaemonSet": (
        ("READY", _ratio("status.numberReady", "status.desiredNumberScheduled")),
        ("UP-TO-DATE", _count("status.updatedNumberScheduled")),
        ("MISSCHEDULED", _count("status.numberMisscheduled")),
        _CREATED,
        ("IMAGES", _images),
    ),
    "Node": (
        ("STATUS", _node_status),
        ("TAINTS", _taints),
        ("VERSION", _of("status.nodeInfo.kubeletVersion")),
        ("CPU", _of("status.allocatable.cpu")),
        ("MEMORY", _of("status.allocatable.memory")),
        _CREATED,
    ),
    "Service": (
        ("TYPE", _of("spec.type")),
        ("CLUSTER-IP", _of("spec.clusterIP")),
        ("PORTS", _ports),
        ("SELECTOR", lambda thing: pairs(at(thing, "spec.selector"))),
        _CREATED,
    ),
    "Job": (
        ("COMPLETIONS", _ratio("status.succeeded", "spec.completions")),
        ("ACTIVE", _count("status.active")),
        ("FAILED", _count("status.failed")),
        ("STARTED", _time("status.startTime")),
        ("ENDED", _job_end),
        ("OWNER", _owner),
    ),
    "CronJob": (
        ("SCHEDULE", _of("spec.schedule")),
        ("SUSPEND", _of("spec.suspend")),
        ("LAST-SCHEDULE", _time("status.lastScheduleTime")),
        ("LAST-SUCCESS", _time("status.lastSuccessfulTime")),
        _CREATED,
    ),
    "HorizontalPodAutoscaler": (
        (
            "REFERENCE",
            lambda thing: f"{text(thing, 'spec.scaleTargetRef.kind')}/{text(thing, 'spec.scaleTargetRef.name')}",
        ),
        ("TARGETS", _targets),
        ("MIN", _count("spec.minReplicas")),
        ("MAX", _count("spec.maxReplicas")),
        ("REPLICAS", _count("status.currentReplicas")),
        ("CONDITIONS", _condition_line),
    ),
    "PersistentVolumeClaim": (
        ("STATUS", _of("status.phase")),
        ("VOLUME", _of("spec.volumeName")),
        ("CAPACITY", _of("status.capacity.storage")),
        ("CLASS", _of("spec.storageClassName")),
        _CREATED,
    ),
    "ConfigMap": (("KEYS", _keys), _CREATED, ("CHANGED", _changed)),
    "Secret": (("TYPE", _of("type")), ("KEYS", _keys), _CREATED, ("CHANGED", _changed)),
    "Ingress": (("CLASS", _of("spec.ingressClassName")), ("HOSTS", _hosts), ("BACKENDS", _backends), _CREATED),
    "EndpointSlice": (("READY", _endpoints), _CREATED),
}
