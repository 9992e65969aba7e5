"""PromQL functions that take something other than one range."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from deploy.demo.promql import functions
from deploy.demo.promql.syntax import Labels, Node, QueryError, Selector, Text
from deploy.demo.promql.values import Key, Value, Vector, bare, key


class Evaluates(Protocol):
    """What a function may ask of the evaluation it runs in."""

    @property
    def at(self) -> float: ...
    def of(self, node: Node) -> Value: ...
    def vector(self, node: Node) -> Vector: ...
    def scalar(self, node: Node) -> float: ...
    def ranges(self, node: Node) -> list[tuple[Key, list[functions.Sample]]]: ...
    def window(self, node: Node) -> tuple[float, float]: ...
    def mapped(self, node: Node, change: Callable[[float], float]) -> Vector: ...


Arguments = Sequence[Node]
Function = Callable[[Evaluates, Arguments], Value]


def _absent(run: Evaluates, arguments: Arguments) -> Value:
    return {} if run.vector(arguments[0]) else {key(_equalities(arguments[0])): 1.0}


def _absent_over_time(run: Evaluates, arguments: Arguments) -> Value:
    return {} if run.ranges(arguments[0]) else {key(_equalities(arguments[0])): 1.0}


def _equalities(node: Node) -> Labels:
    if not isinstance(node, Selector):
        return {}
    return {m.name: m.value for m in node.matchers if m.operator == "=" and m.name != "__name__"}


def _clamp(run: Evaluates, arguments: Arguments) -> Value:
    low, high = run.scalar(arguments[1]), run.scalar(arguments[2])
    return run.mapped(arguments[0], lambda value: max(low, min(high, value))) if low <= high else {}


def _scalar(run: Evaluates, arguments: Arguments) -> Value:
    found = run.vector(arguments[0])
    return next(iter(found.values())) if len(found) == 1 else math.nan


def _histogram_quantile(run: Evaluates, arguments: Arguments) -> Value:
    share = run.scalar(arguments[0])
    groups: dict[Key, list[tuple[float, float]]] = {}
    for labels, value in run.vector(arguments[1]).items():
        bound = dict(labels).get("le")
        if bound is not None:
            rest = tuple(pair for pair in bare(labels) if pair[0] != "le")
            groups.setdefault(rest, []).append((float(bound), value))
    return {labels: functions.histogram_quantile(share, buckets) for labels, buckets in groups.items()}


def _predict_linear(run: Evaluates, arguments: Arguments) -> Value:
    ahead = run.scalar(arguments[1])
    _, end = run.window(arguments[0])
    found = ((bare(labels), functions.predict_linear(kept, end, ahead)) for labels, kept in run.ranges(arguments[0]))
    return {labels: value for labels, value in found if value is not None}


def _quantile_over_time(run: Evaluates, arguments: Arguments) -> Value:
    share = run.scalar(arguments[0])
    return {
        bare(labels): functions.quantile(share, [value for _, value in kept])
        for labels, kept in run.ranges(arguments[1])
    }


def _sorted(run: Evaluates, arguments: Arguments, *, reverse: bool) -> Value:
    return dict(sorted(run.vector(arguments[0]).items(), key=lambda item: item[1], reverse=reverse))


def _label_replace(run: Evaluates, arguments: Arguments) -> Value:
    texts = [argument.value for argument in arguments[1:] if isinstance(argument, Text)]
    if len(texts) != 4:
        raise QueryError('parse error: expected type string in call to function "label_replace"')
    target, replacement, origin, pattern = texts
    found: Vector = {}
    for labels, value in run.vector(arguments[0]).items():
        match = re.fullmatch(pattern, dict(labels).get(origin, ""))
        new = match.expand(re.sub(r"\$\{?(\w+)\}?", r"\\g<\1>", replacement)) if match else None
        found[labels if new is None else key({**dict(labels), target: new})] = value
    return found


def _each(change: Callable[[float], float]) -> tuple[int, int, Function]:
    return 1, 1, lambda run, arguments: run.mapped(arguments[0], change)


def _logarithm(log: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: log(value) if value > 0 else (-math.inf if value == 0 else math.nan)


def _rounded(run: Evaluates, arguments: Arguments) -> Value:
    to = run.scalar(arguments[1]) if len(arguments) > 1 else 1.0
    return run.mapped(arguments[0], lambda value: math.floor(value / to + 0.5) * to)


CALLS: dict[str, tuple[int, int, Function]] = {  # name: (fewest arguments, most, function)
    "abs": _each(abs),
    "ceil": _each(lambda value: float(math.ceil(value))),
    "floor": _each(lambda value: float(math.floor(value))),
    "exp": _each(math.exp),
    "ln": _each(_logarithm(math.log)),
    "log2": _each(_logarithm(math.log2)),
    "log10": _each(_logarithm(math.log10)),
    "sqrt": _each(lambda value: math.sqrt(value) if value >= 0 else math.nan),
    "sgn": _each(lambda value: float((value > 0) - (value < 0))),
    "round": (1, 2, _rounded),
    "absent": (1, 1, _absent),
    "absent_over_time": (1, 1, _absent_over_time),
    "clamp": (3, 3, _clamp),
    "clamp_min": (2, 2, lambda run, a: run.mapped(a[0], lambda value: max(run.scalar(a[1]), value))),
    "clamp_max": (2, 2, lambda run, a: run.mapped(a[0], lambda value: min(run.scalar(a[1]), value))),
    "time": (0, 0, lambda run, _: run.at),
    "vector": (1, 1, lambda run, a: {(): run.scalar(a[0])}),
    "scalar": (1, 1, _scalar),
    "timestamp": (1, 1, lambda run, a: run.mapped(a[0], lambda _: run.at)),
    "histogram_quantile": (2, 2, _histogram_quantile),
    "predict_linear": (2, 2, _predict_linear),
    "quantile_over_time": (2, 2, _quantile_over_time),
    "sort": (1, 1, lambda run, a: _sorted(run, a, reverse=False)),
    "sort_desc": (1, 1, lambda run, a: _sorted(run, a, reverse=True)),
    "label_replace": (5, 5, _label_replace),
}
