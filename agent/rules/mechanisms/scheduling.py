"""A pod stays pending because no node can take it."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
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


def _pending(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return observation.values.get("status") == "Pending"


def _tell(hypothesis: Hypothesis, _scene: Scene) -> Account:
    found = predicates(hypothesis.part("message"))
    because = " and ".join(text for _, text in found[:2]) or "no node can take it"
    capacity = bool(found) and found[0][0] in ("cpu", "memory", "resource")
    return Account(did="can't be scheduled", because=because, trigger="capacity" if capacity else "config")


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
