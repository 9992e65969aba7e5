"""Plays Prometheus's HTTP API, read side, over the generated series."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from deploy.demo.exchange import Reply, Request, whole
from deploy.demo.promql.evaluator import SCRAPE_SECONDS, Database, Series, existed, instant, over_range
from deploy.demo.promql.functions import Sample
from deploy.demo.promql.lexer import seconds
from deploy.demo.promql.parser import parse
from deploy.demo.promql.syntax import QueryError, Selector
from deploy.demo.promql.values import Key
from deploy.demo.scene import rfc3339
from deploy.demo.tickets import Ticket, Tickets

HOUR_SECONDS = 3_600.0
STATUS = {
    "buildinfo": {
        "version": "3.8.0",
        "revision": "e44ed351cdc87bf7cf2e5b0b2d3a1b4f0d3a8f1c",
        "branch": "HEAD",
        "buildUser": "demo",
        "buildDate": "20251202",
        "goVersion": "go1.25.4",
    },
    "config": {"yaml": f"global:\n  scrape_interval: {SCRAPE_SECONDS}s\n  evaluation_interval: {SCRAPE_SECONDS}s\n"},
}


class Prometheus:
    def __init__(
        self, database: Database, metadata: Mapping[str, tuple[str, str]], tickets: Tickets, now: Callable[[], float]
    ) -> None:
        self._database = database
        self._metadata = metadata
        self._tickets = tickets
        self._now = now

    def handle(self, request: Request) -> Reply:
        if request.path in ("/-/ready", "/-/healthy"):
            return Reply(text="Prometheus Server is Ready.\n", content_type="text/plain")
        request = request.with_form()
        try:
            return self._answer(request)
        except QueryError as error:
            return Reply(status=400, payload={"status": "error", "errorType": "bad_data", "error": str(error)})

    def _answer(self, request: Request) -> Reply:
        match request.parts:
            case ["api", "v1", "query"]:
                return _good(self._query(request))
            case ["api", "v1", "query_range"]:
                return _good(self._query_range(request))
            case ["api", "v1", "series"]:
                return _good(self._limited(request, [dict(one.labels) for one in self._selected(request, needed=True)]))
            case ["api", "v1", "labels"]:
                names = {name for one in self._selected(request) for name in one.labels}
                return _good(self._limited(request, sorted(names)))
            case ["api", "v1", "label", name, "values"]:
                values = {one.labels[name] for one in self._selected(request) if name in one.labels}
                return _good(self._limited(request, sorted(values)))
            case ["api", "v1", "rules"]:
                return _good(
                    {"groups": [{"name": "alerts", "file": "alerts.yml", "interval": 30, "rules": self._rules()}]}
                )
            case ["api", "v1", "alerts"]:
                return _good({"alerts": [alert for rule in self._rules() for alert in rule["alerts"]]})
            case ["api", "v1", "metadata"]:
                return _good(self._described(request))
            case ["api", "v1", "status", what] if what in STATUS:
                return _good(STATUS[what])
            case _:
                return Reply(status=404, text="404 page not found\n", content_type="text/plain")

    def _query(self, request: Request) -> dict[str, Any]:
        at = _time(request.one("time"), "time", self._now())
        found = instant(self._database, _wanted(request, "query"), at)
        match found:
            case str():
                return {"resultType": "string", "result": [at, found]}
            case float():
                return {"resultType": "scalar", "result": [at, _number(found)]}
            case dict():
                result = [{"metric": dict(labels), "value": [at, _number(value)]} for labels, value in found.items()]
                return {"resultType": "vector", "result": result}
            case _:
                return {"resultType": "matrix", "result": _matrix(found)}

    def _query_range(self, request: Request) -> dict[str, Any]:
        start = _time(_wanted(request, "start"), "start", 0.0)
        end = _time(_wanted(request, "end"), "end", 0.0)
        step = _duration(_wanted(request, "step"))
        found = over_range(self._database, _wanted(request, "query"), start, end, step)
        return {"resultType": "matrix", "result": _matrix(found.items())}

    def _selected(self, request: Request, *, needed: bool = False) -> list[Series]:
        """Series that match any `match[]` and have a sample in the window asked for."""
        selectors = request.all("match[]")
        if needed and not selectors:
            raise QueryError("no match[] parameter provided")
        chosen = [parse(text) for text in selectors or ['{__name__=~".+"}']]
        end = _time(request.one("end"), "end", self._now())
        found: dict[int, Series] = {}
        for node in chosen:
            if not isinstance(node, Selector) or node.seconds is not None:
                raise QueryError("match[] must be a series selector")
            found |= {id(one): one for one in self._database.select(node.matchers)}
        start = min(end, _time(request.one("start"), "start", end - HOUR_SECONDS))
        return [one for one in found.values() if existed(one, start, end)]

    def _limited(self, request: Request, items: list[Any]) -> list[Any]:
        limit = whole(request.one("limit"), 0)
        return items[:limit] if limit else items

    def _described(self, request: Request) -> dict[str, Any]:
        only, present = request.one("metric"), set(self._database.names)
        kept = {name: about for name, about in self._metadata.items() if name in present and only in ("", name)}
        described = {name: [{"type": kind, "help": text, "unit": ""}] for name, (kind, text) in kept.items()}
        limit = whole(request.one("limit"), 0)
        return dict(list(described.items())[:limit]) if limit else described

    def _alerting(self, what: str) -> dict[str, Any]:
        rules = self._rules()
        if what == "alerts":
            return {"alerts": [alert for rule in rules for alert in rule["alerts"]]}
        return {"groups": [{"name": "alerts", "file": "alerts.yml", "interval": 30, "rules": rules}]}

    def _rules(self) -> list[dict[str, Any]]:
        """One rule an incident; it fires for as long as the ticket is open."""
        rules: dict[str, dict[str, Any]] = {}
        for ticket in self._tickets.all():
            rule = ticket.incident.rule
            told = rules.setdefault(ticket.incident.id, {"state": "inactive", "alerts": []})
            told |= {
                "name": rule.name,
                "query": rule.expr,
                "duration": rule.hold_seconds,
                "keepFiringFor": rule.keep_seconds,
                "labels": dict(rule.labels),
                "annotations": dict(rule.annotations),
                "health": "ok",
                "evaluationTime": 0.0007,
                "lastEvaluation": rfc3339(self._now(), fraction=9),
                "type": "alerting",
            }
            if ticket.resolved is None:
                told["state"] = "firing"
                told["alerts"].append(self._firing(ticket))
        return list(rules.values())

    def _firing(self, ticket: Ticket) -> dict[str, Any]:
        rule = ticket.incident.rule
        now = self._now()
        # A rule that is kept firing although it is no longer true shows its last value.
        found = instant(self._database, rule.expr, now) or instant(self._database, rule.expr, ticket.fired)
        value = next(iter(found.values()), None) if isinstance(found, dict) else None
        return {
            "labels": ticket.incident.labels,
            "annotations": dict(rule.annotations),
            "state": "firing",
            "activeAt": rfc3339(ticket.fired - rule.hold_seconds, fraction=9),
            "value": "" if value is None else f"{value:e}",
        }


def _good(data: Any) -> Reply:
    return Reply(payload={"status": "success", "data": data})


def _matrix(found: Iterable[tuple[Key, list[Sample]]]) -> list[dict[str, Any]]:
    return [{"metric": dict(labels), "values": [[at, _number(value)] for at, value in kept]} for labels, kept in found]


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _wanted(request: Request, name: str) -> str:
    if not (text := request.one(name)):
        raise QueryError(
            f'invalid parameter "{name}": cannot parse "" ' + ("to a valid duration" if name == "step" else "")
        )
    return text


def _time(text: str, name: str, default: float) -> float:
    """Epoch seconds or RFC 3339."""
    if not text:
        return default
    try:
        return float(text) if re.fullmatch(r"-?\d+(\.\d+)?(e\d+)?", text) else datetime.fromisoformat(text).timestamp()
    except ValueError as error:
        raise QueryError(f'invalid parameter "{name}": cannot parse "{text}" to a valid timestamp') from error


def _duration(text: str) -> float:
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else seconds(text)
