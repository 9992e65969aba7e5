"""A namespace's quota refuses new pods or objects."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.scene import Scene

_EXCEEDED = re.compile(
    r"exceeded quota: (?P<quota>[a-z0-9.-]{1,253}), requested: (?P<requested>[^,]{1,100})"
    r"(?:,[^,]{1,100}){0,4}?, used: (?P<used>[^ ]{1,100}).{0,200}?limited: (?P<limited>[^ ]{1,100})"
)
_FULL = re.compile(
    r"(?<![a-z0-9./-])(?P<resource>[a-z][a-z0-9./-]{0,80}):? *(?P<used>\d[0-9.]{0,12}[A-Za-z]{0,2})(?:/|\s+)"
    r"(?P<hard>\d[0-9.]{0,12}[A-Za-z]{0,2})"
)


def _namespace(observation: Observation, _match: Match, scene: Scene) -> Thing:
    name = scene.subject.namespace
    return Thing("namespace", name) if name else scene.owner(observation.about)


def _used_up(observation: Observation, _match: Match, _scene: Scene) -> bool:
    """A line of a quota whose use has reached the limit."""
    if observation.about.kind not in ("resourcequota", "namespace"):
        return False
    return any(m["used"] == m["hard"] != "0" for m in _FULL.finditer(observation.text))


def _refused(observation: Observation, match: Match, scene: Scene) -> Thing:
    return _namespace(observation, match, scene) if _used_up(observation, match, scene) else NOTHING


def _tell(hypothesis: Hypothesis, _scene: Scene) -> Account:
    quota, limited = hypothesis.part("quota"), hypothesis.part("limited")
    if not quota:
        return Account(did="can't get more pods", because="a quota is used up", trigger="capacity")
    because = f"quota {quota} is used up ({limited})"
    return Account(did="refuses new pods", because=because, trigger="capacity")


def _steps(_hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    return [
        steps.look("See what uses the quota", f"kubectl describe resourcequota{steps.flag(scene)}"),
        steps.change(
            "Raise the quota, or free what is not needed",
            "no new pod is admitted until there is room",
            risk="a higher quota can starve other namespaces of nodes",
            undo="set the former quota again",
        ),
    ]


QUOTA = Rule(
    name="quota_exceeded",
    title="a quota is used up",
    depth=36,
    signs=(
        Sign(
            name="a quota refused a new object",
            weight="decisive",
            facts=(Fact.EVENT, Fact.CONDITION),
            pattern=_EXCEEDED,
            component=_namespace,
        ),
        Sign(
            name="the quota is used up",
            weight="supporting",
            facts=(Fact.OBJECT, Fact.CONDITION),
            pattern=_FULL,
            component=_refused,
        ),
    ),
    looks=(looks.list_of("resourcequotas"),),
    tells=_tell,
    steps=_steps,
)
