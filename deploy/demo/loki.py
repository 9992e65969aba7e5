"""Plays Loki's HTTP API, read side, over the logs that the containers wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from deploy.demo.exchange import Reply, Request, whole
from deploy.demo.logql import Counting, LogQuery, parse
from deploy.demo.podlogs import Stream
from deploy.demo.promql.lexer import seconds
from deploy.demo.promql.syntax import QueryError
from deploy.demo.promql.values import Key, key

MAX_LINES = 5_000
HOUR_SECONDS = 3_600.0
MAX_POINTS = 11_000


class Loki:
    def __init__(self, streams: Sequence[Stream], now: Callable[[], float]) -> None:
        self._streams = streams
        self._now = now

    def handle(self, request: Request) -> Reply:
        request = request.with_form()
        if request.path == "/ready":
            return Reply(text="ready\n", content_type="text/plain")
        try:
            return self._answer(request)
        except QueryError as error:
            return Reply(status=400, text=str(error), content_type="text/plain; charset=utf-8")

    def _answer(self, request: Request) -> Reply:
        match request.parts:
            case ["loki", "api", "v1", "query_range"]:
                return _good(self._query_range(request))
            case ["loki", "api", "v1", "query"]:
                return _good(self._query(request))
            case ["loki", "api", "v1", "labels"]:
                return _good(
                    sorted({name for stream in self._matching(request.one("query")) for name in stream.labels})
                )
            case ["loki", "api", "v1", "label", name, "values"]:
                found = self._matching(request.one("query"))
                return _good(sorted({stream.labels[name] for stream in found if name in stream.labels}))
            case ["loki", "api", "v1", "series"]:
                return _good([one.labels for text in request.all("match[]") or [""] for one in self._matching(text)])
            case ["loki", "api", "v1", "status", "buildinfo"]:
                return Reply(payload={"version": "3.6.2", "revision": "1a2b3c4", "branch": "HEAD"})
            case _:
                return Reply(status=404, text="404 page not found\n", content_type="text/plain")

    def _matching(self, text: str) -> list[Stream]:
        if not text:
            return list(self._streams)
        query = parse(text)
        return self._chosen(query.query if isinstance(query, Counting) else query)

    def _chosen(self, query: LogQuery) -> list[Stream]:
        return [one for one in self._streams if all(matcher.accepts(one.labels) for matcher in query.matchers)]

    def _query_range(self, request: Request) -> dict[str, Any]:
        query = parse(request.one("query"))
        end = _time(request.one("end"), self._now())
        start = _time(request.one("start"), end - HOUR_SECONDS)
        if end < start:
            raise QueryError("end timestamp must not be before or equal to start time")
        if isinstance(query, LogQuery):
            return self._lines(request, query, start, end)
        step = _step(request.one("step"), start, end)
        found: dict[Key, list[list[Any]]] = {}
        for index in range(math.floor((end - start) / step) + 1):
            at = start + index * step
            for labels, value in self._counted(query, at).items():
                found.setdefault(labels, []).append([at, _number(value)])
        result = [{"metric": dict(labels), "values": values} for labels, values in found.items()]
        return {"resultType": "matrix", "result": result, "stats": {}}

    def _query(self, request: Request) -> dict[str, Any]:
        query = parse(request.one("query"))
        if isinstance(query, LogQuery):
            raise QueryError(
                "log queries are not supported as an instant query type, please change your query to a range query type"
            )
        at = _time(request.one("time"), self._now())
        found = self._counted(query, at)
        result = [{"metric": dict(labels), "value": [at, _number(value)]} for labels, value in found.items()]
        return {"resultType": "vector", "result": result, "stats": {}}

    def _lines(self, request: Request, query: LogQuery, start: float, end: float) -> dict[str, Any]:
        """`limit` counts over all streams; which end of the window is kept goes by `direction`."""
        limit = min(MAX_LINES, whole(request.one("limit"), 100))
        forward = request.one("direction", "backward").lower() == "forward"
        chosen = self._chosen(query)
        found = [
            (at, index, line)
            for index, stream in enumerate(chosen)
            for at, line in stream.lines(start, min(end, self._now()))
            if query.keeps(line)
        ]
        found.sort(reverse=not forward)
        by_stream: dict[int, list[list[str]]] = {}
        for at, index, line in found[:limit]:
            by_stream.setdefault(index, []).append([str(int(at * 1e6) * 1000), line])
        result = [{"stream": chosen[index].labels, "values": values} for index, values in sorted(by_stream.items())]
        return {"resultType": "streams", "result": result, "stats": {}}

    def _counted(self, query: Counting, at: float) -> dict[Key, float]:
        found: dict[Key, float] = {}
        for stream in self._chosen(query.query):
            lines = [
                line for _, line in stream.lines(at - query.seconds, min(at, self._now())) if query.query.keeps(line)
            ]
            if lines:
                found[key(stream.labels)] = _measured(query, lines)
        return _aggregated(query, found) if query.aggregate else found


def _measured(query: Counting, lines: list[str]) -> float:
    amount = float(sum(map(len, lines)) if query.function.startswith("bytes") else len(lines))
    return amount / query.seconds if query.function in ("rate", "bytes_rate") else amount


def _aggregated(query: Counting, found: dict[Key, float]) -> dict[Key, float]:
    if query.aggregate == "topk":
        return dict(sorted(found.items(), key=lambda item: -item[1])[: query.top])
    groups: dict[Key, list[float]] = {}
    for labels, value in found.items():
        kept = {name: text for name, text in labels if (name in query.by) != query.without}
        groups.setdefault(key(kept), []).append(value)
    take: dict[str, Callable[[list[float]], float]] = {
        "sum": sum,
        "min": min,
        "max": max,
        "avg": lambda values: sum(values) / len(values),
        "count": lambda values: float(len(values)),
    }
    return {group: take[query.aggregate](values) for group, values in groups.items()}


def _good(data: Any) -> Reply:
    return Reply(payload={"status": "success", "data": data})


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _time(text: str, default: float) -> float:
    """Nanoseconds, seconds or RFC 3339, as Loki takes them."""
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError as error:
            raise QueryError(f'could not parse "{text}" as a time') from error
    return number / 1e9 if number > 1e12 else number


def _step(text: str, start: float, end: float) -> float:
    step = max(1.0, math.floor((end - start) / 250)) if not text else _span(text)
    if step <= 0:
        raise QueryError("zero or negative query resolution step widths are not accepted")
    if (end - start) / step > MAX_POINTS:
        raise QueryError("exceeded maximum resolution of 11,000 points per time series")
    return step


def _span(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return seconds(text)
