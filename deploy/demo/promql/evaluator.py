"""A PromQL subset that really evaluates, over series that are functions of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from deploy.demo.promql import functions
from deploy.demo.promql.calls import CALLS
from deploy.demo.promql.operators import binary
from deploy.demo.promql.parser import parse
from deploy.demo.promql.syntax import (
    Aggregate,
    Binary,
    Call,
    Labels,
    Matcher,
    Negative,
    Node,
    Number,
    QueryError,
    Selector,
    Subquery,
    Text,
)
from deploy.demo.promql.values import Key, Scalar, Value, Vector, bare, key
from deploy.demo.shapes import Shape

SCRAPE_SECONDS = 30
MAX_POINTS = 11_000
Matrix = dict[Key, list[functions.Sample]]


@dataclass(frozen=True, slots=True)
class Series:
    """`labels` has `__name__`. Scraped at multiples of SCRAPE_SECONDS; None: it was not among what was scraped."""

    labels: Labels
    value: Shape


class Database:
    """The series by name."""

    def __init__(self, series: Iterable[Series]) -> None:
        self._by_name: dict[str, list[Series]] = {}
        for one in series:
            self._by_name.setdefault(one.labels["__name__"], []).append(one)

    @property
    def names(self) -> list[str]:
        return sorted(self._by_name)

    def select(self, matchers: Iterable[Matcher]) -> list[Series]:
        wanted = list(matchers)
        named = next((m.value for m in wanted if m.name == "__name__" and m.operator == "="), None)
        pools = self._by_name.values() if named is None else [self._by_name.get(named, [])]
        return [one for pool in pools for one in pool if all(matcher.accepts(one.labels) for matcher in wanted)]


def samples(series: Series, start: float, end: float) -> list[functions.Sample]:
    """What was scraped in (start, end]."""
    first = math.floor(start / SCRAPE_SECONDS) + 1
    ticks = (tick * SCRAPE_SECONDS for tick in range(first, math.floor(end / SCRAPE_SECONDS) + 1))
    return [(float(at), float(value)) for at in ticks if (value := series.value(at)) is not None]


def latest(series: Series, at: float) -> float | None:
    """The newest sample. A series that was missing from the newest scrape is stale at once, as in Prometheus."""
    value = series.value(math.floor(at / SCRAPE_SECONDS) * float(SCRAPE_SECONDS))
    return None if value is None else float(value)


def existed(series: Series, start: float, end: float) -> bool:
    """Whether there was a sample at one of some sixty scrapes between the two times."""
    step = max(SCRAPE_SECONDS, math.ceil((end - start) / 60))
    return any(
        latest(series, end - index * step) is not None for index in range(int(max(0.0, end - start) // step) + 1)
    )


def instant(database: Database, query: str, at: float) -> Value | list[tuple[Key, list[functions.Sample]]] | str:
    """Scalar, vector, string, or (for a bare range selector) a matrix. Raises `QueryError`."""
    node = parse(query)
    match node:
        case Text(text):
            return text
        case Selector() | Subquery() if _is_range(node):
            return _Evaluation(database, at).ranges(node)
        case _:
            return _Evaluation(database, at).of(node)


def over_range(database: Database, query: str, start: float, end: float, step: float) -> Matrix:
    """One list of samples a series. Raises `QueryError`."""
    node = parse(query)
    if _is_range(node) or isinstance(node, Text):
        raise QueryError("invalid expression type for range query, must be Scalar or instant Vector")
    if step <= 0:
        raise QueryError('invalid parameter "step": zero or negative query resolution step widths are not accepted')
    if end < start:
        raise QueryError('invalid parameter "end": end timestamp must not be before start time')
    if (end - start) / step > MAX_POINTS:
        raise QueryError("exceeded maximum resolution of 11,000 points per timeseries. Try a larger step")
    found: Matrix = {}
    for index in range(math.floor((end - start) / step) + 1):
        at = start + index * step
        value = _Evaluation(database, at).of(node)
        for labels, number in [((), value)] if isinstance(value, float) else value.items():
            found.setdefault(labels, []).append((at, number))
    return found


def _is_range(node: Node) -> bool:
    return isinstance(node, Subquery) or (isinstance(node, Selector) and node.seconds is not None)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One expression at one time."""

    database: Database
    at: float

    def of(self, node: Node) -> Value:
        match node:
            case Number(value):
                return value
            case Negative(inner):
                return binary("*", -1.0, self.of(inner))
            case Selector(matchers, None, offset):
                found = ((one, latest(one, self.at - offset)) for one in self.database.select(matchers))
                return {key(one.labels): value for one, value in found if value is not None}
            case Binary(operator, left, right, as_bool, matching):
                return binary(operator, self.of(left), self.of(right), as_bool=as_bool, matching=matching)
            case Aggregate():
                return self.aggregate(node)
            case Call(name, arguments):
                return self.call(name, arguments)
            case Text():
                raise QueryError("parse error: unexpected string")
            case _:
                raise QueryError("parse error: expected type instant vector, got range vector")

    def ranges(self, node: Node) -> list[tuple[Key, list[functions.Sample]]]:
        """The samples of a range selector or subquery, empty ones left out."""
        match node:
            case Selector(matchers, float(span), offset):
                end = self.at - offset
                found = [(key(one.labels), samples(one, end - span, end)) for one in self.database.select(matchers)]
                return [(labels, kept) for labels, kept in found if kept]
            case Subquery(inner, span, step, offset):
                end = self.at - offset
                return self.subquery(inner, end - span, end, step)
            case _:
                raise QueryError("parse error: expected type range vector in call to function, got instant vector")

    def subquery(self, inner: Node, start: float, end: float, step: float) -> list[tuple[Key, list[functions.Sample]]]:
        found: dict[Key, list[functions.Sample]] = {}
        for tick in range(math.floor(start / step) + 1, math.floor(end / step) + 1):
            at = tick * step
            value = _Evaluation(self.database, at).of(inner)
            for labels, number in [((), value)] if isinstance(value, float) else value.items():
                found.setdefault(labels, []).append((at, number))
        return list(found.items())

    def window(self, node: Node) -> tuple[float, float]:
        match node:
            case Selector(_, float(span), offset) | Subquery(_, span, _, offset):
                return self.at - offset - span, self.at - offset
            case _:
                raise QueryError("parse error: expected type range vector in call to function, got instant vector")

    def vector(self, node: Node) -> Vector:
        value = self.of(node)
        if isinstance(value, float):
            raise QueryError("parse error: expected type instant vector, got scalar")
        return value

    def scalar(self, node: Node) -> Scalar:
        value = self.of(node)
        if not isinstance(value, float):
            raise QueryError("parse error: expected type scalar, got instant vector")
        return value

    def aggregate(self, node: Aggregate) -> Vector:
        vector = self.vector(node.inner)
        groups: dict[Key, Vector] = {}
        for labels, value in vector.items():
            kept = {n: v for n, v in labels if n != "__name__" and (n in node.labels) == (node.grouping == "by")}
            groups.setdefault(key(kept), {})[labels] = value
        parameter = 0.0 if node.parameter is None else self.scalar(node.parameter)
        if node.name in {"topk", "bottomk"}:
            return _ranked(groups.values(), int(parameter), largest=node.name == "topk")
        take = _AGGREGATES[node.name]
        return {group: take(list(members.values()), parameter) for group, members in groups.items()}

    def call(self, name: str, arguments: tuple[Node, ...]) -> Value:
        if name in functions.RANGE:
            _arity(name, arguments, 1, 1)
            return self.over_time(name, arguments[0])
        if name not in CALLS:
            raise QueryError(
                f'1:1: parse error: unknown function with name "{name}" (this server evaluates a subset of PromQL)'
            )
        least, most, function = CALLS[name]
        _arity(name, arguments, least, most)
        return function(self, arguments)

    def over_time(self, name: str, argument: Node) -> Vector:
        start, end = self.window(argument)
        found: Vector = {}
        for labels, kept in self.ranges(argument):
            value = functions.RANGE[name](kept, start, end)
            if value is not None:
                found[labels if name in functions.KEEPS_NAME else bare(labels)] = value
        return found

    def mapped(self, node: Node, change: Callable[[float], float]) -> Vector:
        return {bare(labels): change(value) for labels, value in self.vector(node).items()}


_AGGREGATES: dict[str, Callable[[list[float], float], float]] = {
    "sum": lambda values, _: sum(values),
    "avg": lambda values, _: sum(values) / len(values),
    "min": lambda values, _: min(values),
    "max": lambda values, _: max(values),
    "count": lambda values, _: float(len(values)),
    "group": lambda _values, _: 1.0,
    "stddev": lambda values, _: functions.stddev(values),
    "quantile": lambda values, share: functions.quantile(share, values),
}


def _ranked(groups: Iterable[Vector], count: int, *, largest: bool) -> Vector:
    kept: Vector = {}
    for members in groups:
        ordered = sorted(members.items(), key=lambda item: item[1], reverse=largest)
        kept.update(ordered[: max(0, count)])
    return kept


def _arity(name: str, arguments: tuple[Node, ...], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        raise QueryError(f'parse error: expected {least} argument(s) in call to "{name}", got {len(arguments)}')
