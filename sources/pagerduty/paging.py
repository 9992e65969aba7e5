"""Reads a whole incident list through PagerDuty's offset paging, which skips, repeats and stops at 10,000."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.alert import parse_time
from agent.deadline import Deadline
from agent.errors import Transient
from agent.http import server_time
from sources.pagerduty.client import PagerDutyApi

PAGE = 100  # the API's maximum
LAST_OFFSET = 10_000  # offset + limit may not be larger
STEP_BACK = 10  # asked for again on every page: incidents that resolve while we page shift the rest forward
WINDOW = timedelta(days=170)  # since..until may span six months
MAX_PAGES = 1_000  # of one walk


@dataclass(slots=True)
class Walk:
    """One reading of `GET /incidents`. Each incident comes once, however many walks `run` makes with this object."""

    api: PagerDutyApi
    deadline: Deadline
    seen: set[str] = field(default_factory=set)
    server_time: datetime | None = None  # when the server began to answer, by its own clock
    newest: datetime | None = None  # the latest creation time met
    last_offset: int = LAST_OFFSET
    _requests: int = 0

    def run(self, params: Mapping[str, Any]) -> Iterator[list[object]]:
        """The incidents not seen before, a page at a time. Raises `Transient` when the end can't be reached."""
        params = {"sort_by": "created_at:asc", **params}
        met: set[str] = set()
        while not (yield from self._within_limit(params, met)):
            params = self._rest(params)

    def _within_limit(self, params: Mapping[str, Any], met: set[str]) -> Generator[list[object], None, bool]:
        """Pages up to the highest offset the API takes; true when that was the whole list."""
        offset, here = 0, set[str]()
        while offset + PAGE <= self.last_offset:
            incidents, more = self._page({**params, "limit": PAGE, "offset": offset})
            yield self._fresh(incidents)
            if not more:
                return True
            ids = _ids(incidents)
            if len(incidents) <= STEP_BACK or ids <= here:
                raise Transient(f"pagerduty incidents: more=true at offset {offset}, but no further incidents come")
            here |= ids
            offset += len(incidents) - STEP_BACK
        if here <= met:
            raise Transient(f"pagerduty incidents: over {self.last_offset} that can't be told apart by creation time")
        met |= here
        return False

    def _page(self, params: Mapping[str, Any]) -> tuple[list[object], bool]:
        self._requests += 1
        if self._requests > MAX_PAGES:
            raise Transient(f"pagerduty incidents: over {MAX_PAGES} pages")
        response = self.api.get("/incidents", params, deadline=self.deadline)
        if self.server_time is None:
            self.server_time = server_time(response.headers)
        body = response.json()
        incidents = body.get("incidents") if isinstance(body, dict) else None
        if not isinstance(incidents, list):
            raise Transient("pagerduty incidents: a 200 without a list of incidents")
        return incidents, body.get("more") is True

    def _fresh(self, incidents: list[object]) -> list[object]:
        """Those not met before; what has no id is passed on, so that it is counted as broken."""
        fresh = []
        for incident in incidents:
            native = incident.get("id") if isinstance(incident, dict) else None
            if isinstance(native, str):
                if native in self.seen:
                    continue
                self.seen.add(native)
            if isinstance(incident, dict) and (created := parse_time(incident.get("created_at"))):
                self.newest = max(created, self.newest or created)
            fresh.append(incident)
        return fresh

    def _rest(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The same list from the newest creation time on: the way past the offset limit."""
        if self.newest is None:
            raise Transient(f"pagerduty incidents: over {self.last_offset}, none with a creation time to go on from")
        kept = {name: value for name, value in params.items() if name != "date_range"}
        return {**kept, **window(self.newest, (self.server_time or self.newest) + timedelta(hours=1))}


def _ids(incidents: list[object]) -> set[str]:
    return {str(incident.get("id")) for incident in incidents if isinstance(incident, dict)}


def window(since: datetime, until: datetime) -> dict[str, str]:
    """`since` without `until` means one month; both are sent, in UTC, within the six months the API allows."""
    return {"since": stamp(max(since, until - WINDOW)), "until": stamp(until)}


def stamp(at: datetime) -> str:
    """Without an offset PagerDuty reads a time in the account's own zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
