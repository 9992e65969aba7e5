"""The query of a PagerDuty sweep: `name=value` pairs with spaces between, as PagerDuty has no query language.

`statuses=triggered,acknowledged,resolved` (open by default), `service_ids=`, `team_ids=`, `urgencies=high,low`,
`incident_key=`, `since=` and `until=` (a time such as 2031-02-03T00:00:00Z, or an age such as 7d, 12h, 30m).
Lists have commas. Without `since` the age of an incident does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from agent.alert import parse_time
from agent.errors import Permanent
from sources.pagerduty.paging import window

LISTS = ("statuses", "service_ids", "team_ids", "urgencies")
NAMES = (*LISTS, "incident_key", "since", "until")
_AGE = re.compile(r"(\d{1,6})([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def parse_query(query: str, *, now: datetime) -> Mapping[str, Any]:
    """The parameters of `GET /incidents`. Raises `Permanent` that says what is allowed."""
    pairs: dict[str, str] = {}
    for word in query.split():
        name, equals, value = word.partition("=")
        if name not in NAMES or not equals or not value:
            raise Permanent(f"pagerduty query: {word[:80]!r} is not one of {', '.join(f'{n}=' for n in NAMES)}")
        pairs[name] = value
    params: dict[str, Any] = {"statuses": ["triggered", "acknowledged"]}
    params |= {name: pairs[name].split(",") for name in LISTS if name in pairs}
    if "incident_key" in pairs:
        params["incident_key"] = pairs["incident_key"]
    if "since" not in pairs and "until" not in pairs:
        return {**params, "date_range": "all"}
    until = _time(pairs["until"], now) if "until" in pairs else now
    since = _time(pairs["since"], now) if "since" in pairs else until - timedelta(days=30)
    return {**params, **window(since, until)}


def _time(text: str, now: datetime) -> datetime:
    if age := _AGE.fullmatch(text):
        return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
    if at := parse_time(text):
        return at
    raise Permanent(f"pagerduty query: {text[:80]!r} is neither a time like 2031-02-03T00:00:00Z nor an age like 7d")
