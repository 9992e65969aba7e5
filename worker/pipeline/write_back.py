"""Posting a stored report: its own task, idempotent, never a reason to run the model again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.report import Report
from sources.port import Destination, Receipt
from worker.record import Claim, LeaseLost, State
from worker.store import Store, receipt_json

WRITE_SECONDS = 60.0
BACKOFF_SECONDS = 5.0
MAX_BACKOFF_SECONDS = 1_800.0

log = structlog.get_logger("rootcaused.write_back")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    store: Store
    destinations: Mapping[str, Destination]  # by source name

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
            return
        report = self.store.report(record.investigation)
        if report is None:  # expired or flushed apart from the record: only a new investigation can help
            self.store.settle(claim, State.FAILED, "the stored report is gone")
            return
        try:
            receipt = self._write(claim, report)
        except Transient as error:
            self._retry(claim, error)
        except Permanent as error:
            log.error("write_parked", alert=record.key, error=str(error))
            self.store.settle(claim, State.FAILED, f"write-back refused: {error}")
        else:
            log.info("written", alert=record.key, url=receipt.url, outcome=report.outcome.value)
            reason = record.reason if record.settle is State.FAILED else report.outcome.value
            self.store.settle(claim, record.settle, reason, receipt=receipt_json(receipt))

    def _write(self, claim: Claim, report: Report) -> Receipt:
        """A lost reply is `Transient`: the next try looks for the note before it adds one."""
        alert = claim.record.alert
        destination = self.destinations[alert.source]
        deadline = Deadline.after(WRITE_SECONDS)
        previous = destination.find(alert, deadline=deadline)
        # The claim may have run out while the ticket system was slow; a second writer must not follow us.
        self.store.append(claim)
        return destination.publish(alert, report, previous=previous, deadline=deadline)

    def _retry(self, claim: Claim, error: Transient) -> None:
        record = claim.record
        delay = max(error.retry_after or 0.0, backoff(record.write_attempts))
        log.warning("write_failed", alert=record.key, error=str(error), retry_in=round(delay, 1))
        self.store.settle(claim, State.WRITE_FAILED, str(error), delay=delay)


def backoff(attempt: int) -> float:
    """Seconds before try `attempt` + 1: doubling from 5 s to half an hour, with jitter of a fifth."""
    return float(min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** max(0, attempt - 1)) * random.uniform(0.8, 1.2))
