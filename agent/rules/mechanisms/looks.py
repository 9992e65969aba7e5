"""What mechanisms ask to look at: the same few acts, aimed at the component in question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.rules.measures import MEASURES
from agent.rules.mechanisms.port import Hypothesis, Looks, Want
from agent.rules.names import is_label_value, is_object_name
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.scene import Scene
from agent.rules.toolbox import Act

MAX_PODS = 2


def get(kind: str, scene: Scene, name: str = "") -> Want:
    arguments = {"kind": kind, "namespace": scene.subject.namespace, "name": name}
    return Want(act=Act.GET, arguments={key: value for key, value in arguments.items() if value})


def describe(kind: str, name: str, scene: Scene) -> Iterator[Want]:
    if is_object_name(name):
        arguments = {"kind": kind, "name": name, "namespace": scene.subject.namespace}
        yield Want(act=Act.DESCRIBE, arguments={key: value for key, value in arguments.items() if value})


def describe_pods(hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
    for pod in worst_pods(hypothesis.component, scene):
        yield from describe("pod", pod, scene)


def describe_workload(hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
    kind = workload_kind(hypothesis.component.name, scene)
    yield from describe(kind, hypothesis.component.name, scene) if hypothesis.component.kind == "workload" else ()


def describe_revisions(hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
    """The two newest replica sets: what they differ in is what the last roll-out changed."""
    yield get("replicasets", scene)
    for name in revisions(hypothesis.component.name, scene)[:2]:
        yield from describe("replicaset", name, scene)


def describe_component(kind: str) -> Looks:
    def look(hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        yield from describe(kind, hypothesis.component.name, scene)

    return look


def list_of(kind: str) -> Looks:
    def look(_hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        yield get(kind, scene)

    return look


def yaml_of(kind: str, name: str, scene: Scene) -> Want:
    arguments = {"kind": kind, "name": name, "namespace": scene.subject.namespace}
    return Want(act=Act.YAML, arguments={key: value for key, value in arguments.items() if value})


def logs(hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
    for pod in worst_pods(hypothesis.component, scene)[:1]:
        yield from logs_of(pod, scene)


def previous_logs(hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
    for pod in worst_pods(hypothesis.component, scene)[:1]:
        row = scene.pods.get(pod)
        if row is None or row.row.number("restarts"):
            yield from logs_of(pod, scene, previous=True)


def logs_of(pod: str, scene: Scene, *, previous: bool = False) -> Iterator[Want]:
    if is_object_name(pod):
        arguments: dict[str, object] = {"name": pod, "namespace": scene.subject.namespace}
        if pod == scene.subject.pod and scene.subject.container:
            arguments["container"] = scene.subject.container
        if previous:
            arguments["previous"] = True
        yield Want(act=Act.LOGS, arguments={key: value for key, value in arguments.items() if value})


def series(*names: str) -> Looks:
    """Range queries of these measures for the component, as far as its labels select them."""

    def look(hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        for measure in MEASURES:
            if measure.name in names:
                yield from measure_want(measure.name, hypothesis.component, scene)

    return look


def measure_want(name: str, component: Thing, scene: Scene, metric: str = "") -> Iterator[Want]:
    """`metric` replaces the usual name where an application has its own."""
    measure = next(measure for measure in MEASURES if measure.name == name)
    matchers = selector(measure.scope, component, scene)
    if matchers is None:
        return
    query = measure.query.replace("$", matchers)
    if metric and metric != measure.metric:
        query = f"{metric}{{{matchers}}}"
    query = query.replace(",}", "}").replace("{}", "")
    yield Want(act=Act.QUERY_RANGE, arguments={"query": query})


def selector(scope: str, component: Thing, scene: Scene) -> str | None:
    """Label matchers for a component; None where they can't be told."""
    subject = scene.subject
    namespace = f'namespace="{subject.namespace}"' if is_object_name(subject.namespace) else ""
    match scope:
        case "pod":
            name = component.name if component.kind in ("workload", "pod") else ""
            pod = f'pod=~"{name}.*"' if is_object_name(name) else ""
            return ",".join(part for part in (namespace, pod) if part) or None
        case "namespace":
            return namespace or None
        case "node":
            node = node_of(component, scene)
            return f'node="{node}"' if is_object_name(node) else namespace or None
        case "instance":
            instance = subject.instance or node_of(component, scene)
            if not instance or not is_label_value(instance):
                return None
            return f'instance="{instance}"' if subject.instance else f'instance=~"{instance}.*"'
        case "service":
            named = f'job="{subject.service}"' if subject.service and is_label_value(subject.service) else ""
            return named or namespace or None
        case _:
            return ""


def node_of(component: Thing, scene: Scene) -> str:
    """The node a component is, or its first pod runs on."""
    if component.kind == "node":
        return component.name
    nodes = (pod.node for pod in scene.pods_of(component.name) if pod.node)
    return next(nodes, "") or scene.subject.node


def worst_pods(component: Thing, scene: Scene) -> list[str]:
    """The pods worth describing: the unhealthy ones, else one of those there are."""
    if component.kind == "pod":
        return [component.name]
    pods = scene.pods_of(component.name)
    unhealthy = [pod.name for pod in pods if not pod.healthy]
    return unhealthy[:MAX_PODS] or [pod.name for pod in pods[:1]]


def workload_kind(name: str, scene: Scene) -> str:
    rows = (row.about.kind for row in scene.of(Fact.WORKLOAD) if row.about.name == name)
    return next(rows, "deployment")


def revisions(workload: str, scene: Scene) -> list[str]:
    """The replica sets of a workload, newest first."""
    mine = scene.once("revisions", _revisions).get(workload, {})
    return sorted(mine, key=lambda name: (-(mine[name].number("revision") or 0.0), mine[name].number("age") or 0.0))


def _revisions(scene: Scene) -> dict[str, dict[str, Observation]]:
    found: dict[str, dict[str, Observation]] = {}
    for row in scene.of(Fact.WORKLOAD):
        if row.about.kind == "replicaset":
            found.setdefault(scene.owner(row.about).name, {})[row.about.name] = row
    return found
