"""A pod stays pending because no node can take it."""

from __future__ import annotations

import re

from agent.report import NextStep, Trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.nodes import closed, control_plane, nodes
from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene

# The scheduler's own words for each predicate, and ours. Volumes come first: with them nothing else is tried.
_PREDICATES = (
    (
        "volume",
        r"unbound immediate PersistentVolumeClaims|persistentvolumeclaim \\?\"[^\"]{1,253}\" not found",
        "its volume claim is not bound",
    ),
    ("volume_node", r"volume node affinity conflict", "its volume is tied to another node or zone"),
    ("cpu", r"Insufficient cpu", "no node has enough CPU left for its request"),
    ("memory", r"Insufficient memory", "no node has enough memory left for its request"),
    (
        "resource",
        r"Insufficient (?!cpu|memory)[a-z0-9./-]{1,80}|Too many pods",
        "no node has enough of what it requests",
    ),
    (
        "anti_affinity",
        r"didn't match pod (?:anti-)?affinity rules|didn't satisfy existing pods anti-affinity",
        "its pod affinity rules exclude every node",
    ),
    (
        "selector",
        r"didn't match Pod's node affinity/selector|didn't match node selector",
        "no usable node matches its node selector or affinity",
    ),
    ("taint", r"had (?:untolerated )?taints?", "it does not tolerate the nodes' taints"),
    ("cordoned", r"were unschedulable", "the nodes are cordoned"),
    ("topology", r"topology spread constraints", "its spread constraints exclude every node"),
    ("ports", r"didn't have free ports", "its host port is taken on every node"),
)
PREDICATES = tuple((name, re.compile(pattern), because) for name, pattern, because in _PREDICATES)


def predicates(message: str) -> list[tuple[str, str]]:
    """What the scheduler says stands in the way, likeliest cause first."""
    text = message.partition("preemption:")[0]
    return [(name, because) for name, pattern, because in PREDICATES if pattern.search(text)]


def obstacle(message: str, workload: str, scene: Scene) -> tuple[str, str]:
    """What keeps the pod from the nodes that it is meant for.

    Nodes that it does not select are left out on purpose, and those of the control plane are closed as a rule: they
    count only where nothing else stands in the way.
    """
    found = dict(predicates(message))
    if "cordoned" in found and not _cordoned_beyond_control_plane(message, scene):
        found = {name: because for name, because in found.items() if name != "cordoned"} or found
    name = next((name for name in _BY_WEIGHT if name in found), "")
    if name == "selector":
        name = "selector" if _selects(workload, scene) else "affinity"
        return name, found["selector"]
    return name, found.get(name, "no node can take it")


_BY_WEIGHT = (
    *("volume", "volume_node", "taint", "cpu", "memory", "resource", "anti_affinity", "topology", "ports"),
    *("cordoned", "selector"),
)


def _cordoned_beyond_control_plane(message: str, scene: Scene) -> bool:
    count = _CORDONED.search(message)
    expected = set(closed(scene)) & set(control_plane(scene)) if any(True for _ in nodes(scene)) else {"one"}
    return count is not None and int(count[1]) > len(expected)


def _selects(workload: str, scene: Scene) -> bool:
    """Whether the pods have a plain node selector, as `describe` tells it."""
    lines = (line for line in scene.of(Fact.CONDITION) if scene.owner(line.about).name == workload)
    told = {line.values.get("value", "") for line in lines if _SELECTOR.fullmatch(line.values.get("section", ""))}
    return bool(told - {"", "<none>"})


_NODE_TAINT = re.compile(r"taint \{node\.kubernetes\.io/(?!unschedulable)")
_CORDONED = re.compile(r"(\d{1,5}) node\(s\) were unschedulable")
_SELECTOR = re.compile(r"Node-Selectors|node selector")


def _pending(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return observation.values.get("status") == "Pending"


def _stands(_observation: Observation, match: Match, _scene: Scene) -> bool:
    """A pod that is being deleted, and one that only waits for its volume, have another story."""
    text = match.string.partition("preemption:")[0]
    own = _NODE_TAINT.search(text) is not None and {name for name, _ in predicates(text)} <= {"taint", "cordoned"}
    return "skip schedule" not in text and not own  # a taint by which Kubernetes marks a node that has failed


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    name, because = obstacle(hypothesis.part("message"), hypothesis.component.name, scene)
    began: Trigger = "capacity" if name in ("cpu", "memory", "resource") else "config"
    return Account(did="can't be scheduled", because=because, trigger=began, variant=name)


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    pods = looks.worst_pods(hypothesis.component, scene)[:1]
    return [
        *[steps.look("Read the scheduler's reasons", f"kubectl describe pod {pod}{steps.flag(scene)}") for pod in pods],
        steps.look("Compare with what the nodes offer", "kubectl describe nodes | grep -A8 'Allocated resources'"),
        steps.history(hypothesis, scene),
        *steps.roll_back(hypothesis, scene, "if the requirement came with the last roll-out"),
    ]


SCHEDULING = Rule(
    name="unschedulable",
    title="no node can take a pod",
    depth=32,
    signs=(
        Sign(
            name="the scheduler found no node",
            weight="decisive",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"FailedScheduling\b.{0,400}(?:nodes are available|persistentvolumeclaim)"),
            holds=_stands,
        ),
        Sign(name="the pod is pending", weight="supporting", facts=(Fact.POD,), holds=_pending),
    ),
    looks=(
        looks.describe_pods,
        looks.list_of("nodes"),
        looks.list_of("persistentvolumeclaims"),
    ),
    tells=_tell,
    steps=_steps,
)
