"""A node does not report, so that what runs on it is lost."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.scene import Scene


def _not_ready(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return observation.about.kind == "node" and "NotReady" in observation.values.get("status", "")


def _ready(observation: Observation, _match: Match, _scene: Scene) -> bool:
    status = observation.values.get("status", "")
    return observation.about.kind == "node" and status.partition(",")[0] == "Ready"


def _node(observation: Observation, _match: Match, _scene: Scene) -> Thing:
    return observation.about


def _tell(_hypothesis: Hypothesis, _scene: Scene) -> Account:
    return Account(did="is not ready", because="its kubelet does not report", trigger="unknown")


def _steps(hypothesis: Hypothesis, _scene: Scene) -> list[NextStep]:
    name = hypothesis.component.name
    return [
        steps.look("Read the node's conditions", f"kubectl describe node {name}"),
        steps.look("Look at the kubelet on the node", "journalctl -u kubelet --since -1h"),
    ]


NODE_DOWN = Rule(
    name="node_not_ready",
    title="a node is not ready",
    depth=42,
    signs=(
        Sign(name="the node is not ready", weight="decisive", facts=(Fact.OBJECT,), holds=_not_ready, component=_node),
        Sign(
            name="the node's status is unknown",
            weight="decisive",
            facts=(Fact.CONDITION,),
            pattern=re.compile(r"^(?:condition )?Ready(?:\s+|=)(?:Unknown|False)\b"),
            holds=lambda observation, _match, _scene: observation.about.kind == "node",
            component=_node,
        ),
        Sign(
            name="events say the node is not ready",
            weight="supporting",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"\bNodeNotReady\b"),
            holds=lambda observation, _match, _scene: observation.about.kind == "node",
            component=_node,
        ),
        Sign(name="the node is ready", weight="contradicting", facts=(Fact.OBJECT,), holds=_ready, component=_node),
    ),
    looks=(looks.list_of("nodes"), looks.describe_component("node")),
    tells=_tell,
    steps=_steps,
)
