"""Reads GitHub's lists whole: by update time where issues change while we read, by the Link header elsewhere."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agent.alert import parse_time
from agent.deadline import Deadline
from agent.errors import Transient
from agent.http import Response, server_time
from sources.github.client import GitHubApi

PAGE = 100  # the API's maximum
MAX_PAGES = 300  # of one list
STEP_BACK = 10  # rows of a page that are asked for again: see `Walk.run`
SECOND = timedelta(seconds=1)  # what the API's times are rounded to
Query = Mapping[str, str]
_LINK = re.compile(r'<([^<>]*)>\s*;[^,<]*\brel="?(\w+)"?')


def linked(response: Response, relation: str) -> dict[str, str] | None:
    """The query of the page that the `Link` header names `next` or `last`; None when there is none.

    Only the query is taken: where requests go is not for a reply to say.
    """
    for url, name in _LINK.findall(response.headers.get("link", "")):
        if name == relation:
            try:
                return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
            except ValueError:
                return None
    return None


def listed(response: Response, what: str) -> list[object]:
    """Raises `Transient`: a 200 with rubbish is a failed read."""
    body = response.json()
    if not isinstance(body, list):
        raise Transient(f"{what}: a 200 that is not a list")
    return body


def all_pages(api: GitHubApi, path: str, what: str, deadline: Deadline) -> Iterator[list[object]]:
    """A list that only grows at its end, page by page."""
    params: Query = {"per_page": str(PAGE)}
    before: list[object] = []
    for _ in range(MAX_PAGES):
        response = api.get(path, params, deadline=deadline)
        rows = listed(response, what)
        following = linked(response, "next")
        if following is not None and (not rows or rows == before):
            raise Transient(f"{what}: a next page is named, but nothing further comes")
        yield rows
        if following is None:
            return
        params, before = following, rows
    raise Transient(f"{what}: over {MAX_PAGES} pages")


@dataclass(slots=True)
class Walk:
    """One reading of a repository's issues. An issue comes again only when it was updated meanwhile."""

    api: GitHubApi
    repository: str
    deadline: Deadline
    max_pages: int = MAX_PAGES
    server_time: datetime | None = None  # when the server began to answer, by its own clock
    newest: datetime | None = None  # the latest update met
    _seen: set[tuple[str, str, str]] = field(default_factory=set)

    def run(self, params: Query, since: datetime | None) -> Iterator[list[object]]:
        """The issues updated since then, least recently updated first, in pages.

        Page numbers shift while issues change. So it is always the first page that is read, from the last updates met
        on: what is updated meanwhile moves to the end and still comes. Only a page within one second is paged on.
        A row may show a newer time than the one it was sorted by, so the next page starts some rows back.
        """
        base = {**params, "sort": "updated", "direction": "asc", "per_page": str(PAGE)}
        asked: Query = _from(base, since)
        before: list[object] = []
        for _ in range(self.max_pages):
            response, rows = self._page(asked)
            following = linked(response, "next")
            if following is not None and (not rows or rows == before):
                raise Transient(f"{self._what}: a next page is named, but nothing further comes")
            fresh = self._fresh(rows)
            yield fresh
            if following is None and (len(rows) < PAGE or not fresh):
                return
            last = _earliest(rows[-STEP_BACK:])
            step = last - SECOND if last else None  # whether `since` includes its own second is not documented
            if step is not None and (since is None or step > since):
                since, before = step, []
                asked = _from(base, since)
            else:
                before = rows
                asked = following or {**asked, "page": str(int(asked.get("page", "1")) + 1)}
        raise Transient(f"{self._what}: over {self.max_pages} pages")

    @property
    def _what(self) -> str:
        return f"github issues of {self.repository}"

    def _page(self, asked: Query) -> tuple[Response, list[object]]:
        response = self.api.get(f"/repos/{self.repository}/issues", asked, deadline=self.deadline)
        if self.server_time is None:
            self.server_time = server_time(response.headers)
        return response, listed(response, self._what)

    def _fresh(self, rows: list[object]) -> list[object]:
        """Those not met before in this state; what has no id is passed on, so that it is counted as broken."""
        fresh = []
        for row in rows:
            if isinstance(row, dict) and row.get("id") is not None:
                state = (str(row["id"]), str(row.get("updated_at")), str(row.get("state")))
                if state in self._seen:
                    continue
                self._seen.add(state)
                if at := parse_time(row.get("updated_at")):
                    self.newest = max(at, self.newest or at)
            fresh.append(row)
        return fresh


def _from(base: Query, since: datetime | None) -> Query:
    return {**base, "since": stamp(since)} if since else base


def _earliest(rows: list[object]) -> datetime | None:
    times = [parse_time(row.get("updated_at")) for row in rows if isinstance(row, dict)]
    return min((at for at in times if at), default=None)


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
