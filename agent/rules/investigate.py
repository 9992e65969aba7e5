"""What to look at next: the alert's surroundings first, then what would prove or contradict the likeliest causes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.rules.measures import MEASURES, known_metrics
from agent.rules.mechanisms import looks
from agent.rules.mechanisms.cpu_throttling import MIN_CORES, is_busy
from agent.rules.mechanisms.node_component import states_of, unplaced
from agent.rules.mechanisms.port import Hypothesis, Want
from agent.rules.mechanisms.slow_network import slow_services
from agent.rules.mechanisms.wrong_address import settings_of
from agent.rules.names import is_label_value, is_object_name
from agent.rules.nodes import control_plane
from agent.rules.observation import Fact, Thing, quantity
from agent.rules.recovered import alert_condition
from agent.rules.scene import Scene
from agent.rules.scoring import Scored
from agent.rules.settings import complaints
from agent.rules.toolbox import Act, Offered, Toolbox
from agent.rules.transcript import Transcript, signature

SLOW = ("cpu", "latency", "slow", "throttl", "saturat", "p99", "p95", "duration", "response time", "timeout")
MAX_ROUNDS = 6
MAX_CALLS = 60
MAX_CALLS_A_ROUND = 12
MAX_FOLLOWED = 4
MAX_MEASURES = 6
TROUBLE = (
    "error|exception|fatal|panic|fail|refused|timeout|timed out|denied|unavailable|exhausted|no space|expired"
    "|no such host|too many|reserved|in use|not available"
)


_GATEWAY = re.compile(r"gateway|ingress|proxy|router|\bedge\b|envoy|nginx|kong|traefik")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    tool: str
    arguments: dict[str, Any]


def next_calls(scene: Scene, toolbox: Toolbox, transcript: Transcript, scored: Sequence[Scored]) -> list[Planned]:
    """Empty once there is nothing left to ask, or the bound is reached."""
    room = min(MAX_CALLS_A_ROUND, MAX_CALLS - transcript.calls)
    if transcript.rounds >= MAX_ROUNDS or room <= 0:
        return []
    planned: dict[str, Planned] = {}
    for want in _wants(scene, toolbox, scored):
        call = _call(want, toolbox)
        if call is not None and (key := signature(call.tool, call.arguments)) not in transcript.asked:
            planned.setdefault(key, call)
        if len(planned) >= room:
            break
    return list(planned.values())


def _call(want: Want, toolbox: Toolbox) -> Planned | None:
    tool = toolbox.get(want.act)
    arguments = tool.fill(want.arguments) if tool else None
    return Planned(tool=tool.name, arguments=arguments) if tool and arguments is not None else None


def _wants(scene: Scene, toolbox: Toolbox, ranked: Sequence[Scored]) -> Iterator[Want]:
    """In order of worth; what was asked already is dropped by the caller."""
    yield from _surroundings(scene)
    yield from _metric_names(scene)
    yield from _alert_metric(scene)
    yield from _stored_logs(scene, toolbox)
    yield from _named_objects(scene, toolbox)
    yield from _unhealthy(scene)
    yield from _addresses(scene)
    followed: list[Hypothesis] = [scored.hypothesis for scored in ranked if scored.points > 0][:MAX_FOLLOWED]
    for hypothesis in followed:
        yield from hypothesis.mechanism.follow_ups(hypothesis, scene)
    yield from _incomplete(scene)
    yield from _called(scene)
    yield from _load(scene)
    yield from _measures(scene)
    if not any(scored.decisive for scored in ranked):
        yield from _widen(scene)


def _surroundings(scene: Scene) -> Iterator[Want]:
    subject = scene.subject
    for kind in ("pods", "deployments"):
        yield looks.get(kind, scene)
    if subject.namespace:
        yield Want(act=Act.EVENTS, arguments={"namespace": subject.namespace})
    if not scene.focus.name:  # it says only that something is wrong: look at how all hangs together
        yield Want(act=Act.ALERTS, arguments={})
        for kind in ("services", "endpoints", "nodes", "resourcequotas"):
            yield looks.get(kind, scene)
    if subject.node:
        yield looks.get("nodes", scene)
        yield from looks.describe("node", subject.node, scene)
    if subject.alertname and not subject.expression:
        yield Want(act=Act.RULES, arguments={"search": subject.alertname})


def _named_objects(scene: Scene, toolbox: Toolbox) -> Iterator[Want]:
    """What the alert is about: the pod it names, or the workload."""
    subject = scene.subject
    if subject.pod:
        yield from looks.describe("pod", subject.pod, scene)
        yield from looks.logs_of(subject.pod, scene)
    name = scene.focus.name
    if not is_object_name(name):
        return
    pods = scene.pods_of(name)
    if subject.deployment or pods or any(row.about.name == name for row in scene.of(Fact.WORKLOAD)):
        yield from looks.describe(looks.workload_kind(name, scene), name, scene)
    for pod in looks.worst_pods(scene.focus, scene)[:1]:
        yield from _filtered_logs(pod, scene, toolbox.get(Act.LOGS))


def _filtered_logs(pod: str, scene: Scene, tool: Offered | None) -> Iterator[Want]:
    for want in looks.logs_of(pod, scene):
        filtered = {"filter": TROUBLE} if tool and tool.takes("filter") else {}
        yield Want(act=want.act, arguments={**want.arguments, **filtered})


def _unhealthy(scene: Scene) -> Iterator[Want]:
    """Pods that are not well, those of the alert's workload first."""
    focus = scene.focus.name
    unwell = [pod for pod in scene.pods.values() if not pod.healthy]
    unwell.sort(key=lambda pod: (scene.owner(pod.row.about).name != focus, pod.ready))
    seen: set[str] = set()
    for pod in unwell:
        workload = scene.owner(pod.row.about).name
        if workload in seen or len(seen) >= MAX_FOLLOWED - 1:
            continue
        seen.add(workload)
        yield from looks.describe("pod", pod.name, scene)
        yield from looks.logs_of(pod.name, scene, previous=bool(pod.row.number("restarts")))


def _addresses(scene: Scene) -> Iterator[Want]:
    """What those are configured with that fail to connect, and the services there are."""
    for name in list(complaints(scene))[:MAX_FOLLOWED]:
        yield looks.get("services", scene)
        yield from settings_of(name, scene)


def _called(scene: Scene) -> Iterator[Want]:
    """Those of whom callers complain: the service as it is defined, and a pod behind it."""
    for name in [name for name in scene.callers if scene.pods_of(name)][:MAX_FOLLOWED]:
        yield looks.get("services", scene)
        yield looks.get("endpoints", scene)
        yield from looks.describe("service", name, scene)
        for pod in looks.worst_pods(Thing("workload", name), scene)[:1]:
            yield from looks.describe("pod", pod, scene)


def _incomplete(scene: Scene) -> Iterator[Want]:
    """Workloads that got fewer pods than they want: why stands with what makes the pods."""
    for row in scene.of(Fact.WORKLOAD):
        missing = len(scene.pods_of(row.about.name)) < (row.number("desired") or 0.0)
        if row.about.kind == "deployment" and missing:
            yield from looks.describe("deployment", row.about.name, scene)
            yield looks.get("replicasets", scene)
            for name in looks.revisions(row.about.name, scene)[:1]:
                yield from looks.describe("replicaset", name, scene)


def _load(scene: Scene) -> Iterator[Want]:
    """Who uses the CPU, where the alert is about slowness: a neighbour may well be in another namespace."""
    if not scene.subject.speaks_of(SLOW):
        return
    yield Want(act=Act.TOP, arguments={"kind": "nodes"})
    yield Want(act=Act.TOP, arguments={"kind": "pods"})
    if any(is_busy(row) for row in scene.of(Fact.USAGE, Fact.SERIES)):
        yield from _greedy(scene)


def _greedy(scene: Scene) -> Iterator[Want]:
    """Where the pods run that use the most CPU: a list of all pods of a cluster would be cut."""
    usage = [(quantity(row.values.get("cpu", "")) or 0.0, row) for row in scene.of(Fact.USAGE)]
    pods = [(cores, row) for cores, row in usage if row.about.kind == "pod" and cores >= MIN_CORES]
    for _, row in sorted(pods, key=lambda pair: -pair[0])[:MAX_FOLLOWED]:
        if row.about.name not in scene.pods and is_object_name(row.about.name):
            arguments = {"kind": "pods", "name": row.about.name, "namespace": row.values.get("namespace", "")}
            yield Want(act=Act.GET, arguments={key: value for key, value in arguments.items() if value})


def _widen(scene: Scene) -> Iterator[Want]:
    """Nothing is plainly wrong so far: what routes the traffic, and what other workloads say."""
    for kind in ("services", "endpoints", "nodes"):
        yield looks.get(kind, scene)
    if unplaced(scene):
        yield from states_of(control_plane(scene), ("kube-scheduler",))
    told = list(slow_services(scene))[:MAX_FOLLOWED]
    for name in told:
        yield Want(act=Act.DEPENDENCIES, arguments={"name": name})
    for pod in _one_each(scene)[: MAX_FOLLOWED * 3]:
        yield from looks.logs_of(pod, scene)
    yield from _entrances(scene)
    if any(True for _ in scene.of(Fact.LOG)):
        yield from states_of((pod.node for pod in scene.pods.values() if pod.node), ("kube-proxy",))


def _one_each(scene: Scene) -> list[str]:
    """One pod of each workload, those that the alert's workload calls first."""
    called = scene.downstream(scene.focus.name) if scene.focus.name else set()
    told = list(slow_services(scene))
    told += [callee for name in told for callee in sorted(scene.calls.get(name, ()))]
    first = {name: place for place, name in enumerate(dict.fromkeys([*sorted(called), *told]))}
    pods = {scene.owner(pod.row.about).name: pod.name for pod in scene.pods.values()}
    return [pods[workload] for workload in sorted(pods, key=lambda name: first.get(name, len(first)))]


def _entrances(scene: Scene) -> Iterator[Want]:
    """What requests come through: a gateway's routes, and what the complaining workloads are configured with."""
    named = [name for name in {scene.owner(row.about).name for row in scene.of(Fact.WORKLOAD)} if _GATEWAY.search(name)]
    complaining = [scene.owner(line.about).name for line in scene.of(Fact.LOG)]
    for name in list(dict.fromkeys([*sorted(named), *complaining]))[:MAX_FOLLOWED]:
        yield from settings_of(name, scene)


def _metric_names(scene: Scene) -> Iterator[Want]:
    """Which metrics exist for the alert's namespace."""
    namespace = scene.subject.namespace
    arguments = {"label": "__name__"}
    if is_object_name(namespace):
        arguments["match"] = f'{{namespace="{namespace}"}}'
    yield Want(act=Act.LABELS, arguments=arguments)


def _alert_metric(scene: Scene) -> Iterator[Want]:
    """The alert's own expression without its threshold, so that the values show and not just "fires" or nothing."""
    expression, condition = alert_condition(scene)
    if condition is not None:
        yield Want(act=Act.QUERY_RANGE, arguments={"query": condition.left})
    elif expression:
        yield Want(act=Act.QUERY_RANGE, arguments={"query": expression})


def _measures(scene: Scene) -> Iterator[Want]:
    known = _known(scene)
    component = scene.focus if scene.focus.name else Thing("", "")
    asked = 0
    # What the alert speaks of comes before what is always worth a look.
    for measure in sorted(MEASURES, key=lambda measure: not measure.words):
        wanted = not measure.words or scene.subject.speaks_of(measure.words)
        if not wanted or (known is not None and measure.name not in known) or asked >= MAX_MEASURES:
            continue
        for want in looks.measure_want(measure.name, component, scene, (known or {}).get(measure.name, "")):
            asked += 1
            yield want


def _known(scene: Scene) -> dict[str, str] | None:
    """The metrics that a listing showed; None where there was none, and then the usual names are tried."""
    listed = [reading.body for reading in scene.readings if reading.ref and "__name__" in reading.arguments.values()]
    nodes = {"cpu_steal", "cpu_busy", "disk_free", "certificate_seconds", "up", "queue_lag"}
    if not listed:
        return None
    found = dict(known_metrics("\n".join(listed)))
    # Series of nodes, probes and brokers carry no namespace of the alert's, so a listing by namespace lacks them.
    return found | {name: "" for name in nodes if name not in found}


def _stored_logs(scene: Scene, toolbox: Toolbox) -> Iterator[Want]:
    """The log store, by the labels it most likely has; it is the only place for logs of pods that are gone."""
    if toolbox.get(Act.LOG_QUERY) is None:
        return
    subject = scene.subject
    parts = []
    if is_object_name(subject.namespace):
        parts.append(f'namespace="{subject.namespace}"')
    if (name := subject.workload) and is_label_value(name):
        parts.append(f'pod=~"{name}.*"' if subject.namespace else f'app="{name}"')
    if parts:
        yield Want(act=Act.LOG_QUERY, arguments={"query": f"{{{','.join(parts)}}} |~ `(?i)({TROUBLE})`", "limit": 200})
    yield Want(act=Act.LOG_LABELS, arguments={})
