"""Values as functions of time: what the generated series are made of. Times are epoch seconds."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

Shape = Callable[[float], float | None]  # None: nothing was scraped at that time
Points = Sequence[tuple[float, float]]  # (time, value), times ascending


def steady(value: float) -> Shape:
    return lambda _: value


def through(points: Points) -> Shape:
    """Straight lines through the points, flat before the first and after the last."""
    times = [at for at, _ in points]

    def value(t: float) -> float:
        index = bisect_right(times, t)
        if index == 0:
            return points[0][1]
        if index == len(points):
            return points[-1][1]
        (left, low), (right, high) = points[index - 1], points[index]
        return low + (high - low) * (t - left) / (right - left)

    return value


def levels(points: Points) -> Shape:
    """Steps: each value holds from its time on; the first also before it."""
    times = [at for at, _ in points]
    return lambda t: points[max(0, bisect_right(times, t) - 1)][1]


def counted(points: Points, origin: float) -> Shape:
    """A counter that grew since `origin` by the rates (per second) that `points` give as steps."""

    def value(t: float) -> float:
        edges = [origin, *(at for at, _ in points if origin < at < t), t]
        rate = levels(points)
        return sum((rate(left) or 0.0) * (right - left) for left, right in pairwise(edges)) if t > origin else 0.0

    return value


def between(shape: Shape, start: float, end: float | None = None) -> Shape:
    """Only there from `start` up to `end`, as for a pod that came and went."""
    return lambda t: shape(t) if t >= start and (end is None or t < end) else None


def capped(shape: Shape, limit: float) -> Shape:
    def value(t: float) -> float | None:
        free = shape(t)
        return None if free is None else min(limit, free)

    return value


def shaken(shape: Shape, share: float, salt: str) -> Shape:
    """The same with noise of up to `share` of the value; the noise depends on time and `salt` alone."""

    def value(t: float) -> float | None:
        calm = shape(t)
        return None if calm is None else calm * (1 + share * _noise(f"{salt}:{int(t)}"))

    return value


def _noise(text: str) -> float:
    """A number in [-1, 1), always the same for the same text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) / 2**31 - 1
