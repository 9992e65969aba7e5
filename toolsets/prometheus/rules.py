"""What the server itself watches: rules with their state and errors, and the alerts they raised."""

from __future__ import annotations

from typing import Any

from agent.alert import parse_time
from agent.errors import ToolError
from agent.tools import Arguments, ToolContext, ToolResult
from toolsets import arguments as given
from toolsets.connection import link
from toolsets.prometheus.api import PrometheusApi
from toolsets.series.text import MAX_LABEL_CHARS, bounded, cardinality, common_labels, number, selector, without
from toolsets.timerange import span, stamp

MAX_RULES = 25
MAX_ALERTS = 50
MAX_EXPRESSION_CHARS = 600
_ORDER = {"firing": 0, "pending": 1, "inactive": 2}


class Rules:
    """The tools on rules and alerts of one server."""

    def __init__(self, api: PrometheusApi, *, base: str) -> None:
        self._api = api
        self._base = base

    def rules(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        search = given.text(arguments, "search").lower()
        shown, url = f"rules{f' with {search!r}' if search else ''}", link(self._base, "/rules", {})
        try:
            data = self._api.ask("/api/v1/rules", {}, context.deadline).data
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown, url=url)
        every = _all_rules(data)
        found = [rule for rule in every if search in f"{rule.get('name')} {rule.get('query')} {rule['group']}".lower()]
        if not found:
            return ToolResult.no_data(f"none of {len(every)} rules matches", query=shown, url=url)
        ours = context.alert.labels.get("alertname", "")
        found.sort(key=lambda rule: _rule_order(rule, ours))
        lines = bounded((_rule_line(rule) for rule in found), max_lines=MAX_RULES)
        head = f"{len(found)} rules"
        if len(lines) < len(found):
            order = "this alert's, broken and firing ones first"
            head = f"PARTIAL: {len(lines)} of {len(found)} rules shown, {order}; use search"
        return ToolResult.success("\n".join([head, *lines]), value=found[:500], query=shown, url=url)

    def alerts(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        search = given.text(arguments, "search").lower()
        shown, url = f"alerts{f' with {search!r}' if search else ''}", link(self._base, "/alerts", {})
        try:
            data = self._api.ask("/api/v1/alerts", {}, context.deadline).data
        except ToolError as error:
            return ToolResult.failed(str(error), query=shown, url=url)
        every = [alert for alert in (data or {}).get("alerts") or () if isinstance(alert, dict)]
        found = [alert for alert in every if search in selector(_labels(alert)).lower()]
        if not found:
            return ToolResult.no_data(f"{len(every)} alerts are pending or firing; none matches", query=shown, url=url)
        found.sort(key=lambda alert: (_ORDER.get(str(alert.get("state")), 3), str(alert.get("activeAt"))))
        labels = [_labels(alert) for alert in found]
        common = common_labels(labels)
        lines = bounded((_alert_line(alert, common) for alert in found), max_lines=MAX_ALERTS)
        head = f"{len(found)} alerts" + (f"; all have {selector(common)}" if common else "")
        if len(lines) < len(found):
            head += f"\nPARTIAL: {len(lines)} of {len(found)} alerts shown, firing and oldest first; use search"
            head += f"\ndistinct label values: {cardinality(labels)}"
        return ToolResult.success("\n".join([head, *lines]), value=found[:500], query=shown, url=url)


def _all_rules(data: Any) -> list[dict[str, Any]]:
    groups = data.get("groups") if isinstance(data, dict) else None
    return [
        {**{key: value for key, value in rule.items() if key != "alerts"}, "group": str(group.get("name", "")),
         "active": len(rule.get("alerts") or ())}
        for group in groups or ()
        for rule in group.get("rules") or ()
    ]  # fmt: skip


def _rule_order(rule: dict[str, Any], ours: str) -> tuple[bool, bool, int, str]:
    return (
        rule.get("name") != ours,
        not rule.get("lastError"),
        _ORDER.get(str(rule.get("state")), 3),
        str(rule.get("name")),
    )


def _rule_line(rule: dict[str, Any]) -> str:
    """`HighLatency (group api) firing, 2 active, for 5m: expression`, then what it says and what is wrong with it."""
    state = rule.get("state") or "recording"
    head = f"{rule.get('name')} (group {rule['group']}) {state}"
    if rule["active"]:
        head += f", {rule['active']} active"
    if rule.get("duration"):
        head += f", for {span(float(rule['duration']))}"
    text = f"{head}: {' '.join(str(rule.get('query', '')).split())[:MAX_EXPRESSION_CHARS]}"
    for key, value in (rule.get("annotations") or {}).items():
        text += f"\n  {key}: {' '.join(str(value).split())[: MAX_LABEL_CHARS * 2]}"
    if rule.get("lastError"):
        text += f"\n  rule fails: {rule['lastError']}"
    return text


def _labels(alert: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in (alert.get("labels") or {}).items()}


def _alert_line(alert: dict[str, Any], common: dict[str, str]) -> str:
    since = parse_time(alert.get("activeAt"))
    text = f"{alert.get('state', '')} {selector(without(_labels(alert), common))}"
    if since:
        text += f" since {stamp(since)}"
    return f"{text} value={_value(alert.get('value'))}"


def _value(value: Any) -> str:
    try:
        return number(float(value))
    except (TypeError, ValueError):
        return str(value)
