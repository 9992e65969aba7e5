"""A LogQL subset: stream selectors, line filters, and counting over time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from deploy.demo.promql.lexer import seconds, unquoted
from deploy.demo.promql.parser import parse as parse_selector
from deploy.demo.promql.syntax import Matcher, QueryError, Selector

Keeps = Callable[[str], bool]
_FILTER = re.compile(r"""\s*(\|=|!=|\|~|!~)\s*("(?:[^"\\]|\\.)*"|`[^`]*`)""")
_STAGE = re.compile(r"""\s*\|\s*(json|logfmt|unpack|decolorize|drop[^|\[]*|keep[^|\[]*)(?=\s*(?:\||\[|$|!=|!~|\)))""")
_RANGE = re.compile(r"\s*\[\s*([0-9a-z]+)\s*\]\s*")
_COUNT = re.compile(r"\s*(count_over_time|rate|bytes_over_time|bytes_rate)\s*\(", re.DOTALL)
_SUM = re.compile(r"\s*(sum|avg|min|max|count|topk)\s*", re.DOTALL)
_BY = re.compile(r"\s*(by|without)\s*\(([^)]*)\)\s*")


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Streams and which of their lines."""

    matchers: tuple[Matcher, ...]
    filters: tuple[Keeps, ...] = ()

    def keeps(self, line: str) -> bool:
        return all(keep(line) for keep in self.filters)


@dataclass(frozen=True, slots=True)
class Counting:
    """`count_over_time(query[seconds])` and the like, perhaps summed by labels (None: not aggregated)."""

    function: str
    query: LogQuery
    seconds: float
    aggregate: str = ""
    by: tuple[str, ...] = ()
    without: bool = False
    top: int = 0


def parse(text: str) -> LogQuery | Counting:
    """Raises `QueryError`."""
    if not text.strip():
        raise QueryError("parse error : syntax error: unexpected $end")
    if text.lstrip().startswith("{"):
        query, rest = _log_query(text)
        if rest.strip():
            raise _unexpected(rest)
        return query
    return _aggregated(text)


def _aggregated(text: str) -> Counting:
    match = _SUM.match(text)
    if match is None or _COUNT.match(text):
        counting, rest = _counting(text)
        if rest.strip():
            raise _unexpected(rest)
        return counting
    rest = text[match.end() :]
    grouping = _BY.match(rest)
    rest = rest[grouping.end() :] if grouping else rest
    if not rest.lstrip().startswith("("):
        raise _unexpected(rest)
    rest = rest.lstrip()[1:]
    top = re.match(r"\s*(\d+)\s*,", rest)
    rest = rest[top.end() :] if top else rest
    inner = _aggregated_inner(rest)
    counting, rest = inner
    if not rest.lstrip().startswith(")"):
        raise _unexpected(rest)
    rest = rest.lstrip()[1:]
    if grouping is None and (grouping := _BY.match(rest)):
        rest = rest[grouping.end() :]
    if rest.strip():
        raise _unexpected(rest)
    labels = tuple(name.strip() for name in grouping.group(2).split(",") if name.strip()) if grouping else ()
    without = bool(grouping and grouping.group(1) == "without")
    return Counting(
        counting.function,
        counting.query,
        counting.seconds,
        match.group(1),
        labels,
        without,
        int(top.group(1)) if top else 0,
    )


def _aggregated_inner(text: str) -> tuple[Counting, str]:
    return _counting(text)


def _counting(text: str) -> tuple[Counting, str]:
    match = _COUNT.match(text)
    if match is None:
        raise _unexpected(text)
    query, rest = _log_query(text[match.end() :])
    span = _RANGE.match(rest)
    if span is None:
        raise QueryError(f"parse error : syntax error: unexpected {rest.strip()[:1] or '$end'}, expecting RANGE")
    rest = rest[span.end() :]
    if not rest.lstrip().startswith(")"):
        raise _unexpected(rest)
    return Counting(match.group(1), query, seconds(span.group(1))), rest.lstrip()[1:]


def _log_query(text: str) -> tuple[LogQuery, str]:
    text = text.lstrip()
    end = _closing_brace(text)
    matchers = parse_selector(f'{{__name__=~".+",{text[1:end]}}}' if text[1:end].strip() else "{}")
    assert isinstance(matchers, Selector)
    kept = tuple(matcher for matcher in matchers.matchers if matcher.name != "__name__")
    if all(matcher.accepts({}) for matcher in kept):
        raise QueryError(
            "queries require at least one regexp or equality matcher that does not have an empty-compatible value"
        )
    filters: list[Keeps] = []
    rest = text[end + 1 :]
    while True:
        if match := _FILTER.match(rest):
            filters.append(_filter(match.group(1), unquoted(match.group(2))))
        elif not (match := _STAGE.match(rest)):
            return LogQuery(kept, tuple(filters)), rest
        rest = rest[match.end() :]


def _closing_brace(text: str) -> int:
    if not text.startswith("{"):
        raise _unexpected(text)
    for match in re.finditer(r"""("(?:[^"\\]|\\.)*"|`[^`]*`)|(\})""", text):
        if match.group(2):
            return match.start()
    raise QueryError("parse error : syntax error: unexpected $end, expecting }")


def _filter(symbol: str, value: str) -> Keeps:
    if symbol in ("|=", "!="):
        return lambda line: (value in line) == (symbol == "|=")
    try:
        pattern = re.compile(value)
    except re.error as error:
        raise QueryError(f"parse error : error parsing regexp: {error}") from error
    return lambda line: bool(pattern.search(line)) == (symbol == "|~")


def _unexpected(rest: str) -> QueryError:
    return QueryError(
        f"parse error : syntax error: unexpected {rest.strip()[:20] or '$end'}; only a subset of LogQL is known here"
    )
