"""One object with its story: state, conditions, owners, who changed it, what belongs to it, roll-outs, events."""

from __future__ import annotations

from collections.abc import Iterator

from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets.kubernetes import containers, events, pods, rollout, tables
from toolsets.kubernetes.api import Cluster
from toolsets.kubernetes.fields import (
    Object,
    annotation,
    at,
    changes,
    conditions,
    cores,
    created,
    mebibytes,
    name_of,
    namespace_of,
    owner_of,
    pairs,
    quantity,
    text,
)
from toolsets.kubernetes.grammar import stamp
from toolsets.kubernetes.kinds import Kind, well_known
from toolsets.kubernetes.manifest import as_yaml, essential

MAX_OWNERS = 4
MAX_EVENTS = 20
MAX_PODS = 30
MAX_YAML_LINES = 150
WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "ReplicationController"})
SYSTEM = ("kubeletVersion", "kernelVersion", "osImage")
ROLLED_OUT = frozenset({"Deployment", "StatefulSet", "DaemonSet"})


def describe(cluster: Cluster, kind: Kind, thing: Object, deadline: Deadline) -> str:
    """Text for a model. What can't be read beside the object itself is named in its place."""
    lines = [*_head(kind, thing), *_owners(cluster, thing, deadline)]
    if kind.familiar == "Pod":
        lines += _pod(thing)
    elif kind.familiar in WORKLOADS:
        lines += _workload(cluster, kind, thing, deadline)
    elif kind.familiar == "Node":
        lines += _node(cluster, thing, deadline)
    else:
        lines += _service_pods(cluster, kind, thing, deadline)
        lines += _rest(thing)
    return "\n".join([*lines, *_conditions(thing), *_events(cluster, kind, thing, deadline)])


def _head(kind: Kind, thing: Object) -> Iterator[str]:
    where = f"{namespace_of(thing)}/{name_of(thing)}".lstrip("/")
    deleted = stamp(at(thing, "metadata.deletionTimestamp"))
    yield f"{kind.name} {where}, created {created(thing)}" + (f", being deleted since {deleted}" if deleted else "")
    if labels := pairs(at(thing, "metadata.labels")):
        yield f"labels: {labels}"
    if cause := annotation(thing, "kubernetes.io/change-cause"):
        yield f"change cause: {' '.join(cause.split())}"
    if finalizers := at(thing, "metadata.finalizers", []):
        yield f"finalizers: {', '.join(map(str, finalizers))}"
    if changed := changes(thing):
        yield f"last changed: {'; '.join(changed)}"


def _owners(cluster: Cluster, thing: Object, deadline: Deadline) -> Iterator[str]:
    """`owned by: ReplicaSet/web-7d4b9c, Deployment/web`: each the owner of the one before."""
    chain: list[str] = []
    namespace, current = namespace_of(thing), thing
    while (owner := owner_of(current)) and len(chain) < MAX_OWNERS:
        chain.append(f"{owner.get('kind')}/{owner.get('name')}")
        try:
            kind = cluster.kinds.find(str(owner.get("kind")), deadline)
            current = cluster.get(kind.path(namespace, str(owner.get("name"))), deadline)
        except ToolError:
            chain[-1] += " (not readable)"
            break
    if chain:
        yield f"owned by: {', '.join(chain)}"


def _pod(pod: Object) -> Iterator[str]:
    node = text(pod, "spec.nodeName", "none")
    yield (
        f"status: {pods.phase(pod)}; ready {pods.ready(pod)}; restarts {pods.restarts(pod)}; node {node}; "
        f"ip {text(pod, 'status.podIP', 'none')}; qos {text(pod, 'status.qosClass', '?')}"
    )
    if message := text(pod, "status.message"):
        yield f"message: {message}"
    yield from containers.lines(at(pod, "spec", {}), pods.statuses(pod))
    yield from containers.volumes(at(pod, "spec", {}))
    yield from _placement(at(pod, "spec", {}))


def _placement(spec: Object) -> Iterator[str]:
    if wanted := pairs(spec.get("nodeSelector")):
        yield f"node selector: {wanted}"
    if affinity := spec.get("affinity"):
        yield f"affinity: {as_yaml(affinity)}"
    tolerated = [one for one in at(spec, "tolerations", []) if not text(one, "key").startswith("node.kubernetes.io/")]
    if tolerated:
        yield f"tolerations: {'; '.join(pairs(one) for one in tolerated)}"
    if account := text(spec, "serviceAccountName"):
        yield f"service account: {account}"


def selector_of(workload: Object) -> str:
    """The label selector of a workload or a service, as the API takes it; "" when it selects nothing."""
    selector = at(workload, "spec.selector", {})
    if not ("matchLabels" in selector or "matchExpressions" in selector):
        return pairs(selector)
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for rule in selector.get("matchExpressions") or []:
        key, values = rule.get("key"), ",".join(rule.get("values") or [])
        match rule.get("operator"):
            case "In":
                parts.append(f"{key} in ({values})")
            case "NotIn":
                parts.append(f"{key} notin ({values})")
            case "Exists":
                parts.append(str(key))
            case "DoesNotExist":
                parts.append(f"!{key}")
    return ",".join(parts)


def _workload(cluster: Cluster, kind: Kind, workload: Object, deadline: Deadline) -> Iterator[str]:
    status = {key: value for key, value in at(workload, "status", {}).items() if isinstance(value, int)}
    yield f"wanted replicas: {at(workload, 'spec.replicas', '-')}; status: {pairs(status) or 'none yet'}"
    if strategy := at(workload, "spec.strategy") or at(workload, "spec.updateStrategy"):
        details = next((value for value in strategy.values() if isinstance(value, dict)), {})
        yield f"strategy: {text(strategy, 'type')} {pairs(details)}".rstrip()
    if at(workload, "spec.paused"):
        yield "the rollout is paused"
    yield from containers.lines(at(workload, "spec.template.spec", {}))
    yield from containers.volumes(at(workload, "spec.template.spec", {}))
    yield from _placement(at(workload, "spec.template.spec", {}))
    if selector := selector_of(workload):
        yield from _selected(cluster, namespace_of(workload), selector, deadline)
        if kind.familiar in ROLLED_OUT:
            yield from rollout.history(cluster, {"kind": kind.name, **workload}, selector, deadline)


def _selected(cluster: Cluster, namespace: str, selector: str, deadline: Deadline) -> Iterator[str]:
    try:
        listing = cluster.list(well_known("Pod"), namespace, deadline, selector=selector)
    except ToolError as error:
        yield f"pods: not available ({error})"
        return
    ready = sum(map(pods.is_ready, listing.items))
    yield f"pods matching {selector}: {len(listing.items)}, {ready} of them ready"
    if listing.items:
        yield from tables.objects("Pod", listing.items, with_namespace=False).split("\n")[: MAX_PODS + 1]
    if len(listing.items) > MAX_PODS:
        yield f"PARTIAL: {MAX_PODS} of {len(listing.items)} pods"


def _service_pods(cluster: Cluster, kind: Kind, service: Object, deadline: Deadline) -> Iterator[str]:
    """A service that selects no ready pod answers nobody."""
    if kind.familiar == "Service" and (selector := selector_of(service)):
        yield from _selected(cluster, namespace_of(service), selector, deadline)


def _node(cluster: Cluster, node: Object, deadline: Deadline) -> Iterator[str]:
    yield f"unschedulable: {bool(at(node, 'spec.unschedulable'))}; taints: {_taints(node) or 'none'}"
    yield f"allocatable: {pairs(at(node, 'status.allocatable'))}"
    yield f"system: {', '.join(text(node, f'status.nodeInfo.{key}') for key in SYSTEM)}"
    addresses = {entry.get("type"): entry.get("address") for entry in at(node, "status.addresses", [])}
    yield f"addresses: {pairs(addresses)}"
    try:
        listing = cluster.list(well_known("Pod"), "", deadline, fields=f"spec.nodeName={name_of(node)}")
    except ToolError as error:
        yield f"pods: not available ({error})"
        return
    here = [pod for pod in listing.items if text(pod, "spec.nodeName") == name_of(node)]
    running = [pod for pod in here if text(pod, "status.phase") not in ("Succeeded", "Failed")]
    yield f"pods here: {len(running)}; they request {_requested(running)}"
    if here:
        yield from tables.objects("Pod", here, with_namespace=True).split("\n")[: MAX_PODS + 1]


def _taints(node: Object) -> str:
    return "; ".join(f"{pairs(taint)}" for taint in at(node, "spec.taints", []))


def _requested(running: list[Object]) -> str:
    asked = [at(one, "resources.requests", {}) for pod in running for one in at(pod, "spec.containers", [])]
    cpu, memory = (sum(quantity(one.get(key)) for one in asked) for key in ("cpu", "memory"))
    return f"cpu {cores(cpu)}, memory {mebibytes(memory)}"


def _rest(thing: Object) -> Iterator[str]:
    """What we have no words of our own for, as YAML."""
    shown = {key: value for key, value in essential(thing).items() if key not in ("metadata", "apiVersion", "kind")}
    if isinstance(status := shown.get("status"), dict):
        shown["status"] = {key: value for key, value in status.items() if key != "conditions"}
    lines = as_yaml(shown).split("\n")
    yield from lines[:MAX_YAML_LINES]
    if len(lines) > MAX_YAML_LINES:
        yield f"PARTIAL: {MAX_YAML_LINES} of {len(lines)} lines; the yaml tool has all"


def _conditions(thing: Object) -> Iterator[str]:
    for entry in conditions(thing):
        since = stamp(entry.get("lastTransitionTime"))
        updated = stamp(entry.get("lastUpdateTime"))
        also = f", updated {updated}" if updated and updated != since else ""
        said = " ".join(filter(None, (text(entry, "reason"), text(entry, "message"))))
        yield f"condition {entry.get('type')}={entry.get('status')} since {since or '?'}{also} {said}".rstrip()


def _events(cluster: Cluster, kind: Kind, thing: Object, deadline: Deadline) -> Iterator[str]:
    """Its own events; for a workload also those of the pods and replica sets it made."""
    about = events.About(
        kind=kind, name=name_of(thing), exact=kind.familiar not in WORKLOADS and kind.familiar != "CronJob"
    )
    try:
        found, note = events.read(cluster, namespace_of(thing), about, deadline)
    except ToolError as error:
        yield f"events: not available ({error})"
        return
    yield "events:" if found else "events: none kept (a cluster drops them after about an hour)"
    if found:
        yield note + events.table(found, rows=MAX_EVENTS)
