"""The table by which hypotheses are weighed, ranked and, where too little speaks for any, declined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.report import Weight
from agent.rules.mechanisms.port import Hypothesis, Mechanism
from agent.rules.observation import Thing
from agent.rules.recovered import Symptom, pods_healthy, symptom, warnings
from agent.rules.scene import Scene

# One decisive sign outweighs any number of supporting ones, and a contradiction takes most of it back.
FIRST_DECISIVE = 12.0
POINTS: Mapping[Weight, float] = {"decisive": 3.0, "supporting": 3.0, "context": 0.0, "contradicting": -8.0}
NEARNESS: Mapping[int, float] = {2: 6.0, 1: 4.0, 0: 0.0}
DEPTH = 0.1  # points a step of depth: of two equal ones the deeper is the cause
ENOUGH = 6.0  # what supporting signs alone must reach
MAX_SUPPORTING = 4


class Finding(StrEnum):
    ROOT_CAUSE = "root_cause"
    NOT_AN_ISSUE = "not_an_issue"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    hypothesis: Hypothesis
    points: float
    near: int

    @property
    def decisive(self) -> bool:
        return bool(self.hypothesis.having("decisive"))

    @property
    def refuted(self) -> bool:
        """What speaks against it outweighs what speaks for it; a decisive sign is never argued away."""
        return bool(self.hypothesis.having("contradicting")) and not self.decisive


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`best` explains `explained`, nearest symptom last; `others` stand beside it; `refuted` were looked at in vain."""

    finding: Finding
    best: Scored | None
    explained: tuple[Scored, ...]
    others: tuple[Scored, ...]
    refuted: tuple[Scored, ...]
    symptom: Symptom


def weigh(scene: Scene, mechanisms: Iterable[Mechanism]) -> tuple[Scored, ...]:
    """Every hypothesis there is something to say for or against, the likeliest first."""
    scored = (score(hypothesis, scene) for mechanism in mechanisms for hypothesis in mechanism.hypotheses(scene))
    return tuple(sorted(scored, key=lambda s: -s.points))


def judge(scene: Scene, scored: Sequence[Scored]) -> Verdict:
    """What is concluded from everything seen so far; `scored` is what `weigh` gave."""
    standing = [s for s in scored if not s.refuted]
    told = symptom(scene)
    candidates = [s for s in standing if _convicts(s, told, scene)]
    best = _deepest(candidates, scene)
    explained = tuple(s for s in standing if best and s is not best and s.points > 0 and _explains(best, s, scene))
    finding = Finding.ROOT_CAUSE if best else _without_cause(told, scene)
    return Verdict(
        finding=finding,
        best=best,
        explained=tuple(sorted(explained, key=lambda s: -s.hypothesis.mechanism.depth)),
        others=tuple(s for s in standing if s is not best and s not in explained and s.points > 0),
        refuted=tuple(s for s in scored if s.refuted),
        symptom=told,
    )


def score(hypothesis: Hypothesis, scene: Scene) -> Scored:
    """A sign counts once, however often it is seen."""
    signs = {finding.sign: finding.weight for finding in hypothesis.findings}
    points = sum(POINTS[weight] for weight in signs.values() if weight != "supporting")
    supporting = sum(weight == "supporting" for weight in signs.values())
    points += POINTS["supporting"] * min(supporting, MAX_SUPPORTING)
    if "decisive" in signs.values():
        points += FIRST_DECISIVE - POINTS["decisive"]
    near = scene.near(hypothesis.component) or int(scene.focus.name in hypothesis.affects)
    if points > 0:
        points += NEARNESS[near] + DEPTH * hypothesis.mechanism.depth
    return Scored(hypothesis=hypothesis, points=points, near=near)


def _convicts(scored: Scored, told: Symptom, scene: Scene) -> bool:
    """One decisive sign, or several supporting ones that nothing contradicts.

    Where the alert's own metric says that nothing happened, logs and distant faults are not believed against it.
    """
    supporting = {finding.sign for finding in scored.hypothesis.having("supporting")}
    if told.now is False and (scored.near == 0 or not told.ever) and pods_healthy(scene) is not False:
        return False
    if scored.near == 0 and scene.pods_of(scene.focus.name):
        return False  # nothing leads from what the alert is about to this: it happens at the same time, no more
    if scored.decisive:
        return scored.points >= ENOUGH
    return len(supporting) >= 2 and scored.points >= ENOUGH and not scored.hypothesis.having("contradicting")


def _deepest(candidates: list[Scored], scene: Scene) -> Scored | None:
    """The best that no other candidate explains."""
    roots = [s for s in candidates if not any(_explains(o, s, scene) for o in candidates if o is not s)]
    return max(roots or candidates, key=lambda s: s.points, default=None)


def _explains(cause: Scored, effect: Scored, scene: Scene) -> bool:
    """The cause lies deeper, and in the same component, one that it calls, or what it stands on."""
    if cause.hypothesis.mechanism.depth <= effect.hypothesis.mechanism.depth or not cause.decisive:
        return False
    if effect.hypothesis.component.name in cause.hypothesis.affects:
        return True
    return touches(cause.hypothesis.component, effect.hypothesis.component, scene)


def touches(cause: Thing, effect: Thing, scene: Scene) -> bool:
    """Whether a fault of `cause` can show in `effect`."""
    if cause.name == effect.name or cause.kind == "namespace":
        return True
    if cause.kind == "node":  # what runs there, and what finds no place with the node gone
        return any(not pod.node or cause.name.startswith(pod.node) for pod in scene.pods_of(effect.name))
    if cause.kind == "volume":
        return effect.name in cause.name
    return cause.name in scene.downstream(effect.name)


def _without_cause(told: Symptom, scene: Scene) -> Finding:
    """A clean bill of health needs the alert's own metric; healthy pods alone say nothing of it."""
    well = pods_healthy(scene) is not False and not warnings(scene)
    return Finding.NOT_AN_ISSUE if told.now is False and well else Finding.INCONCLUSIVE
