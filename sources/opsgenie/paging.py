"""Reads a whole alert list while alerts open, close and change: by creation time, which never changes.

Offsets skip an alert for each one that closes between two pages, and end at 20,000. So every page asks for what was
created at or after the last alert of the page before, sorted by that. Offsets remain for what creation time
can't tell apart: more than a page of alerts of one millisecond, or a server that does not sort.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from agent.deadline import Deadline
from agent.errors import Transient
from agent.http import Response, server_time
from sources.opsgenie.alerts import instant, milliseconds
from sources.opsgenie.client import OpsApi
from sources.opsgenie.dialect import Dialect
from sources.opsgenie.envelope import listed

PAGE = 100  # the maximum of both APIs
STEP_BACK = 10  # asked for again where offsets are needed, for alerts that close meanwhile
MAX_PAGES = 1_000  # of one walk
OPEN = "status:open"


@dataclass(slots=True)
class Walk:
    """One reading of the list. Each alert comes once, however many walks `run` makes with this object."""

    api: OpsApi
    dialect: Dialect
    deadline: Deadline
    page: int = PAGE
    max_pages: int = MAX_PAGES
    seen: set[str] = field(default_factory=set)
    server_time: datetime | None = None  # when the server began to answer, by its own clock
    newest: datetime | None = None  # the latest creation time met
    _requests: int = 0

    def look(self, query: str) -> None:
        """Learns the server's time before there is anything else to go by."""
        self._get({"query": query, self.dialect.size: "1"} if query else {self.dialect.size: "1"})

    def run(self, query: str, since: datetime | None = None) -> Iterator[list[object]]:
        """The alerts not seen before, a page at a time. Raises `Transient` when the end can't be reached."""
        start = None if since is None else milliseconds(since)
        offset, before = 0, set[str]()
        while True:
            items, more = self._page(query, start, offset)
            yield self._fresh(items)
            if not more:
                return
            reached, ids = _reached(items, start), _ids(items)
            if not items or (reached is None and ids <= before):
                raise Transient(f"{self._what}: there is a next page, but no further alerts come")
            if reached is not None:
                start, offset, before = reached, 0, set()
                continue
            offset, before = offset + max(1, len(items) - STEP_BACK), ids
            if offset + self.page > self.dialect.last_offset:
                raise Transient(f"{self._what}: over {self.dialect.last_offset} that creation time can't tell apart")

    @property
    def _what(self) -> str:
        return f"{self.dialect.kind} alerts"

    def _page(self, query: str, start: int | None, offset: int) -> tuple[list[object], bool]:
        created = "" if start is None else f"createdAt >= {start}"
        wanted = both(query, created)
        params = {"sort": "createdAt", "order": "asc", self.dialect.size: str(self.page), "offset": str(offset)}
        page = listed(self._get({"query": wanted, **params} if wanted else params), self._what)
        return page.items, page.next is not None or len(page.items) >= self.page

    def _get(self, params: dict[str, str]) -> Response:
        self._requests += 1
        if self._requests > self.max_pages:
            raise Transient(f"{self._what}: over {self.max_pages} pages")
        response = self.api.get(self.dialect.alerts, params, deadline=self.deadline)
        if self.server_time is None:
            self.server_time = server_time(response.headers)
        return response

    def _fresh(self, items: list[object]) -> list[object]:
        """Those not met before; what has no id is passed on, so that it is counted as broken."""
        fresh = []
        for item in items:
            native = item.get("id") if isinstance(item, dict) else None
            if isinstance(native, str):
                if native in self.seen:
                    continue
                self.seen.add(native)
            if isinstance(item, dict) and (created := instant(item.get("createdAt"))):
                self.newest = max(created, self.newest or created)
            fresh.append(item)
        return fresh


def both(*queries: str) -> str:
    """All of them must hold; blank ones say nothing."""
    return " AND ".join(query for query in queries if query)


def grouped(query: str) -> str:
    """A person's query in brackets, so that no OR reaches out of it."""
    return f"({query.strip()})" if query.strip() else ""


def _reached(items: list[object], start: int | None) -> int | None:
    """The creation time to go on from; None when the page is out of order or does not get beyond `start`."""
    times = [instant(item.get("createdAt")) for item in items if isinstance(item, dict)]
    created = [milliseconds(at) for at in times if at is not None]
    ascending = all(a <= b for a, b in itertools.pairwise(created))
    if not created or not ascending or (start is not None and (created[0] < start or created[-1] <= start)):
        return None
    return created[-1]


def _ids(items: list[object]) -> set[str]:
    return {str(item.get("id")) for item in items if isinstance(item, dict)}
