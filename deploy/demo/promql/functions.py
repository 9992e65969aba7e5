"""What PromQL functions compute from samples: over a range, over a vector, over buckets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

Sample = tuple[float, float]  # (epoch seconds, value)
Samples = Sequence[Sample]


def increase(samples: Samples, start: float, end: float) -> float | None:
    """Growth of a counter over (start, end], extrapolated to its borders as Prometheus does; resets count as growth."""
    return _extrapolated(samples, start, end, counter=True)


def rate(samples: Samples, start: float, end: float) -> float | None:
    grown = increase(samples, start, end)
    return None if grown is None else grown / (end - start)


def delta(samples: Samples, start: float, end: float) -> float | None:
    return _extrapolated(samples, start, end, counter=False)


def irate(samples: Samples, _start: float, _end: float) -> float | None:
    if len(samples) < 2:
        return None
    (before, low), (after, high) = samples[-2:]
    return (high if high < low else high - low) / (after - before)


def deriv(samples: Samples, _start: float, _end: float) -> float | None:
    """The slope of the least-squares line, per second."""
    fit = _line(samples, samples[0][0]) if len(samples) > 1 else None
    return None if fit is None else fit[0]


def predict_linear(samples: Samples, end: float, ahead: float) -> float | None:
    fit = _line(samples, end) if len(samples) > 1 else None
    return None if fit is None else fit[1] + fit[0] * ahead


def stddev(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _values(take: Callable[[list[float]], float]) -> Callable[[Samples, float, float], float | None]:
    return lambda samples, _start, _end: take([value for _, value in samples])


RANGE: dict[str, Callable[[Samples, float, float], float | None]] = {
    "rate": rate,
    "irate": irate,
    "increase": increase,
    "delta": delta,
    "idelta": _values(lambda found: found[-1] - found[-2] if len(found) > 1 else math.nan),
    "deriv": deriv,
    "avg_over_time": _values(lambda found: sum(found) / len(found)),
    "max_over_time": _values(max),
    "min_over_time": _values(min),
    "sum_over_time": _values(sum),
    "count_over_time": _values(lambda found: float(len(found))),
    "last_over_time": _values(lambda found: found[-1]),
    "present_over_time": _values(lambda _: 1.0),
    "stddev_over_time": _values(stddev),
    "changes": _values(lambda found: float(sum(a != b for a, b in pairwise(found)))),
    "resets": _values(lambda found: float(sum(b < a for a, b in pairwise(found)))),
}
KEEPS_NAME = frozenset({"last_over_time"})


def _extrapolated(samples: Samples, start: float, end: float, *, counter: bool) -> float | None:
    if len(samples) < 2:
        return None
    (first_at, first), (last_at, last) = samples[0], samples[-1]
    grown = last - first
    if counter:
        grown += sum(before for (_, before), (_, after) in pairwise(samples) if after < before)
    covered = last_at - first_at
    gap = covered / (len(samples) - 1)
    to_start, to_end = first_at - start, end - last_at
    if to_start >= gap * 1.1:
        to_start = gap / 2
    if counter and grown > 0 and first >= 0:  # a counter can't have been below zero
        to_start = min(to_start, covered * first / grown)
    if to_end >= gap * 1.1:
        to_end = gap / 2
    return grown * (covered + to_start + to_end) / covered


def _line(samples: Samples, origin: float) -> tuple[float, float] | None:
    """(slope per second, value at `origin`) of the least-squares line."""
    count = len(samples)
    times = [at - origin for at, _ in samples]
    values = [value for _, value in samples]
    mean_t, mean_v = sum(times) / count, sum(values) / count
    spread = sum((t - mean_t) ** 2 for t in times)
    if spread == 0:
        return None
    slope = sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values, strict=True)) / spread
    return slope, mean_v - slope * mean_t


def quantile(share: float, values: list[float]) -> float:
    """Linear between the two nearest ranks; infinite outside [0, 1]."""
    if share < 0 or share > 1:
        return math.inf if share > 1 else -math.inf
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(len(ordered) - 1, low + 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


def histogram_quantile(share: float, buckets: list[tuple[float, float]]) -> float:
    """`buckets` are (upper bound, cumulative count); linear inside the bucket, as in Prometheus."""
    ordered = sorted(buckets)
    if not ordered or ordered[-1][0] != math.inf or len(ordered) < 2 or ordered[-1][1] == 0:
        return math.nan
    if share < 0 or share > 1:
        return math.inf if share > 1 else -math.inf
    rank = share * ordered[-1][1]
    index = next(i for i, (_, count) in enumerate(ordered) if count >= rank)
    if index == len(ordered) - 1:
        return ordered[-2][0]
    upper, count = ordered[index]
    lower, below = ordered[index - 1] if index else (0.0, 0.0)
    if index == 0 and upper <= 0:
        return upper
    return upper if count == below else lower + (upper - lower) * (rank - below) / (count - below)
