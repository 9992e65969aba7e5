"""PromQL at one time and over a window, summarised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent.deadline import Deadline
from agent.errors import ToolError
from agent.tools import Arguments, Health, ToolContext, ToolResult
from toolsets import arguments as given
from toolsets.connection import link, unhealthy
from toolsets.prometheus.api import Answer, PrometheusApi, TooLargeError, read_series
from toolsets.prometheus.explain import MetricNames, why_empty
from toolsets.prometheus.interval import ScrapeInterval, ending_on_a_step, fitting
from toolsets.series.statistics import Series
from toolsets.series.text import Grid, as_value, instant_text, range_text
from toolsets.timerange import Now, Window, around, moment, span, stamp, window

CHECK_SECONDS = 10.0


class Queries:
    """The tools that run PromQL on one server."""

    def __init__(self, api: PrometheusApi, *, base: str, max_points: int, now: Now) -> None:
        self._api = api
        self._base = base
        self._max_points = max_points
        self._now = now
        self._names = MetricNames(api)
        self._scrape = ScrapeInterval(api)

    def query(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        query = _promql(arguments)
        now = self._now()
        at = moment(arguments.get("time"), alert=context.alert, now=now) or around(context.alert, now=now).end
        shown, url = f"{_one_line(query)} at {stamp(at)}", self._instant_link(query, at)
        try:
            answer = self._api.query(query, time=at.timestamp(), deadline=context.deadline)
            every = read_series(answer.data)
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown, url=url)
        if not every:
            look = around(context.alert, now=now)
            look = Window(start=min(look.start, at - (look.end - look.start)), end=at)
            return self._empty(query, shown, url, look, answer, context.deadline)
        is_range = isinstance(answer.data, dict) and answer.data.get("resultType") == "matrix"
        text = range_text(every, _scraped(every)) if is_range else instant_text(every, at=stamp(at))
        return ToolResult.success(_warned(answer, text), value=as_value(every), query=shown, url=url)

    def query_range(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        query = _promql(arguments)
        look = window(arguments, context.alert, now=self._now())
        scrape = self._scrape.seconds(context.deadline)
        step = fitting(arguments.get("step"), look, max_points=self._max_points, scrape=scrape)
        look = ending_on_a_step(look, step.seconds)
        shown, url = f"{_one_line(query)} {look} step {span(step.seconds)}", self._range_link(query, look)
        try:
            answer = self._api.query_range(query, window=look, step=step.seconds, deadline=context.deadline)
            every = read_series(answer.data)
        except TooLargeError as error:
            return ToolResult.failed(self._how_many(query, look, str(error), context.deadline), query=shown, url=url)
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown, url=url)
        if not every:
            return self._empty(query, shown, url, look, answer, context.deadline)
        grid = Grid(start=look.start.timestamp(), end=look.end.timestamp(), step=step.seconds)
        notes = [step.note] if step.note else []
        text = "\n".join([*notes, range_text(every, grid)])
        return ToolResult.success(_warned(answer, text), value=as_value(every), query=shown, url=url)

    def check(self, deadline: Deadline) -> Health:
        """Asks what the tools will ask: a server can be ready and still refuse our credentials."""
        deadline = deadline.within(CHECK_SECONDS)
        try:
            self._api.query("1", time=self._now().timestamp(), deadline=deadline)
        except ToolError as error:
            return unhealthy(str(error))
        try:
            told = self._api.ask("/api/v1/status/buildinfo", {}, deadline).data
        except ToolError:
            told = None
        return Health.ok(f"version {told['version']}" if isinstance(told, dict) and told.get("version") else "")

    def _empty(self, query: str, shown: str, url: str, look: Window, answer: Answer, deadline: Deadline) -> ToolResult:
        why = why_empty(self._api, self._names, query, look, deadline)
        return ToolResult.no_data(
            _warned(answer, why or "the query is valid and matches nothing"), query=shown, url=url
        )

    def _how_many(self, query: str, look: Window, error: str, deadline: Deadline) -> str:
        """The number of series of an answer that was too large to read."""
        try:  # on lines of its own: the query may end in a comment
            answer = self._api.query(f"count(\n{query}\n)", time=look.end.timestamp(), deadline=deadline)
            found = read_series(answer.data)
        except ToolError:
            return error
        return f"{error}\nthe query gives {found[0].points[-1][1]:.0f} series" if found else error

    def _instant_link(self, query: str, at: datetime) -> str:
        return self._graph({"g0.expr": query, "g0.tab": "1", "g0.moment_input": _page_time(at)})

    def _range_link(self, query: str, look: Window) -> str:
        seconds = f"{max(1, round(look.seconds))}s"
        fields = {"g0.expr": query, "g0.tab": "0", "g0.range_input": seconds, "g0.end_input": _page_time(look.end)}
        return self._graph(fields)

    def _graph(self, fields: Mapping[str, str]) -> str:
        return link(self._base, "/graph", fields)


def _promql(arguments: Arguments) -> str:
    query = given.text(arguments, "query")
    if not query:
        raise ToolError("query is empty: give PromQL, e.g. sum by (job) (up)")
    return query


def _one_line(query: str) -> str:
    return " ".join(query.split())


def _scraped(every: Sequence[Series]) -> Grid:
    """The times of a range selector's samples, which are as they were scraped."""
    start = min(series.points[0][0] for series in every)
    return Grid(start=start, end=max(series.points[-1][0] for series in every), step=0.0)


def _page_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _warned(answer: Answer, text: str) -> str:
    """Warnings first: they say that what follows may be incomplete."""
    parts: Sequence[str] = (*answer.warnings, text)
    return "\n".join(parts)
