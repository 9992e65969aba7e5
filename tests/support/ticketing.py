"""A ticket system in memory behind the real ports, with faults on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.alert import Alert
from agent.deadline import Deadline
from agent.report import Report
from sources.port import Delivery, Page, Receipt


@dataclass
class FakeTickets:
    """`faults` are raised, in order, by the next calls of the act they are listed under: poll, fetch, find, publish."""

    name: str = "pd"
    kind: str = "fake"
    alerts: dict[str, Alert] = field(default_factory=dict)
    notes: dict[str, list[Receipt]] = field(default_factory=dict)
    faults: dict[str, list[Exception]] = field(default_factory=dict)
    writes: int = 0
    lose_reply: bool = False
    pages: list[Page] | None = None

    def poll(self, cursor: str, *, deadline: Deadline) -> Iterator[Page]:
        for page in self.pages or [Page(alerts=tuple(self.alerts.values()), cursor="c1")]:
            self._fault("poll")
            yield page

    def search(self, query: str, *, limit: int, deadline: Deadline) -> Iterator[Page]:
        yield Page(alerts=tuple(alert for alert in self.alerts.values() if query in alert.title)[:limit])

    def fetch(self, native_id: str, *, deadline: Deadline, known: Alert | None = None) -> Alert | None:
        self._fault("fetch")
        return self.alerts.get(native_id)

    def related(self, alert: Alert, *, deadline: Deadline) -> str:
        return ""

    def receive(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        return Delivery(alerts=(Alert.model_validate_json(body),), delivery_id=headers.get("x-id", ""))

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        self._fault("find")
        notes = self.notes.get(alert.id)
        return notes[0] if notes else None

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        self._fault("publish")
        self.writes += 1
        receipt = Receipt(id=f"n{self.writes}", url="http://127.0.0.1/n", investigation=report.run.investigation)
        notes = self.notes.setdefault(alert.id, [])
        if previous is None:
            notes.append(receipt)
        else:
            notes[notes.index(previous)] = receipt
        self._fault("reply")
        return receipt

    def _fault(self, act: str) -> None:
        if self.faults.get(act):
            raise self.faults[act].pop(0)
