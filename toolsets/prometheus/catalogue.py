"""What there is to query: series, label names and values, metric types."""

from __future__ import annotations

from typing import Any

from agent.errors import ToolError
from agent.tools import Arguments, ToolContext, ToolResult
from toolsets import arguments as given
from toolsets.prometheus.api import PrometheusApi, bounds, escaped
from toolsets.prometheus.explain import closest
from toolsets.series.statistics import Labels
from toolsets.series.text import MAX_CHARS, bounded, cardinality, common_labels, selector, without
from toolsets.timerange import Now, window

ASKED_SERIES = 10_000  # of a server that knows `limit`; others send all
MAX_SHOWN = 100
MAX_METRICS = 30


class Catalogue:
    """The tools that list what one server holds."""

    def __init__(self, api: PrometheusApi, *, now: Now) -> None:
        self._api = api
        self._now = now

    def series(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        match = given.text(arguments, "match")
        look = window(arguments, context.alert, now=self._now())
        shown = f"series {match} {look}"
        fields = {"match[]": match, **bounds(look), "limit": str(ASKED_SERIES)}
        try:
            answer = self._api.ask("/api/v1/series", fields, context.deadline)
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown)
        every = _label_sets(answer.data)
        if not every:
            return ToolResult.no_data("no series matches in this window", query=shown)
        common = common_labels(every)
        lines = bounded((selector(without(labels, common)) for labels in every), max_lines=MAX_SHOWN)
        head = f"{len(every)} series" + (f"; all have {selector(common)}" if common else "")
        if len(lines) < len(every):
            head += (
                f"\nPARTIAL: {len(lines)} of {len(every)} series shown, unordered; narrow with more label matchers"
                f"\ndistinct label values: {cardinality(every)}"
            )
        return ToolResult.success("\n".join([*answer.warnings, head, *lines]), value=every, query=shown)

    def labels(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        label, search = given.text(arguments, "label"), given.text(arguments, "search").lower()
        look = window(arguments, context.alert, now=self._now())
        fields = {**bounds(look), "limit": str(ASKED_SERIES)}
        if match := given.text(arguments, "match"):
            fields["match[]"] = match
        what = f"values of label {label}" if label else "label names"
        shown = " ".join(part for part in (what, f"of {match}" if match else "", str(look)) if part)
        path = f"/api/v1/label/{escaped(label)}/values" if label else "/api/v1/labels"
        try:
            answer = self._api.ask(path, fields, context.deadline)
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown)
        every = sorted(str(value) for value in answer.data or ())
        found = [value for value in every if search in value.lower()]
        if not found:
            return ToolResult.no_data(_nearest(search, every), query=shown)
        return ToolResult.success("\n".join([*answer.warnings, _listed(found)]), value=found, query=shown)

    def metadata(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        asked = given.text(arguments, "metric")
        shown = f"metadata of {asked}"
        try:
            known = self._metadata({"metric": asked}, context)
            if not known:
                known = self._metadata({}, context)
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown)
        word = asked.lower()
        found = {name: about for name, about in known.items() if word in name.lower()}
        if not found:
            near = ", ".join(closest(asked, tuple(known)))
            return ToolResult.no_data(f"no metric is named so{f'; closest: {near}' if near else ''}", query=shown)
        lines = bounded((f"{name}: {about}" for name, about in sorted(found.items())), max_lines=MAX_METRICS)
        if len(lines) < len(found):
            lines.append(f"PARTIAL: {len(lines)} of {len(found)} metrics shown; give more of the name")
        return ToolResult.success("\n".join(lines), value=found, query=shown)

    def _metadata(self, fields: dict[str, str], context: ToolContext) -> dict[str, str]:
        """`counter, help text (unit)` by metric name."""
        data = self._api.ask("/api/v1/metadata", fields, context.deadline).data
        items = data.items() if isinstance(data, dict) else ()
        return {str(name): _about(entries[0]) for name, entries in items if isinstance(entries, list) and entries}


def _about(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    unit = f" (unit {entry['unit']})" if entry.get("unit") else ""
    return f"{entry.get('type', 'unknown')}, {str(entry.get('help', ''))[:200]}{unit}"


def _label_sets(data: Any) -> list[Labels]:
    return [{str(key): str(value) for key, value in item.items()} for item in data or () if isinstance(item, dict)]


def _listed(found: list[str]) -> str:
    lines = bounded(found, max_lines=MAX_SHOWN, max_chars=MAX_CHARS)
    head = f"{len(found)}: "
    if len(lines) < len(found):
        head = f"PARTIAL: {len(lines)} of {len(found)} shown, in alphabetical order; narrow with search or match\n"
    return head + ", ".join(lines)


def _nearest(search: str, every: list[str]) -> str:
    if not every:
        return "there are none in this window"
    near = closest(search, every)
    return f"none of {len(every)} contains {search!r}" + (f"; closest: {', '.join(near)}" if near else "")
