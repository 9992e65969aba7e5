"""The citations of a report: numbered, few, the heaviest first, and no fact told twice."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent.report import Citation, Weight
from agent.rules.mechanisms.port import Finding, Hypothesis
from agent.rules.observation import KIND_OF_EVIDENCE, Fact, Observation, quote

MAX_EVIDENCE = 10

_VARYING = re.compile(r"[0-9a-f]{6,}|-[bcdfghjklmnpqrstvwxz2456789]{5,10}\b|\d+(?:\.\d+)?")
_STAMPED = re.compile(r"^\S{20,30}Z? (?:\{[^}]*\} )?(?:\(x\d[^)]*\) )?")


class Evidence:
    """Lines are cited in the order in which they are asked for. Once the page is full nothing more is: a claim that
    could not be cited is left out by its teller."""

    def __init__(self, room: int = MAX_EVIDENCE) -> None:
        self._cited: dict[str, Citation] = {}
        self._room = room

    def cite(self, observation: Observation, text: str, weight: Weight) -> str:
        """The citation's id; empty where there is no room."""
        key = " ".join(text.split())
        if key not in self._cited:
            if len(self._cited) >= self._room:
                return ""
            self._cited[key] = Citation(
                id=f"E{len(self._cited) + 1}",
                call=observation.ref,
                kind=KIND_OF_EVIDENCE.get(observation.fact, "object"),
                quote=text,
                weight=weight,
            )
        return self._cited[key].id

    def whole(self, observation: Observation, weight: Weight) -> str:
        return self.cite(observation, quote(observation.text), weight)

    def of(self, seen: Iterable[Finding], weight: Weight | None = None) -> tuple[str, ...]:
        ids = (self.cite(one.observation, one.quote, weight or one.weight) for one in seen)
        return tuple(dict.fromkeys(one for one in ids if one))

    @property
    def all(self) -> tuple[Citation, ...]:
        return tuple(self._cited.values())


def telling(hypothesis: Hypothesis, weight: Weight, most: int) -> list[Finding]:
    """A few findings of one weight: one a sign before any sign has two, and none that says the same of a sibling."""
    found: dict[tuple[Fact, str], Finding] = {}
    for finding in hypothesis.having(weight):
        found.setdefault((finding.observation.fact, wording(finding.quote)), finding)
    signs: dict[str, Finding] = {}
    for finding in found.values():
        signs.setdefault(finding.sign, finding)
    rest = [finding for finding in found.values() if signs[finding.sign] is not finding]
    return [*signs.values(), *rest][:most]


def wording(text: str) -> str:
    """What a line says without its numbers, times and generated names."""
    return _VARYING.sub("#", _STAMPED.sub("", " ".join(text.split())))[:160]
