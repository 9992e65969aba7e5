"""Notes on an alert: whose they are, finding ours, writing them, and editing where the API can.

OpsGenie cannot edit: there a newer report is a second note that names the one it replaces. A note is posted
once: a write that was accepted and whose outcome is unknown is asked about again, not repeated, for `PENDING_SECONDS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.alert import Alert
from agent.deadline import Clock, Deadline
from agent.errors import RootcausedError, Transient
from agent.http import Response
from agent.report import Report
from sources.opsgenie.accepted import Requests, TooLong, size_checked
from sources.opsgenie.alerts import instant, text_of
from sources.opsgenie.client import OpsApi, part
from sources.opsgenie.dialect import Dialect
from sources.opsgenie.envelope import listed
from sources.port import MARKER_PREFIX, Receipt, marker
from sources.render.fit import utf16_units
from sources.render.inert import BREAK, neutral
from sources.render.plain import plain

MAX_NOTES_READ = 50  # of other people, newest last
MAX_PAGES = 100
PENDING_SECONDS = 600.0
MAX_PENDING = 1_000
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


@dataclass(frozen=True, slots=True)
class _Pending:
    """A write whose outcome was unknown when we last looked."""

    investigation: str
    request: str
    since: float


class Notes:
    """The notes of one account, read and written as one user. `limit` is in UTF-16 units, as a Java server counts."""

    def __init__(
        self,
        api: OpsApi,
        dialect: Dialect,
        *,
        limit: int,
        tag: str,
        sleep: Callable[[float], None],
        clock: Clock,
    ) -> None:
        self._api = api
        self._dialect = dialect
        self._limit = limit
        self._tag = tag
        self._clock = clock
        self._requests = Requests(api=api, dialect=dialect, sleep=sleep)
        self._pending: dict[str, _Pending] = {}

    def find(self, alert: Alert, deadline: Deadline) -> Receipt | None:
        """Our newest note: the author is us and a line of it is the marker, so that a quoted marker is not ours."""
        authors = self._api.authors(deadline)
        notes = self._all(alert.id, deadline)
        ours = [note for note in notes if marked(note) and text_of(note.get("owner")) in authors]
        if not ours:
            return None
        newest = max(reversed(ours), key=_written_at)  # the later in the list, of two of one moment
        return self._receipt(alert, marked(newest), text_of(newest.get("id")))

    def publish(self, alert: Alert, report: Report, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Edit `previous` where that can be done, else add; nothing is posted when the report is there already."""
        self._api.authors(deadline)  # first, because a note we could not find again would be written twice
        investigation = _investigation(report)
        if previous is not None and not self._dialect.edits and previous.investigation == investigation:
            self._pending.pop(alert.id, None)
            return previous
        if previous is not None and self._dialect.edits:
            if receipt := self._put(alert, report, None, deadline, note=previous.id):
                return receipt
            previous = None  # someone deleted it
        if pending := self._unsettled(alert, investigation):
            try:
                return self._followed(alert, investigation, pending.request, deadline)
            except TooLong:  # it was not added; what follows is a first post again
                pass
        receipt = self._put(alert, report, previous, deadline)
        assert receipt is not None
        return receipt

    def of_others(self, native: str, deadline: Deadline) -> Iterator[tuple[str, str, str]]:
        """(time, author, text) of the notes that are not ours."""
        others = [note for note in self._all(native, deadline) if not marked(note) and text_of(note.get("note"))]
        for note in sorted(others, key=_written_at)[-MAX_NOTES_READ:]:
            yield text_of(note.get("createdAt")), text_of(note.get("owner")), text_of(note.get("note"))

    def _put(
        self, alert: Alert, report: Report, previous: Receipt | None, deadline: Deadline, note: str = ""
    ) -> Receipt | None:
        """Posts, or changes `note`. When that is refused as too long, half of it once. None: the note is gone."""
        investigation = _investigation(report)
        content = self.rendered(report, previous, self._limit)
        try:
            return self._sent(alert, investigation, content, note, deadline)
        except TooLong:
            shorter = self.rendered(report, previous, self._limit // 2)
            if shorter == content:
                raise
        return self._sent(alert, investigation, shorter, note, deadline)

    def _sent(self, alert: Alert, investigation: str, content: str, note: str, deadline: Deadline) -> Receipt | None:
        """One write. Raises `TooLong`, `Permanent` or `Transient`."""
        path, method = f"{self._path(alert.id)}/notes", "POST"
        if note:
            path, method = f"{path}/{part(note)}", "PATCH"
        payload = self._dialect.note(content)
        response = self._api.send(method, path, params=self._dialect.by_id, payload=payload, deadline=deadline)
        if note and response.status == 404:
            return None
        return self._settled(alert, investigation, size_checked(self._api, method, response), deadline)

    def rendered(self, report: Report, previous: Receipt | None, limit: int) -> str:
        """The note's text within `limit`; the marker is its last line."""
        first = ""
        if previous is not None:
            first = f"Replaces the earlier report of investigation {neutral(previous.investigation[:64])}.\n\n"

        def measure(text: str) -> int:
            return utf16_units(_without_tags(text))

        return first + _without_tags(plain(report, limit - measure(first), measure=measure))

    def _settled(self, alert: Alert, investigation: str, response: Response, deadline: Deadline) -> Receipt:
        """Where the note is. An unreadable reply is `Transient`: the note may be there, so the next try looks first."""
        body = response.json()
        note = body.get("data", body) if isinstance(body, dict) else {}
        native = note.get("id") if isinstance(note, dict) else None
        if isinstance(native, str) and native:
            return self._done(alert, self._receipt(alert, investigation, native), deadline)
        request = body.get("requestId") if isinstance(body, dict) else None
        if not isinstance(request, str) or not request:
            raise Transient(f"{self._dialect.kind} notes: a {response.status} without a note or a request id")
        while len(self._pending) >= MAX_PENDING:
            self._pending.pop(next(iter(self._pending)))
        self._pending[alert.id] = _Pending(investigation, request, self._clock())
        return self._followed(alert, investigation, request, deadline)

    def _followed(self, alert: Alert, investigation: str, request: str, deadline: Deadline) -> Receipt:
        try:
            self._requests.follow(request, deadline)
        except Transient:
            raise
        except RootcausedError:  # a definite failure: there is no note, and the next write may be posted
            self._pending.pop(alert.id, None)
            raise
        if not self._dialect.edits:
            return self._done(alert, self._receipt(alert, investigation, ""), deadline)
        found = self.find(alert, deadline)
        if found is None or found.investigation != investigation:
            raise Transient(f"{self._dialect.kind} notes: the note was added, but is not in the list yet")
        return self._done(alert, found, deadline)

    def _done(self, alert: Alert, receipt: Receipt, deadline: Deadline) -> Receipt:
        self._pending.pop(alert.id, None)
        if self._tag:
            self._put_tag(alert, deadline)
        return receipt

    def _put_tag(self, alert: Alert, deadline: Deadline) -> None:
        """A help for people's queries only: the note is there, so a fault here must not have it written again."""
        payload = {"tags": [self._tag]}
        try:
            path = f"{self._path(alert.id)}/tags"
            self._api.send("POST", path, params=self._dialect.by_id, payload=payload, deadline=deadline)
        except RootcausedError:
            return

    def _unsettled(self, alert: Alert, investigation: str) -> _Pending | None:
        """Our accepted write of this very report, unless it is so old that it will not come any more."""
        pending = self._pending.get(alert.id)
        if pending is None or pending.investigation != investigation:
            return None
        return pending if self._clock() - pending.since < PENDING_SECONDS else None

    def _all(self, native: str, deadline: Deadline) -> list[dict[str, Any]]:
        notes: list[dict[str, Any]] = []
        params: Mapping[str, str] = self._dialect.note_pages
        asked: list[Mapping[str, str]] = []
        for _ in range(MAX_PAGES):
            asked.append(params)
            response = self._api.get(f"{self._path(native)}/notes", params, deadline=deadline)
            page = listed(response, f"{self._dialect.kind} notes")
            notes += [note for note in page.items if isinstance(note, dict)]
            if page.next is None or not page.items:
                return notes
            if page.next in asked:
                raise Transient(f"{self._dialect.kind} notes: the next page is one that was read already")
            params = page.next
        raise Transient(f"{self._dialect.kind} notes: over {MAX_PAGES} pages")

    def _path(self, native: str) -> str:
        return f"{self._dialect.alerts}/{part(native)}"

    def _receipt(self, alert: Alert, investigation: str, native: str) -> Receipt:
        """A note without an id of its own is known by the investigation its marker names."""
        return Receipt(id=native if self._dialect.edits else investigation, url=alert.url, investigation=investigation)


def is_ours(content: object) -> bool:
    """Whether a note carries our marker on a line of its own."""
    return bool(marked({"note": content}))


def marked(note: Mapping[str, Any]) -> str:
    """The investigation named by the marker line; "" when there is none."""
    for line in reversed(text_of(note.get("note")).splitlines()):
        if line.strip().startswith(MARKER_PREFIX):
            return line.strip().removeprefix(MARKER_PREFIX)
    return ""


def _investigation(report: Report) -> str:
    return marker(report.run.investigation).removeprefix(MARKER_PREFIX)


def _written_at(note: Mapping[str, Any]) -> float:
    at = instant(note.get("createdAt"))
    return at.timestamp() if at else 0.0


def _without_tags(text: str) -> str:
    """Both show some HTML in notes, and an image that loads tells its server who reads the report."""
    return _TAG.sub(f"<{BREAK}", text)
