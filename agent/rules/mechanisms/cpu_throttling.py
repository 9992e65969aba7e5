"""A program gets too little CPU: its own limit throttles it, or another pod on the node takes what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.alert import parse_time
from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Finding, Hypothesis, Match, Rule, Sign, Want, recognise
from agent.rules.observation import Fact, Observation, Thing, quantity, quote
from agent.rules.pod import Pod
from agent.rules.scene import Scene

THROTTLED = 0.25  # share of periods
CALM = 0.05
BUSY = 0.9  # share of a node's CPU
STOLEN = 0.1
DOMINANT = 2.0  # times what the victim's busiest pod uses
MIN_CORES = 0.5
HEAVY = "it uses most of the node's CPU"


def _measured(name: str, observation: Observation) -> float | None:
    return observation.number("max") if observation.values.get("measure") == name else None


def _throttled(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return (_measured("throttled", observation) or 0.0) >= THROTTLED


def _calm(observation: Observation, _match: Match, _scene: Scene) -> bool:
    share = _measured("throttled", observation)
    return share is not None and share <= CALM


def _tell_limit(_hypothesis: Hypothesis, _scene: Scene) -> Account:
    return Account(did="is slow", because="its own CPU limit throttles it", trigger="capacity")


def _steps_limit(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    return [
        steps.look("Compare use with the limit", f"kubectl top pods{steps.flag(scene)} --containers"),
        steps.history(hypothesis, scene),
        steps.change(
            "Raise the CPU limit",
            "the container is stopped for the rest of each period once it is used up",
            risk="restarts the pods; takes CPU from others on the node",
            undo="set the former limit again",
        ),
    ]


CPU_LIMIT = Rule(
    name="cpu_throttling",
    title="a CPU limit throttles a container",
    depth=20,
    signs=(
        Sign(name="it is throttled in many periods", weight="decisive", facts=(Fact.SERIES,), holds=_throttled),
        Sign(name="it is hardly throttled", weight="contradicting", facts=(Fact.SERIES,), holds=_calm),
    ),
    looks=(looks.series("throttled", "cpu_by_pod"), looks.describe_pods, looks.describe_revisions),
    tells=_tell_limit,
    steps=_steps_limit,
)


def is_busy(observation: Observation) -> bool:
    """Whether it shows a node without CPU to spare."""
    if observation.fact is Fact.USAGE:
        return observation.about.kind == "node" and (observation.number("cpu_percent") or 0.0) >= 100 * BUSY
    return (_measured("cpu_busy", observation) or 0.0) >= BUSY or (_measured("cpu_steal", observation) or 0.0) >= STOLEN


def _node_of(observation: Observation, _match: Match, _scene: Scene) -> Thing:
    labels = observation.values
    name = labels.get("label_node") or labels.get("label_instance", "").partition(":")[0] or observation.about.name
    return Thing("node", name)


_BUSY_NODE = Sign(
    name="the node has no CPU to spare",
    weight="supporting",
    facts=(Fact.SERIES, Fact.USAGE),
    holds=lambda observation, _match, _scene: is_busy(observation),
    component=_node_of,
)


class NoisyNeighbour:
    """Needs three things at once, so it is no list of signs: a victim that is slow, a node without spare CPU, and
    another workload on that node that uses far more than the victim."""

    name = "noisy_neighbour"
    title = "another workload takes the node's CPU"
    depth = 22

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        focus = scene.focus.name
        victims = frozenset({focus} - {""})
        for component, pressure in recognise(_BUSY_NODE, scene):
            shared = [pod for pod in scene.pods_of(focus) if pod.node == component.name]
            usage = _usage_on(component.name, scene)
            own = max((cores for row, cores in usage if scene.owner(row.about).name in victims), default=0.0)
            others = [(row, cores) for row, cores in usage if scene.owner(row.about).name not in victims]
            row, cores = max(others, key=lambda pair: pair[1], default=(None, 0.0))
            if shared and row is not None and cores >= max(MIN_CORES, DOMINANT * own):
                heavy = Finding(sign=HEAVY, weight="decisive", observation=row, quote=quote(row.text))
                found = (heavy, pressure, *_arrival(row, scene), _beside(shared[0]))
                neighbour = scene.owner(row.about)
                yield Hypothesis(mechanism=self, component=neighbour, findings=found, affects=victims)

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        yield from looks.describe_pods(hypothesis, scene)
        yield from looks.describe_revisions(hypothesis, scene)

    def account(self, hypothesis: Hypothesis, scene: Scene) -> Account:
        node = hypothesis.part("node") or "both run on"
        return Account(did=f"starves {scene.focus.name}", because=f"it takes the CPU of node {node}", trigger="load")

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        name = hypothesis.component.name
        return [
            steps.look("See who uses the node's CPU", "kubectl top pods -A --sort-by=cpu | head -20"),
            steps.look("Check its requests and limits", f"kubectl describe deployment {name}{steps.flag(scene)}"),
            steps.change(
                "Give the neighbour a CPU limit, or keep the two on different nodes",
                "it takes CPU that others on the node need",
                risk="the neighbour gets slower; pods move",
                undo="take the limit or the rule away again",
            ),
        ]


def _arrival(usage: Observation, scene: Scene) -> Iterable[Finding]:
    """When the neighbour came, where that was shortly before the alert."""
    pod = scene.pods.get(usage.about.name)
    created = pod.row.values.get("created", "") if pod else ""
    if pod is not None and created and scene.young(replace(pod.row, at=parse_time(created))):
        came = replace(pod.row, values={**pod.row.values, "since": created})
        yield Finding(sign="it came shortly before the alert", weight="supporting", observation=came, quote=came.text)


def _beside(pod: Pod) -> Finding:
    sign = "a pod that the alert is about runs on the same node"
    return Finding(sign=sign, weight="supporting", observation=pod.row, quote=quote(pod.row.text), parts=pod.row.values)


def _usage_on(node: str, scene: Scene) -> list[tuple[Observation, float]]:
    """CPU by pod on one node, from metrics or `top`, in cores."""
    found = []
    for row in scene.of(Fact.SERIES, Fact.USAGE):
        if row.about.kind != "pod":
            continue
        pod = scene.pods.get(row.about.name)
        on = row.values.get("label_node") or (pod.node if pod else "")
        cores = _measured("cpu_by_pod", row) if row.fact is Fact.SERIES else quantity(row.values.get("cpu", ""))
        if cores is not None and on and on == node:
            found.append((row, cores))
    return found


NOISY_NEIGHBOUR = NoisyNeighbour()
