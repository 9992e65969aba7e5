"""A part of Kubernetes itself is stopped: the container runtime or kube-proxy on a node, or the scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign, Want
from agent.rules.names import is_object_name
from agent.rules.nodes import control_plane
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.scene import Scene
from agent.rules.toolbox import Act

UNITS = ("containerd", "kubelet", "kube-proxy")
MAX_NODES = 6

_RUNTIME = re.compile(
    r"(?:dial unix|connect) [^ ]{0,100}(?P<unit>containerd|crio|cri-dockerd|docker)[^ ]{0,40}\.sock: connect:"
    r"|container runtime (?:is down|status check may not have completed|network not ready)"
)


def _stopped(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return observation.values["state"] in ("inactive", "failed", "deactivating")


def _node(observation: Observation, _match: Match, scene: Scene) -> Thing:
    if observation.about.kind == "node":
        return observation.about
    pod = scene.pods.get(observation.about.name)
    return Thing("node", pod.node) if pod and pod.node else NOTHING


def _down(observation: Observation, _match: Match, scene: Scene) -> bool:
    """The node's own state, not that of a moment which is over."""
    node = _node(observation, _match, scene).name
    states = [row.values.get("status", "") for row in scene.of(Fact.OBJECT) if row.about == Thing("node", node)]
    return not scene.overcome(observation) and (not states or any("NotReady" in state for state in states))


def _unit(hypothesis: Hypothesis) -> str:
    return hypothesis.part("unit") or "containerd"


def _tell(hypothesis: Hypothesis, _scene: Scene) -> Account:
    unit = _unit(hypothesis)
    did = "places no pods" if unit == "kube-scheduler" else "has lost a part of Kubernetes"
    return Account(did=did, because=f"{unit} is not running on it", trigger="unknown", variant=unit)


def _steps(hypothesis: Hypothesis, _scene: Scene) -> list[NextStep]:
    unit, node = _unit(hypothesis), hypothesis.component.name
    return [
        steps.look(f"Read its state on {node}", f"systemctl status {unit}; journalctl -u {unit} --since -1h"),
        steps.change(
            "Start it again",
            "what it does stays undone until then",
            risk="pods on the node may be restarted",
            undo=f"systemctl stop {unit}",
            command=f"systemctl start {unit}",
        ),
    ]


def states_of(nodes: Iterable[str], units: Iterable[str]) -> Iterator[Want]:
    for node in list(dict.fromkeys(nodes))[:MAX_NODES]:
        for unit in units:
            if is_object_name(node):
                yield Want(act=Act.SERVICE_STATUS, arguments={"node": node, "service": unit})


def _look(hypothesis: Hypothesis, _scene: Scene) -> Iterator[Want]:
    yield from states_of([hypothesis.component.name], UNITS)


NODE_COMPONENT = Rule(
    name="node_component_down",
    title="a system service of a node is stopped",
    depth=44,
    signs=(
        Sign(
            name="the service is not running",
            weight="decisive",
            facts=(Fact.UNIT,),
            holds=_stopped,
            component=_node,
        ),
        Sign(
            name="the container runtime does not answer on its socket",
            weight="decisive",
            facts=(Fact.EVENT, Fact.CONDITION),
            pattern=_RUNTIME,
            holds=_down,
            component=_node,
        ),
    ),
    looks=(_look, looks.describe_component("node")),
    tells=_tell,
    steps=_steps,
)


def _unplaced(scene: Scene) -> list[Observation]:
    """Pods that no node has, of which the scheduler has said nothing."""
    told = {event.about.name for event in scene.of(Fact.EVENT) if "Schedul" in event.values.get("reason", "")}
    rows = (pod.row for pod in scene.pods.values() if pod.status == "Pending" and not pod.node)
    return [row for row in rows if row.about.name not in told]


def _silent(observation: Observation, _match: Match, scene: Scene) -> bool:
    return observation.about in {row.about for row in scene.once("unplaced", _unplaced)}


def unplaced(scene: Scene) -> bool:
    return bool(scene.once("unplaced", _unplaced))


def _scheduler(_observation: Observation, _match: Match, scene: Scene) -> Thing:
    found = control_plane(scene)
    return Thing("node", found[0]) if len(found) == 1 else NOTHING


def _look_at_scheduler(_hypothesis: Hypothesis, scene: Scene) -> Iterator[Want]:
    yield looks.get("nodes", scene)
    yield Want(act=Act.GET, arguments={"kind": "pods", "namespace": "kube-system"})
    yield from states_of(control_plane(scene), ("kube-scheduler",))


SCHEDULER_SILENT = Rule(
    name="scheduler_silent",
    title="the scheduler does not act",
    depth=30,
    signs=(
        Sign(
            name="a pod waits for a node, and the scheduler says nothing of it",
            weight="supporting",
            facts=(Fact.POD,),
            holds=_silent,
            component=_scheduler,
        ),
    ),
    looks=(_look_at_scheduler,),
    tells=lambda _hypothesis, _scene: Account(
        did="places no pods", because="its scheduler does not act", trigger="unknown"
    ),
)
