"""One investigation of one alert: claim, decide whether there is work, run the loop, store the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import structlog

from agent.alert import Alert
from agent.case import Case
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.events import Compacted, Event, Finished, ModelAnswered
from agent.report import Related, Report
from sources.port import Destination, Receipt, Source
from worker.handover import HandOver
from worker.pipeline.failure import failure_report
from worker.pipeline.following import followers, with_followers
from worker.pipeline.heartbeat import Heartbeat
from worker.publisher import Publisher
from worker.record import Claim, LeaseLost, State
from worker.settings import Limits
from worker.store import GRACE_SECONDS, Store, receipt_json

LOOK_SECONDS = 20.0
PRIOR_REPORTS = 3

log = structlog.get_logger("rootcaused.investigate")


class Investigates(Protocol):
    """The loop over one case; see `agent.loop.Investigator.run`."""

    def __call__(self, case: Case, journal: list[Event]) -> Iterator[Event]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """Everything one investigation needs, passed in. `investigator` builds the loop for one alert."""

    store: Store
    publisher: Publisher
    sources: Mapping[str, Source]
    destinations: Mapping[str, Destination]
    run_loop: Investigates
    limits: Limits
    redactor: Callable[[], Callable[[str], str]] = lambda: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def run(self, key: str, generation: int) -> None:
        """Returns at once when another worker holds the alert or a newer generation replaced this one."""
        verdict, claim = self.store.claim(key, generation, stage="investigate")
        if claim is None:
            log.info("not_claimed", alert=key, verdict=verdict)
            return
        try:
            with Heartbeat(self.store, claim, lease_seconds=self.limits.lease_seconds):
                self._work(claim)
        except LeaseLost:
            log.warning("lease_lost", alert=key, stage="investigate")
        except HandOver:
            log.info("handed_over", alert=key)
            self._hand_back(claim, "its worker stopped", delay=0)
            self._publish_again(claim)
        except Transient as error:
            log.warning("investigation_postponed", alert=key, error=str(error))
            self._hand_back(claim, str(error))

    def _work(self, claim: Claim) -> None:
        if claim.parked:
            self._report(claim, failure_report(claim.record, self.now(), "its worker died or timed out each time"))
            return
        journal = self.store.events(claim.record.investigation)
        if not journal and (reason := self._needless(claim)):
            log.info("skipped", alert=claim.key, reason=reason)
            return
        report = finished(journal) or self._investigate(claim, journal)
        self._report(claim, report)

    def _needless(self, claim: Claim) -> str:
        """Settle without spending anything, where that is right: resolved meanwhile, or reported before a flush."""
        record = claim.record
        if record.via in ("requeue", "ask"):  # a person wants it
            return ""
        if self._resolved(record.alert) and not (record.via == "sweep" and record.alert.resolved):
            self.store.settle(claim, State.SKIPPED, "resolved before work began", outcome="resolved_before_start")
            return "resolved"
        receipt = self._earlier_report(record.alert) if record.generation == 1 else None
        if receipt is None:
            return ""
        self.store.settle(claim, State.WRITTEN, "the ticket already has our report", receipt=receipt_json(receipt))
        return "reported"

    def _resolved(self, alert: Alert) -> bool:
        """By the ticket system now; when it can't be asked, by what was seen last."""
        try:
            source, deadline = self.sources[alert.source], Deadline.after(LOOK_SECONDS)
            current = source.fetch(alert.id, deadline=deadline, known=alert)
        except RootcausedError as error:
            log.warning("fetch_failed", alert=alert.key, error=str(error))
            return alert.resolved
        return current is None or current.resolved

    def _earlier_report(self, alert: Alert) -> Receipt | None:
        """After a flush the ticket still knows what we wrote: adopt it instead of paying again."""
        try:
            return self.destinations[alert.source].find(alert, deadline=Deadline.after(LOOK_SECONDS))
        except RootcausedError as error:
            log.warning("find_failed", alert=alert.key, error=str(error))
            return None

    def _investigate(self, claim: Claim, journal: list[Event]) -> Report:
        record = claim.record
        case = Case(
            alert=record.alert,
            investigation=record.investigation,
            generation=record.generation,
            attempt=record.attempts,
            started_at=record.started_at or self.now(),
            instructions=record.instructions,
            ticket_context="" if journal else self._ticket_context(record.alert),
            prior=self._prior(claim),
            deadline=Deadline.after(self._seconds_left(claim)),
            redact=self.redactor(),
        )
        for event in self.run_loop(case, journal):
            self.store.append(claim, [event])
            if isinstance(event, ModelAnswered | Compacted) and event.cost_usd:
                self.store.spend(self.now().date().isoformat(), record.source, event.cost_usd)
            if isinstance(event, Finished):
                return event.report
        raise Permanent(f"{claim.key}: the loop ended without a report")

    def _seconds_left(self, claim: Claim) -> float:
        """The whole run has one limit, however often it was resumed; a resumed run gets a minute at least."""
        started = claim.record.started_at or self.now()
        return max(60.0, self.limits.run_seconds - (self.now() - started).total_seconds())

    def _ticket_context(self, alert: Alert) -> str:
        try:
            return self.sources[alert.source].related(alert, deadline=Deadline.after(LOOK_SECONDS))
        except RootcausedError as error:
            log.warning("related_failed", alert=alert.key, error=str(error))
            return ""

    def _prior(self, claim: Claim) -> tuple[Related, ...]:
        """Alerts that joined this one, and our own earlier reports on it and on its kind: hypotheses, not facts."""
        record = claim.record
        found: list[Related] = []
        for investigation, url in self._earlier(claim):
            report = self.store.report(investigation)
            if report is not None:
                why = f"{report.outcome.value}: {report.headline} (alert {report.alert.key})"
                found.append(Related(kind="prior_incident", id=investigation, url=url or record.alert.url, why=why))
        joined = followers(self.store, record.key) if record.group_size > 1 else ()
        return (*found[:PRIOR_REPORTS], *joined)

    def _earlier(self, claim: Claim) -> list[tuple[str, str]]:
        record = claim.record
        earlier = [(record.previous, record.url)] if record.previous else []
        if record.alert.fingerprint:
            for key in self.store.family(record.source, record.alert.fingerprint):
                other = self.store.get(key) if key != record.key else None
                if other is not None and not other.lead:
                    earlier.append((other.investigation, other.url))
        return earlier

    def _report(self, claim: Claim, report: Report) -> None:
        """Stored first, then owed to the ticket, then published. Those that joined meanwhile are told of as well."""
        report = with_followers(report, self.store, self.redactor)
        self.store.keep_report(report)
        self.store.settle(
            claim,
            State.REPORTED,
            report.headline if claim.parked else "",
            delay=GRACE_SECONDS,
            outcome=report.outcome.value,
            confidence=report.confidence.level,
            settle=State.FAILED.value if claim.parked else State.WRITTEN.value,
            tokens=report.run.tokens_in + report.run.tokens_out,
            cost_usd=report.run.cost_usd or 0.0,
        )
        log.info("investigated", alert=claim.key, stop=report.stop.value, outcome=report.outcome.value)
        try:
            self.publisher.write_back(claim.key, claim.record.generation)
        except Transient as error:  # owed, so the scheduler publishes it
            log.warning("publish_failed", alert=claim.key, error=str(error))

    def _hand_back(self, claim: Claim, reason: str, *, delay: float = GRACE_SECONDS) -> None:
        """The attempt does not count: nothing was wrong with the alert."""
        try:
            self.store.settle(claim, State.QUEUED, reason, delay=delay, give_back="attempts")
        except (LeaseLost, Transient) as error:  # the lease ends by itself, and the scheduler sees it
            log.warning("hand_back_failed", alert=claim.key, error=str(error))

    def _publish_again(self, claim: Claim) -> None:
        try:
            self.publisher.investigate(claim.key, claim.record.generation, claim.record.queue)
        except Transient as error:  # due at once, so the scheduler publishes it
            log.warning("publish_failed", alert=claim.key, error=str(error))


def finished(journal: list[Event]) -> Report | None:
    """The report of a run that ended but was cut off before its report was stored."""
    last = journal[-1] if journal else None
    return last.report if isinstance(last, Finished) else None
