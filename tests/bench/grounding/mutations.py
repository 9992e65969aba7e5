"""Ways in which a model gets a report wrong, and how the checked report must show it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from agent.report import Citation, Draft, Link, Moment, Report
from tests.bench.grounding.recorded import Recorded

_FIGURE = re.compile(r"\d{1,9}")

FABRICATED = (
    "OutOfMemoryError: Metaspace of the billing worker exceeded 3971 MiB",
    "replica lag of the standby reached 47.31 seconds at the last check",
    "kernel: nf_conntrack: table full, dropping packet from 203.0.113.77",
)
SECRETS = ("AKIAQ7ZN3MVB5TXW2RJD", "ghp_a8Kd02mXv71LqPz4RtYw93BnCe65JfUh0sGi")


@dataclass(frozen=True, slots=True)
class Mutation:
    """`make` spoils a draft; `caught` says whether the report made of it shows so."""

    make: Callable[[Recorded, random.Random], Draft]
    caught: Callable[[Report, Recorded], bool]


def _quote(recorded: Recorded, chance: random.Random) -> Draft:
    draft = recorded.draft
    chosen = chance.randrange(len(draft.evidence))
    honest = draft.evidence[chosen].quote
    altered = _altered(honest, chance) if chance.random() < 0.5 else ""
    false = draft.evidence[chosen].model_copy(update={"quote": altered or chance.choice(FABRICATED)})
    return draft.model_copy(update={"evidence": _with(draft.evidence, chosen, false)})


def _altered(quote: str, chance: random.Random) -> str:
    """The quote with one figure swapped for another; empty where it has none."""
    figures = list(_FIGURE.finditer(quote))
    if not figures:
        return ""
    match = chance.choice(figures)
    return f"{quote[: match.start()]}{int(match[0]) + 70_707}{quote[match.end() :]}"


def _id(recorded: Recorded, chance: random.Random) -> Draft:
    draft = recorded.draft
    chosen = chance.randrange(len(draft.evidence))
    wrong = draft.evidence[chosen].model_copy(update={"call": f"T{chance.randrange(400, 900)}"})
    return draft.model_copy(update={"evidence": _with(draft.evidence, chosen, wrong)})


def _time(recorded: Recorded, chance: random.Random) -> Draft:
    at = recorded.now + chance.choice((timedelta(days=-60), timedelta(hours=5), timedelta(days=400)))
    moment = Moment(at=at, what="it began", evidence=(recorded.draft.evidence[0].id,))
    return recorded.draft.model_copy(update={"timeline": (*recorded.draft.timeline, moment)})


def _number(recorded: Recorded, chance: random.Random) -> Draft:
    number = f"{chance.randrange(6000, 9900)}.{chance.randrange(11, 99)}"
    headline = f"{recorded.draft.headline[:70]}: {number} requests lost"
    return recorded.draft.model_copy(update={"headline": headline})


def _uncited(recorded: Recorded, _chance: random.Random) -> Draft:
    link = Link.model_validate({"from": "the last release", "to": "the outage", "relation": "causes"})
    return recorded.draft.model_copy(update={"causal_chain": (*recorded.draft.causal_chain, link)})


def _confidence(recorded: Recorded, chance: random.Random) -> Draft:
    """It keeps its claim to a cause though the proof is gone, or though something speaks against it."""
    draft = recorded.draft
    if chance.random() < 0.5:
        weak = [one.model_copy(update={"weight": "supporting"}) for one in draft.evidence]
        return draft.model_copy(update={"evidence": tuple(weak)})
    against = draft.evidence[-1].model_copy(update={"weight": "contradicting"})
    return draft.model_copy(update={"evidence": _with(draft.evidence, len(draft.evidence) - 1, against)})


def _secret(recorded: Recorded, chance: random.Random) -> Draft:
    return recorded.draft.model_copy(update={"body": f"{recorded.draft.body}\nIt used {chance.choice(SECRETS)}."})


def _with(evidence: tuple[Citation, ...], place: int, changed: Citation) -> tuple[Citation, ...]:
    return (*evidence[:place], changed, *evidence[place + 1 :])


MUTATIONS: Mapping[str, Mutation] = {
    "quote": Mutation(_quote, lambda report, _: report.checks.quotes_failed == 1),
    "id": Mutation(_id, lambda report, _: report.checks.quotes_failed == 1),
    "time": Mutation(_time, lambda report, base: report.checks.times_out_of_window > _late(base)),
    "number": Mutation(_number, lambda report, _: "[not verified]" in report.headline),
    "uncited": Mutation(
        _uncited, lambda report, base: report.checks.claims_uncited > base.report.checks.claims_uncited
    ),
    "confidence": Mutation(_confidence, lambda report, _: report.confidence.level != "high"),
    "secret": Mutation(_secret, lambda report, _: not any(one in report.model_dump_json() for one in SECRETS)),
}


def _late(base: Recorded) -> int:
    return base.report.checks.times_out_of_window


def rejected(report: Report) -> bool:
    """Whether anything of an honest report was marked or dropped."""
    checks = report.checks
    marked = "[not verified]" in report.headline or not all(one.verified for one in report.evidence)
    return bool(checks.quotes_failed or checks.claims_uncited or checks.times_out_of_window or marked)
