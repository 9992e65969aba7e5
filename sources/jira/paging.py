"""Reads a whole search: by page token on Cloud, by offset on Data Center; neither may skip, repeat or run for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.alert import parse_time
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.http import Response, server_time
from sources.jira.client import JiraApi

PAGE = 100  # issues with fields; Cloud gives more at once only of bare ids
STEP_BACK = 10  # issues of the page before, asked for again: one of them must still be there
MAX_PAGES = 1_000  # of one walk
MAX_RESTARTS = 5


@dataclass(slots=True)
class Walk:
    """One reading of a search. Each issue comes once."""

    api: JiraApi
    fields: Sequence[str]
    deadline: Deadline
    page: int = PAGE
    max_pages: int = MAX_PAGES
    server_time: datetime | None = None  # when the server began to answer, by its own clock
    newest: datetime | None = None  # the latest change met
    _seen: set[str] = field(default_factory=set)
    _requests: int = 0

    def run(self, jql: str) -> Iterator[list[object]]:
        """The issues not seen before, a page at a time. Raises `Transient` when the end can't be reached."""
        return self._by_token(jql) if self.api.cloud(self.deadline) else self._by_offset(jql)

    def _by_token(self, jql: str) -> Iterator[list[object]]:
        """Until there is no token. A refused token has expired, so the walk starts again, once."""
        token, progress, restarts = "", _Progress(), 1
        while True:
            asked = {"jql": jql, "maxResults": self.page, "fields": list(self.fields)}
            response = self._send("POST", "/search/jql", payload=asked | ({"nextPageToken": token} if token else {}))
            if token and response.status == 400 and restarts:
                token, progress, restarts = "", _Progress(), restarts - 1
                continue
            body, issues = self._read("POST", response)
            yield self._fresh(issues)
            token = body.get("nextPageToken") or ""
            if not token or body.get("isLast") is True:
                return
            progress.check(_ids(issues), token)

    def _by_offset(self, jql: str) -> Iterator[list[object]]:
        """Until `total`. Issues that leave the list meanwhile shift the rest to the front, past us: a page that shares
        no issue with the one before may have left some out, so the walk starts again.
        """
        offset, restarts, before = 0, MAX_RESTARTS, set[str]()
        while True:
            params = {"jql": jql, "startAt": offset, "maxResults": self.page, "fields": ",".join(self.fields)}
            body, issues = self._read("GET", self._send("GET", "/search", params=params))
            total, ids = body.get("total"), _ids(issues)
            if not isinstance(total, int):
                raise Transient("jira search: a 200 without a total")
            yield self._fresh(issues)
            if before and not ids & before:
                restarts -= 1
                if not restarts:
                    raise Transient("jira search: the list changes faster than it can be read")
                offset, before = 0, set()
                continue
            if offset + len(issues) >= total:
                return
            if not issues:
                raise Transient(f"jira search: {total} issues, but none from {offset} on")
            back = min(STEP_BACK, len(issues) // 2)
            offset += len(issues) - back
            before = ids if back else set()

    def _send(self, method: str, path: str, **options: Any) -> Response:
        self._requests += 1
        if self._requests > self.max_pages:
            raise Transient(f"jira search: over {self.max_pages} pages")
        response = self.api.send(method, path, deadline=self.deadline, **options)
        if self.server_time is None:
            self.server_time = server_time(response.headers)
        return response

    def _read(self, method: str, response: Response) -> tuple[dict[str, Any], list[object]]:
        if response.status in (404, 410):
            other = "data_center" if self.api.cloud(self.deadline) else "cloud"
            raise Permanent(
                f"{method} {response.url}: {response.status}: this Jira has no such search;"
                f" check url, and whether deployment should be {other}"
            )
        body = self.api.checked(method, response).json()
        issues = body.get("issues") if isinstance(body, dict) else None
        if not isinstance(issues, list):
            raise Transient(f"jira search: a {response.status} without a list of issues")
        return body, issues

    def _fresh(self, issues: list[object]) -> list[object]:
        """Those not met before; what has no id is passed on, so that it is counted as broken."""
        fresh = []
        for issue in issues:
            for native in _ids([issue]):
                if native in self._seen:
                    break
                self._seen.add(native)
            else:
                fresh.append(issue)
            if (at := _updated(issue)) is not None:
                self.newest = max(at, self.newest or at)
        return fresh


@dataclass(slots=True)
class _Progress:
    """Notices a token paging that goes round in circles."""

    ids: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    idle: int = 0

    def check(self, ids: set[str], token: str) -> None:
        """Raises `Transient` on a token that was there before and on the second page in a row with nothing new."""
        self.idle = 0 if ids - self.ids else self.idle + 1
        if token in self.tokens or self.idle == 2:
            why = "the same page token again" if token in self.tokens else "pages, but no further issues"
            raise Transient(f"jira search: {why}; what was read is kept, the end was not reached")
        self.ids |= ids
        self.tokens.add(token)


def _ids(issues: Sequence[object]) -> set[str]:
    """Numeric ids: a key changes when an issue is moved."""
    found = (issue.get("id") for issue in issues if isinstance(issue, dict))
    return {native for native in found if isinstance(native, str)}


def _updated(issue: object) -> datetime | None:
    fields = issue.get("fields") if isinstance(issue, dict) else None
    return parse_time(fields.get("updated")) if isinstance(fields, dict) else None
