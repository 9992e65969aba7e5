"""What everything that lets alerts in shares: poll, webhook, sweep, requeue and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from sources.port import Malformed, Page, Source
from worker.publisher import Publisher
from worker.record import Admission, Record, Via
from worker.settings import Settings
from worker.store import Store
from worker.triage import Decided, Sighting, View, decide, question, sighting

FETCH_SECONDS = 20.0
SWEEP_SECONDS = 300.0

log = structlog.get_logger("rootcaused.front")


class NotFound(Permanent):
    """Raised when neither the store nor the source knows the alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What became of one webhook request."""

    admissions: tuple[Admission, ...] = ()
    broken: int = 0
    ignored: str = ""
    duplicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """`then` is what was decided at admission, with its inputs (`at`, `rulings`; empty when a person asked for it or
    nothing is recorded); `now` what would be decided if the alert were seen for the first time now."""

    record: Record | None
    then: dict[str, Any]
    now: Decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Admission. Returning normally means the alert is durably recorded; a lost message is published again later."""

    settings: Settings
    store: Store
    publisher: Publisher
    sources: Mapping[str, Source] = field(default_factory=dict)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def admit(self, alert: Alert, *, via: Via, instructions: str = "") -> Admission:
        """Record first, then publish. Raises `Transient` when Redis can't take the record."""
        admission = self._record(alert, via=via, instructions=instructions)
        self._publish(admission)
        return admission

    def explain(self, key: str) -> Explained:
        """Why an alert became what it is. Changes nothing. Raises `NotFound`."""
        record = self.store.get(key)
        alert = record.alert if record else self._fresh(key)
        if alert is None:
            raise NotFound(f"{key}: neither the store nor its source knows this alert")
        seen = self._sighting(alert)
        view = self.store.look(alert, question(seen, self.settings))
        now = decide(seen, self.settings, view.model_copy(update={"state": ""}))
        return Explained(record=record, then=json.loads(record.why) if record and record.why else {}, now=now)

    def _record(self, alert: Alert, *, via: Via, instructions: str = "") -> Admission:
        """What a person or a sweep asks for is done; on the rest it is decided from what the store says."""
        if via in ("requeue", "sweep", "ask"):
            admission = self.store.admit(alert, via=via, instructions=instructions)
        else:
            admission = self._decide(alert, via)
        if admission.verdict not in ("known", "updated"):
            log.info(
                "admitted",
                alert=admission.key,
                via=via,
                verdict=admission.verdict,
                state=admission.state.value,
                reason=admission.reason,
            )
        return admission

    def _decide(self, alert: Alert, via: Via) -> Admission:
        """Ends: each time somebody else's alert is admitted in between, that one is done."""
        seen = self._sighting(alert)
        plan = asked = question(seen, self.settings)
        while isinstance(answer := self.store.admit(alert, via=via, plan=plan), View):
            plan = decide(seen, self.settings, answer, asked).plan
        return answer

    def _sighting(self, alert: Alert) -> Sighting:
        config = self.settings.sources.get(alert.source)
        return sighting(alert, self.now(), config.kind if config else "")

    def _publish(self, admission: Admission) -> None:
        """Recorded and due, so what can't be published now is published by the scheduler."""
        try:
            if admission.queued and not admission.held:
                self.publisher.investigate(admission.key, admission.generation, admission.queue)
            elif admission.late:
                self.publisher.write_back(admission.key, admission.generation)
        except Transient as error:
            log.warning("publish_failed", alert=admission.key, error=str(error))

    def admit_page(self, source: str, page: Page, *, via: Via) -> list[Admission]:
        """A bad item is quarantined; its neighbours go on. All are recorded before the first is published, so that an
        investigation knows of the alerts that came with its own."""
        for broken in page.broken:
            self.store.quarantine(source, broken)
            log.warning("quarantined", source=source, id=broken.id, reason=broken.reason)
        admissions: list[Admission] = []
        try:
            admissions.extend(self._record(alert, via=via) for alert in page.alerts)  # keeps those before a fault
        finally:
            for admission in admissions:
                self._publish(admission)
        return admissions

    def receive(self, name: str, headers: Mapping[str, str], body: bytes) -> Delivered:
        """One webhook request. Raises `KeyError` for an unknown source, `Unauthorised`, `Malformed`, `Transient`."""
        source = self.sources[name]
        try:
            delivery = source.receive(headers, body)
        except Malformed as error:
            self._quarantine_body(name, body, str(error))
            raise
        if delivery.delivery_id and self.store.delivered_before(name, delivery.delivery_id):
            return Delivered(duplicate=True)
        page = Page(alerts=delivery.alerts, broken=delivery.broken)
        admissions = self.admit_page(name, page, via="webhook")
        if delivery.delivery_id:
            self.store.remember_delivery(name, delivery.delivery_id)
        return Delivered(admissions=tuple(admissions), broken=len(delivery.broken), ignored=delivery.ignored)

    def requeue(self, key: str, *, instructions: str = "") -> Admission:
        """Investigate again, as a new generation; the note on the ticket is edited in place. Raises `NotFound`."""
        record = self.store.get(key)
        alert = self._fresh(key) or (record.alert if record else None)
        if alert is None:
            raise NotFound(f"{key}: neither the store nor its source knows this alert")
        return self.admit(alert, via="requeue", instructions=instructions)

    def sweep(self, source: str, query: str, *, limit: int) -> Iterator[Admission]:
        """Tickets that match a query, to the low-priority queue. Raises `KeyError` for an unknown source."""
        deadline = Deadline.after(SWEEP_SECONDS)
        for page in self.sources[source].search(query, limit=limit, deadline=deadline):
            yield from self.admit_page(source, page, via="sweep")

    def _fresh(self, key: str) -> Alert | None:
        name, _, native_id = key.partition(":")
        source = self.sources.get(name)
        if source is None:
            return None
        try:
            return source.fetch(native_id, deadline=Deadline.after(FETCH_SECONDS))
        except Transient as error:  # the stored copy will do
            log.warning("fetch_failed", alert=key, error=str(error))
            return None

    def _quarantine_body(self, name: str, body: bytes, reason: str) -> None:
        from sources.port import Broken

        self.store.quarantine(name, Broken(id="", reason=reason, raw=body[:2_000].decode("utf-8", "replace")))


def open_front(settings: Settings) -> Front:
    """Connect: Redis, the queue and the configured sources. Raises `ConfigError`; nothing is sent yet."""
    from worker.wiring import build_front

    return build_front(settings)
