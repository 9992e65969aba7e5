"""Grafana Loki: log lines, folded, and metrics from logs, summarised; label names and values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.deadline import Deadline
from agent.errors import Permanent, ToolError, Transient
from agent.http import Http
from agent.tools import Arguments, Health, HealthState, JsonSchema, Tool, ToolContext, ToolResult, Toolset
from toolsets import arguments as given
from toolsets.configs import LokiConfig
from toolsets.connection import (
    MAX_GET_CHARS,
    advice,
    connect,
    link,
    mark,
    public_url,
    too_large,
    unhealthy,
    unreachable,
    without_secrets,
)
from toolsets.lines import Line, text_of, tidy
from toolsets.prometheus.api import read_series
from toolsets.prometheus.explain import closest
from toolsets.prometheus.interval import fitting
from toolsets.prometheus.selectors import Matcher, selectors
from toolsets.series.text import Grid, as_value, bounded, range_text
from toolsets.timerange import BEFORE, Now, Window, span, utc_now, window

QUERY_RANGE = "/loki/api/v1/query_range"
LABELS = "/loki/api/v1/labels"
DEFAULT_LINES = 500
MAX_LINES = 5_000  # Loki's own default ceiling
MAX_POINTS = 120
MAX_VALUES = 100
MAX_MATCHERS = 4
CHECK_SECONDS = 10.0
EXPLAIN_SECONDS = 10.0
INSTRUCTIONS = 'LogQL, e.g. {namespace="a"} |= "error"; times as in RFC 3339, -1h or alert-10m.'

_TEXT = {"type": "string"}
_QUERY: JsonSchema = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "LogQL, of logs or metrics"},
        "start": _TEXT,
        "end": _TEXT,
        "limit": {"type": "integer"},
        "direction": {"type": "string", "enum": ["backward", "forward"]},
    },
    "required": ["query"],
}
_LABELS: JsonSchema = {
    "type": "object",
    "properties": {
        "label": _TEXT,
        "query": {"type": "string", "description": "selector"},
        "start": _TEXT,
        "end": _TEXT,
    },
}
_HINTS = (
    (r"at least one regexp or equality matcher", 'give a label matcher that is not empty: {namespace="..."}'),
    (r"time range exceeds|query length|too far in the past", "ask a shorter window"),
    (r"max entries limit", "give a smaller limit"),
    (r"maximum of series|too many outstanding|timeout|deadline", "ask a shorter window or add label matchers"),
    (r"parse error", "correct the LogQL"),
)


def build(name: str, config: LokiConfig, *, now: Now = utc_now) -> Toolset:
    """`{name}_query` and `{name}_labels` of one server. Reaches no network."""
    explore = public_url(config.external_url) if config.external_url else ""
    loki = Loki(connect(config), explore=explore, now=now)
    tools = (
        Tool(
            name=f"{name}_query",
            description="Log lines, alike ones folded; or a metric query's series",
            parameters=_QUERY,
            run=loki.query,
        ),
        Tool(
            name=f"{name}_labels",
            description="Label names, or the values of one label",
            parameters=_LABELS,
            run=loki.labels,
        ),
    )
    return Toolset(name=name, tools=tools, check=loki.check, instructions=INSTRUCTIONS)


class Loki:
    """The tools of one server. Links lead to Grafana's Explore, where `explore` names a Grafana."""

    def __init__(self, http: Http, *, explore: str, now: Now) -> None:
        self._http = http
        self._explore = explore
        self._now = now

    def query(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        try:
            arguments = given.only_known(arguments, _QUERY)
            query, direction = given.text(arguments, "query"), _direction(arguments)
            if not query:
                raise ToolError('query is empty: give LogQL, e.g. {namespace="a"} |= "error"')
            limit = given.whole(arguments, "limit", default=DEFAULT_LINES, low=1, high=MAX_LINES)
            look = window(arguments, context.alert, now=self._now())
        except ToolError as error:
            return ToolResult.failed(str(error))
        step = fitting(None, look, max_points=MAX_POINTS, scrape=None).seconds
        shown, url = f"{' '.join(query.split())} {look} limit {limit} {direction}", self._link(query, look)
        fields = {"query": query, **_bounds(look), "limit": str(limit), "direction": direction, "step": f"{step:g}"}
        try:
            data = self._ask(QUERY_RANGE, fields, context.deadline)
            if _kind(data) != "streams":
                return self._metric(query, look, step, data, url, context.deadline)
            lines = _lines(data)
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown, url=url)
        if not lines:
            return ToolResult.no_data(self._why_empty(query, look, context.deadline), query=shown, url=url)
        text = text_of(lines)
        if len(lines) >= limit:
            end = "newest" if direction == "backward" else "oldest"
            text = f"PARTIAL: the {end} {limit} lines only; there are more: filter, or ask a shorter window\n{text}"
        value = [{"at": line.at, "labels": line.labels, "line": line.text} for line in lines]
        return ToolResult.success(text, value=value, query=shown, url=url)

    def labels(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        try:
            arguments = given.only_known(arguments, _LABELS)
            label, query = given.text(arguments, "label"), given.text(arguments, "query")
            look = window(arguments, context.alert, now=self._now())
        except ToolError as error:
            return ToolResult.failed(str(error))
        what = f"values of label {label}" if label else "label names"
        shown = f"{what}{f' of {query}' if query else ''} {look}"
        try:
            found = sorted(self._names(label, look, context.deadline, query=query))
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown)
        if not found:
            return ToolResult.no_data("there are none in this window", query=shown)
        lines = bounded(found, max_lines=MAX_VALUES)
        head = f"{len(found)}: "
        if len(lines) < len(found):
            head = f"PARTIAL: {len(lines)} of {len(found)} shown, in alphabetical order; narrow with query\n"
        return ToolResult.success(head + ", ".join(lines), value=found, query=shown)

    def check(self, deadline: Deadline) -> Health:
        """Asks what the tools will ask: a server can be ready and still refuse our credentials."""
        now = self._now()
        try:
            names = self._names("", Window(start=now - BEFORE, end=now), deadline.within(CHECK_SECONDS))
        except ToolError as error:
            return unhealthy(str(error))
        if not names:
            return Health(
                state=HealthState.DEGRADED,
                reason="no logs in the last hour",
                remedy="check that logs are shipped here, and the tenant",
            )
        return Health.ok()

    def _metric(self, query: str, look: Window, step: float, data: Any, url: str, deadline: Deadline) -> ToolResult:
        shown = f"{' '.join(query.split())} {look} step {span(step)}"
        every = read_series(data)
        if not every:
            return ToolResult.no_data(self._why_empty(query, look, deadline), query=shown, url=url)
        grid = Grid(start=look.start.timestamp(), end=look.end.timestamp(), step=step)
        return ToolResult.success(range_text(every, grid), value=as_value(every), query=shown, url=url)

    def _why_empty(self, query: str, look: Window, deadline: Deadline) -> str:
        """Which part of the selector meets nothing, and what there is instead."""
        braced = [one for one in selectors(query) if one.text.startswith("{")]
        if not braced:
            return "no line matches in this window"
        deadline = deadline.within(EXPLAIN_SECONDS)
        try:
            names = self._names("", look, deadline)
            told = [self._unmet(one, names, look, deadline) for one in braced[0].matchers[:MAX_MATCHERS]]
            if any(told):
                return "\n".join(line for line in told if line)
            if braced[0].matchers and self._names(braced[0].matchers[0].label, look, deadline, query=braced[0].text):
                return f"streams match {braced[0].text} in this window, but no line passes what follows it"
        except ToolError:
            return "no line matches in this window"
        return f"each matcher of {braced[0].text} meets a stream, but none meets all, in this window"

    def _unmet(self, one: Matcher, names: list[str], look: Window, deadline: Deadline) -> str:
        if one.operator in ("!=", "!~"):
            return ""
        if one.label not in names:
            return f"no label {one.label} in this window; labels are {', '.join(sorted(names)[:MAX_VALUES]) or 'none'}"
        alone = f"{{{one.label}{one.operator}{json.dumps(one.value, ensure_ascii=False)}}}"
        if self._names(one.label, look, deadline, query=alone):
            return ""
        values = self._names(one.label, look, deadline)
        near = closest(one.value, values, count=12) or sorted(values)[:12]
        more = f" (of {len(values)})" if len(values) > len(near) else ""
        return f"{alone} matches no stream; values of {one.label} are {', '.join(near) or 'none'}{more}"

    def _names(self, label: str, look: Window, deadline: Deadline, *, query: str = "") -> list[str]:
        """Label names, or the values of `label`; of the streams that `query` selects."""
        if label and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", label):
            raise ToolError(f"{label[:60]!r} is no label name")
        path = f"/loki/api/v1/label/{label}/values" if label else LABELS
        data = self._ask(path, {**_bounds(look), **({"query": query} if query else {})}, deadline)
        return [str(name) for name in data] if isinstance(data, list) else []

    def _ask(self, path: str, fields: Mapping[str, str], deadline: Deadline) -> Any:
        """One read. A GET, or a form where the query is long; nothing else is ever sent."""
        form = path == QUERY_RANGE and len(fields.get("query", "")) > MAX_GET_CHARS
        try:
            if form:
                reply = self._http.request("POST", path, deadline=deadline, data=fields)
            else:
                reply = self._http.request("GET", path, deadline=deadline, params=fields)
            if reply.status >= 300:
                refusal = _refusal(reply.status, reply.text, fields.get("query", ""))
                raise ToolError(without_secrets(refusal, reply))
            body = reply.json()
        except Transient as error:
            raise ToolError(unreachable(str(error))) from error
        except Permanent as error:
            hint = "give a smaller limit or a shorter window" if too_large(error) else advice(404)
            raise ToolError(f"{error}: {hint}") from error
        if not isinstance(body, dict) or body.get("status") == "error":
            raise ToolError(f"the server sent an unexpected body: {advice(reply.status)}")
        return body.get("data")

    def _link(self, query: str, look: Window) -> str:
        if not self._explore:
            return ""
        bounds = {"from": str(_milliseconds(look.start)), "to": str(_milliseconds(look.end))}
        queries = [{"refId": "A", "expr": query, "datasource": {"type": "loki"}}]
        pane = {"a": {"datasource": "loki", "queries": queries, "range": bounds}}
        return link(self._explore, "/explore", {"schemaVersion": "1", "panes": json.dumps(pane)})


def _direction(arguments: Arguments) -> str:
    direction = given.text(arguments, "direction", "backward").lower()
    if direction not in ("backward", "forward"):
        raise ToolError("direction is backward (newest first) or forward")
    return direction


def _bounds(look: Window) -> dict[str, str]:
    """Nanoseconds, of whole milliseconds: floats hold no nanosecond of our time."""
    return {"start": f"{_milliseconds(look.start)}000000", "end": f"{_milliseconds(look.end)}000000"}


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _kind(data: Any) -> str:
    if not isinstance(data, dict) or not isinstance(data.get("result"), list):
        raise ToolError("the server sent a result that can't be read")
    return str(data.get("resultType"))


def _lines(data: Any) -> list[Line]:
    """The lines of all streams. A third element of an entry, structured metadata, is left out."""
    try:
        return [
            Line(at=int(entry[0]) / 1e9, labels=dict(stream["stream"]), text=tidy(str(entry[1])))
            for stream in data["result"]
            for entry in stream["values"]
        ]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ToolError("the server sent a stream that can't be read") from error


def _refusal(status: int, body: str, query: str) -> str:
    """Loki refuses in plain text, some gateways in JSON or HTML."""
    words = "" if "<html" in body.lower() else " ".join(body[:600].split())
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, words, re.IGNORECASE)), advice(status))
    place = re.search(r"at line (\d+), col (\d+)", words)
    where = mark(query, int(place[1]), int(place[2])) if place else ""
    return "\n".join(part for part in (f"HTTP {status}: {words}".rstrip(": "), where, f"try: {hint}") if part)
