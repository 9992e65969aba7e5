"""What a mechanism is: the signs that prove or contradict it, what to look at next, and how it is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from agent.report import NextStep, Trigger, Weight
from agent.rules.observation import NOTHING, Fact, Observation, Thing, quote
from agent.rules.scene import Scene, earliest
from agent.rules.toolbox import Act

ANYTHING = re.compile("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One thing to look at, in our own words; the toolbox puts it into a tool's."""

    act: Act
    arguments: Mapping[str, Any]


Match = re.Match[str]
Holds = Callable[[Observation, Match, Scene], bool]
Places = Callable[[Observation, Match, Scene], Thing]


def always(_observation: Observation, _match: Match, _scene: Scene) -> bool:
    return True


def owner(observation: Observation, _match: Match, scene: Scene) -> Thing:
    """The workload behind what was observed."""
    return scene.owner(observation.about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One thing to recognise. `pattern` is searched in the observation's text, `holds` then decides.

    `component` names what would be at fault; a sign gives NOTHING where it can't tell. `dated` is False where the
    time of what was seen (a series' largest step) is not the time from which the sign holds.
    """

    name: str
    weight: Weight
    facts: tuple[Fact, ...]
    pattern: re.Pattern[str] = ANYTHING
    holds: Holds = always
    component: Places = owner
    dated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sign that was seen, and where. `parts` are the named groups of its pattern and the observation's values."""

    sign: str
    weight: Weight
    observation: Observation
    quote: str
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A mechanism at work in one component, with all that speaks for and against it."""

    mechanism: Mechanism
    component: Thing
    findings: tuple[Finding, ...]
    affects: frozenset[str] = frozenset()  # workloads that suffer from it, beside those that call the component

    def having(self, *weights: Weight) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.weight in weights)

    @property
    def best(self) -> Finding:
        """The finding the account is told from: the first of the heaviest."""
        order: Sequence[Weight] = ("decisive", "supporting", "context", "contradicting")
        return min(self.findings, key=lambda finding: order.index(finding.weight))

    @property
    def onset(self) -> datetime | None:
        """The earliest of its signs: a last state or the end of a log says only that it was still so."""
        return earliest(finding.observation.began for finding in self.having("decisive", "supporting"))

    def part(self, key: str) -> str:
        """The first value any finding has under this key, the heaviest findings first."""
        ordered = (*self.having("decisive"), *self.having("supporting"), *self.having("context"))
        return next((finding.parts[key] for finding in ordered if finding.parts.get(key)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """How a hypothesis is told: "`component` `did` because `because`"."""

    did: str
    because: str
    trigger: Trigger = "unknown"
    variant: str = ""  # the kind of this mechanism: an image that can't be pulled for lack of `credentials`


class Mechanism(Protocol):
    """One way in which things break.

    `depth` orders causes: what lies deeper explains what lies above it (a full disk explains a crash loop, a
    crash loop explains a caller's refused connection).
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """As it is listed under "ruled out"."""
        ...

    @property
    def depth(self) -> int: ...

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        """Every component in which something speaks for or against this mechanism."""
        ...

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        """What would prove or contradict it."""
        ...

    def account(self, hypothesis: Hypothesis, scene: Scene) -> Account: ...

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]: ...


def finding(sign: str, seen: Observation, weight: Weight, parts: Mapping[str, str] | None = None) -> Finding:
    """A finding that quotes the observation from its start."""
    return Finding(sign=sign, weight=weight, observation=seen, quote=quote(seen.text), parts=parts or {})


def category(hypothesis: Hypothesis, account: Account) -> str:
    """`mechanism` or `mechanism.variant`: what a report files the cause under."""
    return ".".join(part for part in (hypothesis.mechanism.name, account.variant) if part)


Looks = Callable[[Hypothesis, Scene], Iterable[Want]]
Tells = Callable[[Hypothesis, Scene], Account]
Steps = Callable[[Hypothesis, Scene], Iterable[NextStep]]


Affects = Callable[[Sequence[Finding], Scene], frozenset[str]]


def told_by(findings: Sequence[Finding], scene: Scene) -> frozenset[str]:
    """Workloads whose own logs tell of it: it is their trouble too, wherever it lies."""
    logs = (finding.observation for finding in findings if finding.observation.fact is Fact.LOG)
    return frozenset(scene.owner(line.about).name for line in logs) - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A mechanism that is a list of signs: most are."""

    name: str
    title: str
    depth: int
    signs: tuple[Sign, ...]
    tells: Tells
    looks: tuple[Looks, ...] = ()
    steps: Steps = lambda _hypothesis, _scene: ()
    affects: Affects = told_by

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        found: dict[Thing, list[Finding]] = {}
        for sign in self.signs:
            for component, finding in recognise(sign, scene):
                found.setdefault(component, []).append(finding)
        return [
            Hypothesis(
                mechanism=self, component=component, findings=_relevant(findings), affects=self.affects(findings, scene)
            )
            for component, findings in found.items()
        ]

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        for look in self.looks:
            yield from look(hypothesis, scene)

    def account(self, hypothesis: Hypothesis, scene: Scene) -> Account:
        return self.tells(hypothesis, scene)

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        return self.steps(hypothesis, scene)


def _relevant(findings: list[Finding]) -> tuple[Finding, ...]:
    """Without contradictions that come from another pod than the proof: one pod's health says nothing of another's."""
    proof = {f.observation.about for f in findings if f.weight == "decisive" and f.observation.about.kind == "pod"}

    def speaks(finding: Finding) -> bool:
        about = finding.observation.about
        return finding.weight != "contradicting" or about.kind != "pod" or not proof or about in proof

    return tuple(finding for finding in findings if speaks(finding))


def _candidates(sign: Sign, scene: Scene) -> Iterable[Observation]:
    """Events that are overcome speak for nothing; against something they may."""
    if sign.weight == "contradicting":
        return scene.of(*sign.facts)
    others = (fact for fact in sign.facts if fact is not Fact.EVENT)
    return (*(scene.standing if Fact.EVENT in sign.facts else ()), *scene.of(*others))


def recognise(sign: Sign, scene: Scene) -> Iterable[tuple[Thing, Finding]]:
    """Where a sign is seen; what is too old to belong to the alert is not."""
    for observation in _candidates(sign, scene):
        match = sign.pattern.search(observation.text)
        if match is None or not scene.since(observation) or not sign.holds(observation, match, scene):
            continue
        if sign.weight == "contradicting" and scene.gone(observation):
            continue
        component = sign.component(observation, match, scene)
        if component == NOTHING or not component.name:
            continue
        parts = {**observation.values, **{key: value for key, value in match.groupdict().items() if value}}
        yield (
            component,
            Finding(
                sign=sign.name,
                weight=sign.weight,
                observation=observation if sign.dated else replace(observation, at=None),
                quote=quote(observation.text, match.start(), match.end()),
                parts=parts,
            ),
        )
