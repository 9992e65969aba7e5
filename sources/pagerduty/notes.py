"""Notes on a PagerDuty incident: whose they are, finding ours, writing and editing."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from typing import Any

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.http import Response
from agent.report import Report
from sources.configs import PagerDutyConfig
from sources.pagerduty.client import PagerDutyApi
from sources.port import MARKER_PREFIX, Receipt, marker
from sources.render.plain import plain

MAX_NOTES_READ = 50  # of other people, newest last


class Notes:
    """The notes of one account, read and written as one user."""

    def __init__(self, api: PagerDutyApi, config: PagerDutyConfig) -> None:
        self._api = api
        self._config = config
        self._me = ""  # our user's id, once it was asked for

    def find(self, alert: Alert, deadline: Deadline) -> Receipt | None:
        """Our newest note: the author is us and a line of it is the marker, so that a quoted marker is not ours."""
        me = self._identity(deadline)
        ours = [note for note in self._all(alert.id, deadline) if _author(note).get("id") == me and _marked(note)]
        if not ours:
            return None
        newest = max(ours, key=lambda note: str(note.get("created_at") or ""))
        return Receipt(id=str(newest.get("id")), url=alert.url, investigation=_marked(newest))

    def publish(self, alert: Alert, report: Report, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Edit `previous`, else add. A note that someone deleted meanwhile is added again."""
        self._identity(deadline)  # first, because a note we could not find again would be written twice
        content = plain(report, self._config.max_note_chars)
        payload = {"note": {"content": content}}
        notes = f"/incidents/{urllib.parse.quote(alert.id, safe='')}/notes"
        if previous is not None:
            path = f"{notes}/{urllib.parse.quote(previous.id, safe='')}"
            response = self._api.send("PUT", path, payload=payload, deadline=deadline)
            if response.status != 404:
                return _receipt(alert, report, self._api.checked("PUT", response))
        return _receipt(alert, report, self._written(notes, payload, deadline))

    def of_others(self, native: str, deadline: Deadline) -> Iterator[tuple[str, str, str]]:
        """(time, author, text) of the notes that are not ours."""
        others = [note for note in self._all(native, deadline) if not _marked(note) and note.get("content")]
        for note in others[-MAX_NOTES_READ:]:
            yield str(note.get("created_at")), str(_author(note).get("summary")), str(note.get("content"))

    def _written(self, notes: str, payload: dict[str, Any], deadline: Deadline) -> Response:
        return self._api.checked("POST", self._api.send("POST", notes, payload=payload, deadline=deadline))

    def _all(self, native: str, deadline: Deadline) -> list[dict[str, Any]]:
        body = self._api.get(f"/incidents/{urllib.parse.quote(native, safe='')}/notes", deadline=deadline).json()
        notes = body.get("notes") if isinstance(body, dict) else None
        if not isinstance(notes, list):
            raise Transient("pagerduty notes: a 200 without a list of notes")
        return [note for note in notes if isinstance(note, dict)]

    def _identity(self, deadline: Deadline) -> str:
        """Our user's id: the token's own user, or for an account's token the user of `from_email`."""
        if not self._me:
            response = self._api.send("GET", "/users/me", deadline=deadline)
            if response.status == 200:
                self._me = _id(response.json(), "user")
            elif response.status in (400, 403, 404):  # an account's token is nobody in particular
                self._me = self._by_email(deadline)
            else:
                self._api.checked("GET", response)
        if not self._me:
            raise Permanent(
                "pagerduty: can't tell which user writes our notes, so they could not be found again;"
                f" set from_email to the address of a PagerDuty user ({self._config.from_email} is none)"
            )
        return self._me

    def _by_email(self, deadline: Deadline) -> str:
        body = self._api.get("/users", {"query": self._config.from_email}, deadline=deadline).json()
        users = body.get("users") if isinstance(body, dict) else None
        wanted = self._config.from_email.lower()
        found = [user for user in users or () if isinstance(user, dict) and str(user.get("email")).lower() == wanted]
        return str(found[0].get("id") or "") if found else ""


def is_ours(content: object) -> bool:
    """Whether a note carries our marker on a line of its own."""
    return bool(_marked({"content": content}))


def _marked(note: dict[str, Any]) -> str:
    """The investigation named by the marker line; "" when there is none."""
    for line in reversed(str(note.get("content") or "").splitlines()):
        if line.strip().startswith(MARKER_PREFIX):
            return line.strip().removeprefix(MARKER_PREFIX)
    return ""


def _author(note: dict[str, Any]) -> dict[str, Any]:
    user = note.get("user")
    return user if isinstance(user, dict) else {}


def _id(body: object, wrapper: str) -> str:
    inner = body.get(wrapper) if isinstance(body, dict) else None
    native = inner.get("id") if isinstance(inner, dict) else None
    if not isinstance(native, str) or not native:
        raise Transient(f"pagerduty: a reply without a {wrapper}")
    return native


def _receipt(alert: Alert, report: Report, response: Response) -> Receipt:
    """Raises `Transient` on an unreadable reply: the note may be there, so the next try looks first."""
    investigation = marker(report.run.investigation).removeprefix(MARKER_PREFIX)
    return Receipt(id=_id(response.json(), "note"), url=alert.url, investigation=investigation)
