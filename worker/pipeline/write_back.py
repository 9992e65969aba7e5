"""Posting a stored report: its own task, idempotent, never a reason to run the model again."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.report import Report
from sources.port import Destination, Receipt, Source
from worker.pipeline.following import digest_of, line, not_investigated
from worker.record import Claim, LeaseLost, Record, State, fate
from worker.store import Store, receipt_json
from worker.triage import PATIENCE_SECONDS

WRITE_SECONDS = 60.0
LOOK_SECONDS = 20.0
BACKOFF_SECONDS = 5.0
MAX_BACKOFF_SECONDS = 1_800.0

log = structlog.get_logger("rootcaused.write_back")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    store: Store
    destinations: Mapping[str, Destination]  # by source name
    sources: Mapping[str, Source] = field(default_factory=dict)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def run(self, key: str, generation: int) -> None:
        """Find our own note, edit it or add one, settle. Returns at once when another worker has it."""
        verdict, claim = self.store.claim(key, generation, stage="write")
        if claim is None:
            log.info("write_not_claimed", alert=key, verdict=verdict)
            return
        try:
            self._settle(claim)
        except LeaseLost:
            log.warning("lease_lost", alert=key, stage="write")

    def _settle(self, claim: Claim) -> None:
        record = claim.record
        if claim.parked:  # not even tried once more: a write that kills its worker must end too
            reason = f"write-back given up after {record.write_attempts - 1} tries: {record.reason}"
            log.error("write_parked", alert=record.key, error=reason)
            self.store.settle(claim, State.FAILED, reason)
        elif record.lead:
            self._follow(claim)
        elif report := self.store.report(record.investigation):
            reason = record.reason if record.settle is State.FAILED else report.outcome.value
            self._publish(claim, report, record.settle, reason)
        else:  # expired or flushed apart from the record: only a new investigation can help
            self.store.settle(claim, State.FAILED, "the stored report is gone")

    # -- a follower ------------------------------------------------------------------------------------------------

    def _follow(self, claim: Claim) -> None:
        """One line with a link to the lead's report, as soon as there is one."""
        record, lead = claim.record, self.store.get(claim.record.lead)
        outcome = fate(lead)
        if outcome == "pending":
            self.store.settle(claim, State.GROUPED, record.reason, delay=PATIENCE_SECONDS, give_back="write_attempts")
        elif lead is None or outcome == "nothing":
            self._take_over(claim, lead)
        elif outcome == "done":
            self._tell(claim, line(record, lead, self.store.report(lead.investigation), self.now()))
        else:
            self._publish_kept(claim, not_investigated(record, lead, self.now()), State.FAILED, f"{lead.key} failed")

    def _tell(self, claim: Claim, report: Report) -> None:
        record = claim.record
        if record.told == digest_of(report):
            self.store.settle(claim, State.WRITTEN, record.follows)  # the lead says what it said before
            return
        self._publish_kept(claim, report, State.WRITTEN, record.follows, told=digest_of(report))

    def _take_over(self, claim: Claim, lead: Record | None) -> None:
        """Whoever is not resolved meanwhile is investigated in the lead's place; the others then follow that one."""
        record = claim.record
        if self._resolved(record):
            self.store.settle(claim, State.SKIPPED, "resolved before work began", outcome="resolved_before_start")
            return
        became = lead.state.value if lead else "forgotten"
        done = self.store.promote(claim, f"its lead {record.lead} was {became}", patience=PATIENCE_SECONDS)
        log.info(done, alert=record.key, lead=record.lead)

    def _resolved(self, record: Record) -> bool:
        source = self.sources.get(record.source)
        if source is None:
            return record.alert.resolved
        try:
            current = source.fetch(record.alert.id, deadline=Deadline.after(LOOK_SECONDS), known=record.alert)
        except RootcausedError as error:
            log.warning("fetch_failed", alert=record.key, error=str(error))
            return record.alert.resolved
        return current is None or current.resolved

    def _publish_kept(self, claim: Claim, report: Report, state: State, reason: str, **fields: Any) -> None:
        """The line is kept like any report, so that it is shown and known again."""
        self.store.keep_report(report)
        fields |= {"outcome": report.outcome.value, "confidence": report.confidence.level}
        self._publish(claim, report, state, reason, **fields)

    # -- one write -------------------------------------------------------------------------------------------------

    def _publish(self, claim: Claim, report: Report, state: State, reason: str, **fields: Any) -> None:
        record = claim.record
        try:
            receipt = self._write(claim, report)
        except Transient as error:
            self._retry(claim, error)
        except Permanent as error:
            log.error("write_parked", alert=record.key, error=str(error))
            self.store.settle(claim, State.FAILED, f"write-back refused: {error}")
        else:
            log.info("written", alert=record.key, url=receipt.url, outcome=report.outcome.value)
            self.store.settle(claim, state, reason, receipt=receipt_json(receipt), **fields)

    def _write(self, claim: Claim, report: Report) -> Receipt:
        """A lost reply is `Transient`: the next try looks for the note before it adds one."""
        record = claim.record
        destination = self.destinations[record.source]
        deadline = Deadline.after(WRITE_SECONDS)
        previous = destination.find(record.alert, deadline=deadline)
        if record.lead and previous and (not record.receipt or previous.investigation != record.investigation):
            return previous  # after a flush: a whole report of ours, maybe, which one line must not replace
        # The claim may have run out while the ticket system was slow; a second writer must not follow us.
        self.store.append(claim)
        return destination.publish(record.alert, report, previous=previous, deadline=deadline)

    def _retry(self, claim: Claim, error: Transient) -> None:
        record = claim.record
        delay = max(error.retry_after or 0.0, backoff(record.write_attempts))
        log.warning("write_failed", alert=record.key, error=str(error), retry_in=round(delay, 1))
        self.store.settle(claim, State.WRITE_FAILED, str(error), delay=delay)


def backoff(attempt: int) -> float:
    """Seconds before try `attempt` + 1: doubling from 5 s to half an hour, with jitter of a fifth."""
    return float(min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** max(0, attempt - 1)) * random.uniform(0.8, 1.2))
