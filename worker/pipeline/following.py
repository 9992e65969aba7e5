"""What a lead says of its followers, and the one line that a follower gets instead of an investigation of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256

from agent.case import Redact
from agent.report import MAX_HEADLINE_CHARS, Confidence, NotChecked, Outcome, Related, Report, Run
from worker.pipeline.failure import summary_of
from worker.record import Record
from worker.store import Store

SHOWN = 20  # followers that are named one by one
DIGEST = "digest"  # the id of the entry that counts them all


def line(record: Record, lead: Record, report: Report | None, now: datetime) -> Report:
    """The short report of a follower. `report` is the lead's; None when it was written before Redis was flushed."""
    told = report.headline if report else "see its report"
    why = f"{report.outcome.value}: {report.headline}" if report else ""
    url = lead.receipt.url if lead.receipt else ""  # the note's own: what the alert says of itself is hostile
    says = record.follows or f"same incident as {lead.key}"
    return Report(
        alert=summary_of(record.alert),
        run=_run(record, now),
        outcome=Outcome.DUPLICATE_OF,
        confidence=report.confidence if report else Confidence(level="low", basis="its lead's report is elsewhere"),
        headline=f"{says[:1].upper()}{says[1:]}: {told}"[:MAX_HEADLINE_CHARS],
        related=(Related(kind="correlated_alert", id=lead.key, url=url, why=why),),
    )


def not_investigated(record: Record, lead: Record, now: datetime) -> Report:
    """When neither the lead nor its successor could be investigated."""
    return Report(
        alert=summary_of(record.alert),
        run=_run(record, now),
        outcome=Outcome.INCONCLUSIVE,
        confidence=Confidence(level="low", basis="not investigated"),
        headline=f"Not investigated: {lead.key}, which it belongs to, failed twice"[:MAX_HEADLINE_CHARS],
        not_checked=(NotChecked(what="everything", reason="error"),),
        related=(Related(kind="correlated_alert", id=lead.key, why=lead.reason),),
    )


def digest_of(line: Report) -> str:
    """By which it is known that the ticket has this line already; the stored report may be newer than the ticket."""
    told = line.model_dump_json(include={"outcome", "headline", "related", "confidence"})
    return sha256(told.encode()).hexdigest()[:16]


def followers(store: Store, key: str) -> tuple[Related, ...]:
    """Alerts that joined the lead `key`: the first few by name, all of them counted when there are more."""
    found = [
        Related(kind="correlated_alert", id=one.key, url=one.alert.url, why=_told(one))
        for one in store.followers(key, SHOWN)
    ]
    if len(found) == SHOWN:
        found.append(Related(kind="correlated_alert", id=DIGEST, why=digest(store.tally(key))))
    return tuple(found)


def with_followers(report: Report, store: Store, redactor: Callable[[], Redact]) -> Report:
    """The report with those that have joined by now."""
    found = followers(store, report.alert.key)
    if not found:
        return report
    others, redact = [item for item in report.related if item.kind != "correlated_alert"], redactor()
    joined = [item.model_copy(update={"why": redact(item.why)}) for item in found]
    return report.model_copy(update={"related": (*others, *joined)})


def digest(tally: dict[str, int]) -> str:
    """`9,990 alerts joined: 4,000 x PodCrashLooping in shop; ...`, the most frequent first."""
    ordered = sorted(tally.items(), key=lambda item: (-item[1], item[0]))
    kinds = "; ".join(f"{count:,} x {label}" for label, count in ordered[:SHOWN])
    more = f"; and {len(ordered) - SHOWN} more kinds" if len(ordered) > SHOWN else ""
    return f"{sum(tally.values()):,} alerts joined this investigation: {kinds}{more}"


def _told(record: Record) -> str:
    alert = record.alert
    fired = f", fired {alert.starts_at:%H:%M:%S} UTC" if alert.starts_at else ""
    service = f", {alert.service}" if alert.service else ""
    return f"{alert.title[:200]} ({alert.severity.value}{service}{fired}); it waits for this report"


def _run(record: Record, now: datetime) -> Run:
    return Run(
        investigation=record.investigation, generation=record.generation, attempt=1, started_at=now, model="none"
    )
