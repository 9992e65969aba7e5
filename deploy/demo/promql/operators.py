"""PromQL's binary operators between scalars and vectors."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from deploy.demo.promql.syntax import Matching, QueryError
from deploy.demo.promql.values import Key, Value, Vector, bare, key


def _divided(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
    return left / right


def _power(left: float, right: float) -> float:
    try:
        return float(left**right)
    except (OverflowError, ZeroDivisionError):
        return math.inf
    except TypeError:  # a complex result
        return math.nan


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda left, right: math.fmod(left, right) if right else math.nan,
    "^": _power,
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
SETS = frozenset({"and", "or", "unless"})


def binary(symbol: str, left: Value, right: Value, *, as_bool: bool = False, matching: Matching | None = None) -> Value:
    """The value of `left symbol right`. Raises `QueryError`."""
    matching = matching or Matching()
    if symbol in SETS:
        return _set(symbol, left, right, matching)
    if isinstance(left, float) and isinstance(right, float):
        if symbol in COMPARISONS and not as_bool:
            raise QueryError("1:1: parse error: comparisons between scalars must use BOOL modifier")
        return _number(symbol, left, right)
    if isinstance(left, float) or isinstance(right, float):
        return _with_scalar(symbol, left, right, as_bool)
    return _matched(symbol, left, right, as_bool, matching)


def _number(symbol: str, left: float, right: float) -> float:
    return ARITHMETIC[symbol](left, right) if symbol in ARITHMETIC else float(COMPARISONS[symbol](left, right))


def _with_scalar(symbol: str, left: Value, right: Value, as_bool: bool) -> Vector:
    found: Vector = {}
    vector = left if not isinstance(left, float) else right
    assert not isinstance(vector, float)
    for labels, value in vector.items():
        a = left if isinstance(left, float) else value
        b = right if isinstance(right, float) else value
        if symbol in ARITHMETIC or as_bool:
            found[bare(labels)] = _number(symbol, a, b)
        elif COMPARISONS[symbol](a, b):
            found[labels] = value
    return found


def _signature(labels: Key, matching: Matching) -> Key:
    return tuple(pair for pair in labels if pair[0] != "__name__" and (pair[0] in matching.labels) == matching.on)


def _matched(symbol: str, left: Vector, right: Vector, as_bool: bool, matching: Matching) -> Vector:
    """One to one, or many to one with `group_left`/`group_right`."""
    swapped = matching.many == "right"
    many, one = (right, left) if swapped else (left, right)
    partners: dict[Key, Key] = {}
    for labels in one:
        signature = _signature(labels, matching)
        if signature in partners:
            raise QueryError(
                "found duplicate series for the match group on the "
                f"{'left' if swapped else 'right'} side of the operation; many-to-many matching not allowed"
            )
        partners[signature] = labels
    found: Vector = {}
    for labels, value in many.items():
        partner = partners.get(_signature(labels, matching))
        if partner is None:
            continue
        a, b = (one[partner], value) if swapped else (value, one[partner])
        keeps = symbol in COMPARISONS and not as_bool
        if keeps and not COMPARISONS[symbol](a, b):
            continue
        result = _result_labels(labels, partner, matching, keeps)
        if result in found:
            raise QueryError("multiple matches for labels: many-to-one matching needs group_left or group_right")
        found[result] = a if keeps else _number(symbol, a, b)
    return found


def _result_labels(labels: Key, partner: Key, matching: Matching, keeps: bool) -> Key:
    if matching.many:
        extra = {name: dict(partner).get(name, "") for name in matching.include}
        return key({**dict(labels if keeps else bare(labels)), **extra})
    if keeps and not matching.on:
        return labels
    return (
        _signature(labels, matching)
        if matching.on
        else tuple(pair for pair in bare(labels) if pair[0] not in matching.labels)
    )


def _set(symbol: str, left: Value, right: Value, matching: Matching) -> Vector:
    if isinstance(left, float) or isinstance(right, float):
        raise QueryError(f'parse error: set operator "{symbol}" not allowed in binary scalar expression')
    there = {_signature(labels, matching) for labels in right}
    here = {_signature(labels, matching) for labels in left}
    match symbol:
        case "and":
            return {labels: value for labels, value in left.items() if _signature(labels, matching) in there}
        case "unless":
            return {labels: value for labels, value in left.items() if _signature(labels, matching) not in there}
        case _:
            return left | {labels: value for labels, value in right.items() if _signature(labels, matching) not in here}
