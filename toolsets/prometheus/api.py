"""The Prometheus HTTP API, read-only: finite, bounded, and with the server's own words when it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.deadline import Deadline
from agent.errors import Permanent, ToolError, Transient
from agent.http import Http, Response
from toolsets.connection import MAX_GET_CHARS, advice, mark, too_large, unreachable, without_secrets
from toolsets.series.statistics import Labels, Series
from toolsets.timerange import Window

FORM_PATHS = frozenset({"/api/v1/query", "/api/v1/query_range", "/api/v1/series", "/api/v1/labels"})
MAX_ERROR_CHARS = 600
MAX_WARNINGS = 3

_HINTS = (
    (r"too many samples|limit.*samples|max-?samples", "aggregate, add label matchers, or ask a shorter window"),
    (r"many-to-many|multiple matches|must be unique", "say on(...) or ignoring(...), and group_left for many to one"),
    (r"timed out|timeout", "ask a shorter window, a larger step, or fewer series"),
    (r"expected type range vector", "give the function a range: rate(x[5m])"),
    (r"range vector", "wrap the range selector in a function: rate(x[5m]), increase(x[1h]), max_over_time(x[1h])"),
    (r"non-empty matcher|empty matcher", "name a metric, or a matcher that does not match everything"),
    (r"exceeded maximum resolution", "leave step out: it is then chosen to fit"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The `data` of a reply and what the server warned of."""

    data: Any
    warnings: tuple[str, ...] = ()


class TooLargeError(ToolError):
    """Raised when the answer is over the size that is read at all."""


class PrometheusApi:
    """One server. Every method raises `ToolError` with what the server said and what to try."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def query(self, query: str, *, time: float, deadline: Deadline) -> Answer:
        return self.ask("/api/v1/query", {"query": query, "time": f"{time:.3f}"}, deadline)

    def query_range(self, query: str, *, window: Window, step: float, deadline: Deadline) -> Answer:
        fields = {"query": query, **bounds(window), "step": f"{step:.3f}"}
        return self.ask("/api/v1/query_range", fields, deadline)

    def label_values(self, label: str, fields: Mapping[str, str], deadline: Deadline) -> list[str]:
        return _texts(self.ask(f"/api/v1/label/{escaped(label)}/values", fields, deadline).data)

    def ask(self, path: str, fields: Mapping[str, str], deadline: Deadline) -> Answer:
        """One read. A GET, or a form where the API takes one and the query is long; nothing else is ever sent."""
        form = path in FORM_PATHS and sum(map(len, fields.values())) > MAX_GET_CHARS
        try:
            if form:
                reply = self._http.request("POST", path, deadline=deadline, data=fields)
            else:
                reply = self._http.request("GET", path, deadline=deadline, params=fields)
        except Transient as error:
            raise ToolError(unreachable(str(error))) from error
        except Permanent as error:
            if too_large(error):
                raise TooLargeError(f"{error}: aggregate, e.g. sum by (label) (...), or topk(10, ...)") from error
            raise ToolError(f"{error}: {advice(404)}") from error
        return _answer(reply, fields.get("query", fields.get("match[]", "")))

    def ready(self, path: str, deadline: Deadline) -> bool:
        try:
            return self._http.request("GET", path, deadline=deadline).status < 300
        except (Transient, Permanent):
            return False


def _answer(reply: Response, query: str) -> Answer:
    try:
        body = reply.json()
    except Transient as error:
        if reply.status < 300:
            raise ToolError(unreachable(str(error))) from error
        raise ToolError(f"HTTP {reply.status}: {advice(reply.status)}") from error
    if not isinstance(body, dict):
        raise ToolError(f"HTTP {reply.status} with an unexpected body: {advice(reply.status)}")
    if reply.status >= 300 or body.get("status") == "error":
        raise ToolError(without_secrets(_refusal(reply.status, body, query), reply))
    return Answer(data=body.get("data"), warnings=_warnings(body))


def _refusal(status: int, body: Mapping[str, Any], query: str) -> str:
    kind = str(body.get("errorType") or f"HTTP {status}")
    words = str(body.get("error") or body.get("message") or "")[:MAX_ERROR_CHARS]
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, words, re.IGNORECASE)), "")
    mark = _mark(words, query)
    if not hint and "parse error" in words:
        hint = "correct the PromQL at the mark" if mark else "correct the PromQL"
    return "\n".join(part for part in (f"{kind}: {words}", mark, f"try: {hint or advice(status)}") if part)


def _mark(words: str, query: str) -> str:
    """The place that the parser names as `line:column:`."""
    match = re.search(r"\b(\d+):(\d+): parse error", words)
    return mark(query, int(match[1]), int(match[2])) if match else ""


def _warnings(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Warnings (the answer may be incomplete) and infos (the query may not mean what was meant), a few of each."""
    said: list[str] = []
    for key, kind in (("warnings", "warning"), ("infos", "info")):
        texts = _texts(body.get(key))
        said += [f"{kind}: {text[:300]}" for text in texts[:MAX_WARNINGS]]
        if len(texts) > MAX_WARNINGS:
            said.append(f"({len(texts) - MAX_WARNINGS} more of these)")
    return tuple(said)


def _texts(data: Any) -> list[str]:
    return [str(text) for text in data] if isinstance(data, list) else []


def bounds(window: Window) -> dict[str, str]:
    return {"start": f"{window.start.timestamp():.3f}", "end": f"{window.end.timestamp():.3f}"}


def escaped(label: str) -> str:
    """A label name as a part of the path; what is no plain name goes in the `U__` form of Prometheus 3."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", label):
        return label
    return "U__" + "".join(
        c if re.fullmatch("[A-Za-z0-9]", c) else "__" if c == "_" else f"_{ord(c):x}_" for c in label
    )


def read_series(data: Any) -> list[Series]:
    """The series of a query's data, whatever its result type. Raises `ToolError` when it is none we know."""
    kind, result = (data.get("resultType"), data.get("result")) if isinstance(data, dict) else (None, None)
    match kind, result:
        case "scalar" | "string", [at, value]:
            return _all([{"value": [at, value]}])
        case "vector" | "matrix", list():
            return _all(result)
    raise ToolError(f"the server sent a result of type {kind!r}, which can't be read")


def _all(result: list[Any]) -> list[Series]:
    try:
        return [series for item in result if (series := _one(item)).points]
    except (TypeError, ValueError, AttributeError) as error:
        raise ToolError("the server sent a result that can't be read") from error


def _one(item: Mapping[str, Any]) -> Series:
    labels: Labels = {str(key): str(value) for key, value in (item.get("metric") or {}).items()}
    values = item.get("values") or ([item["value"]] if item.get("value") else [])
    histograms = item.get("histograms") or ([item["histogram"]] if item.get("histogram") else [])
    points = [(float(at), _float(value)) for at, value in values]
    counts = [(float(at), _float(content.get("count"))) for at, content in histograms]
    return Series(labels=labels, points=tuple(sorted(points + counts)), histogram=bool(counts))


def _float(value: Any) -> float:
    """Numbers come as text, to carry NaN and the infinities."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
