"""The port every ticket system implements: alerts in (poll, push, fetch), reports out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent.alert import Alert
from agent.deadline import Deadline
from agent.report import Report

MARKER_PREFIX = "rootcaused:v1:"


def marker(investigation: str) -> str:
    """The line by which we know our own note again."""
    return f"{MARKER_PREFIX}{investigation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An item that could not be read: quarantined, counted and shown; its neighbours go on."""

    id: str  # the native id where it could be read, else ""
    reason: str
    raw: str  # size-capped


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some alerts of a poll. `cursor` is where the next poll may start once these alerts are admitted;
    it is set on the last page only ("" before)."""

    alerts: tuple[Alert, ...]
    broken: tuple[Broken, ...] = ()
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One webhook request after its signature was checked. `ignored` names why there is nothing to admit."""

    alerts: tuple[Alert, ...] = ()
    broken: tuple[Broken, ...] = ()
    delivery_id: str = ""
    ignored: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Where a report was written: enough to find and edit it again."""

    id: str
    url: str = ""
    investigation: str = ""


class Unauthorised(Exception):
    """Raised by `receive` when a signature or shared secret is missing or wrong: HTTP 401."""


class Malformed(Exception):
    """Raised by `receive` when the body can't be read at all: HTTP 400, body quarantined."""


class Source(Protocol):
    """Alerts in. Network faults raise `Transient`, refusals `Permanent`; a 200 with rubbish is `Transient`."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    def poll(self, cursor: str, *, deadline: Deadline) -> Iterator[Page]:
        """Everything open now plus a recent overlapping window with all states; "" starts afresh."""
        ...

    def search(self, query: str, *, limit: int, deadline: Deadline) -> Iterator[Page]:
        """Tickets for a sweep, in the system's own query language."""
        ...

    def fetch(self, native_id: str, *, deadline: Deadline, known: Alert | None = None) -> Alert | None:
        """The alert as it is now; None when the system no longer has it (for Alertmanager: resolved).

        `known` is the alert as it was seen last, for systems that can't look one up by its id.
        """
        ...

    def related(self, alert: Alert, *, deadline: Deadline) -> str:
        """What the ticket already says (notes, alerts inside), as text for the prompt; "" when nothing."""
        ...

    def receive(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        """Check and read one webhook request. `headers` has lower-case names."""
        ...


@runtime_checkable
class Destination(Protocol):
    """Reports out. Never retries a write: a lost reply is `Transient`, and the next try looks first."""

    @property
    def name(self) -> str: ...

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """Our own earlier report on this alert, by author and marker; None where there is none or none can be read."""
        ...

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Write the report: edit `previous` where the system can, else add once."""
        ...
