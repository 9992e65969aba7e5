"""The kernel kills a container that reaches its memory limit."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.changes import limit_change
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene

NEAR_LIMIT = 0.95
FAR_FROM_LIMIT = 0.6


def _share_of_limit(used: Observation, scene: Scene) -> float | None:
    """The peak of a container's memory over its limit, both as metrics."""
    key = ("label_pod", "label_container")
    for limit in scene.of(Fact.SERIES):
        same = all(limit.values.get(k) == used.values.get(k) for k in key)
        if limit.values.get("measure") == "memory_limit" and same and limit.number("last"):
            return (used.number("max") or 0.0) / (limit.number("last") or 1.0)
    return None


def _at_limit(observation: Observation, _match: Match, scene: Scene) -> bool:
    share = _share_of_limit(observation, scene) if observation.values.get("measure") == "memory_used" else None
    return share is not None and share >= NEAR_LIMIT


def _far(observation: Observation, _match: Match, scene: Scene) -> bool:
    share = _share_of_limit(observation, scene) if observation.values.get("measure") == "memory_used" else None
    return share is not None and share < FAR_FROM_LIMIT


def _lowered(observation: Observation, _match: Match, scene: Scene) -> bool:
    change = limit_change(scene.owner(observation.about).name, "memory", scene)
    return change is not None and observation in change.seen


def _ended_otherwise(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return observation.values.get("when") == "last" and observation.values.get("reason") not in (None, "OOMKilled")


def _limit(hypothesis: Hypothesis, scene: Scene) -> str:
    """The limit of the containers that were killed, as `describe` gives it."""
    container = hypothesis.part("container")
    limits = [
        limit
        for limit in scene.of(Fact.LIMIT)
        if limit.values["what"] == "limits"
        and limit.values["resource"] == "memory"
        and limit.about.kind == "pod"
        and scene.owner(limit.about) == hypothesis.component
    ]
    mine = [limit for limit in limits if limit.values["container"] == container] or limits
    return mine[0].values["quantity"] if mine else ""


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    change = limit_change(hypothesis.component.name, "memory", scene)
    if change is not None:
        return Account(did="is OOM-killed", because=f"a roll-out cut it: {change.what}", trigger="change")
    limit = _limit(hypothesis, scene)
    because = f"it reaches its memory limit of {limit}" if limit else "it reaches its memory limit"
    return Account(did="is OOM-killed", because=because, trigger="capacity")


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    name, namespace = hypothesis.component.name, steps.flag(scene)
    return [
        steps.look("Compare memory use with the limit", f"kubectl top pods{namespace} --containers"),
        steps.history(hypothesis, scene),
        *steps.roll_back(hypothesis, scene, "brings the former memory limit back"),
        steps.change(
            "Raise the memory limit",
            "the container needs more than it may use",
            risk="restarts the pods; the node must have the memory",
            undo="set the former limit again",
            command=f"kubectl set resources deployment/{name}{namespace} --limits=memory=<size>",
        ),
    ]


OOM = Rule(
    name="memory_limit",
    title="a container was killed for its memory",
    depth=30,
    signs=(
        Sign(
            name="a container ended as OOMKilled",
            weight="decisive",
            facts=(Fact.CONTAINER,),
            pattern=re.compile(r"(?:Reason:\s+|terminated )OOMKilled"),
        ),
        Sign(
            name="the node reports an OOM kill",
            weight="decisive",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"\bOOMKilling\b|container init was OOM-killed|\bOOMKilled\b"),
        ),
        Sign(
            name="the pod list shows OOMKilled",
            weight="supporting",
            facts=(Fact.POD,),
            pattern=re.compile(r"\bOOMKilled\b"),
        ),
        Sign(name="memory reaches its limit", weight="supporting", facts=(Fact.SERIES,), holds=_at_limit, dated=False),
        Sign(
            name="the last roll-out lowered the limit",
            weight="supporting",
            facts=(Fact.LIMIT, Fact.CHANGE),
            holds=_lowered,
        ),
        Sign(name="memory stays far below its limit", weight="contradicting", facts=(Fact.SERIES,), holds=_far),
        Sign(
            name="the container ended for another reason",
            weight="contradicting",
            facts=(Fact.CONTAINER,),
            holds=_ended_otherwise,
        ),
    ),
    looks=(looks.describe_pods, looks.describe_revisions, looks.series("memory_used", "memory_limit", "restarts")),
    tells=_tell,
    steps=_steps,
)
