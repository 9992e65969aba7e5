"""A workload that others call runs no pods, because it is scaled to zero."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene


def _zero(observation: Observation, _match: Match, scene: Scene) -> bool:
    """Zero on purpose is normal; it is a fault where it is called, has a service, or where the alert is about it."""
    owner = scene.owner(observation.about)
    wanted = observation.values.get("desired") == "0" and observation.about.kind in ("deployment", "statefulset")
    served = any(row.about.kind == "service" and row.about.name == owner.name for row in scene.of(Fact.OBJECT))
    return wanted and (served or owner.name in scene.callers or scene.near(owner) == 2)


def _tell(_hypothesis: Hypothesis, _scene: Scene) -> Account:
    return Account(did="has no pods", because="it is scaled to zero replicas", trigger="change")


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    name, namespace = hypothesis.component.name, steps.flag(scene)
    return [
        steps.look("See who scaled it", f"kubectl get events{namespace} --field-selector involvedObject.name={name}"),
        steps.change(
            "Scale it up again",
            "it serves nothing without pods",
            risk="someone may have scaled it down on purpose",
            undo=f"kubectl scale deployment/{name}{namespace} --replicas=0",
            command=f"kubectl scale deployment/{name}{namespace} --replicas=1",
        ),
    ]


SCALED_TO_ZERO = Rule(
    name="scaled_to_zero",
    title="a workload is scaled to zero",
    depth=34,
    signs=(
        Sign(name="it wants no replicas", weight="decisive", facts=(Fact.WORKLOAD,), holds=_zero),
        Sign(
            name="it was scaled down to zero",
            weight="supporting",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"ScalingReplicaSet.{0,200}[Ss]caled down .{0,200} to 0 from \d{1,5}$"),
            holds=lambda observation, _match, scene: scene.owner(observation.about).name in scene.callers,
        ),
    ),
    looks=(looks.describe_workload,),
    tells=_tell,
    steps=_steps,
)
