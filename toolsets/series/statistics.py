"""What a time series did, in a few numbers: extremes, counter increase, gaps, and where its level changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median

Labels = dict[str, str]
Point = tuple[float, float]  # epoch seconds, value

COUNTER_SUFFIXES = ("_total", "_count", "_sum", "_bucket")
MIN_POINTS = 8  # fewer say nothing of a level
MIN_SEGMENT = 3  # points a level must hold: one outlier is a spike, and shows as the maximum
MIN_EXPLAINED = 0.5  # share of the variance that the levels must explain
MIN_GAIN = 0.1  # what a second change point must add to that share
MIN_T_SQUARED = 25.0  # and how clearly, whatever the number of points
SHAPE_POINTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of an answer. `points` are in order of time and may hold NaN and infinities."""

    labels: Labels
    points: tuple[Point, ...]
    histogram: bool = False  # native histogram: the points are its count

    @property
    def name(self) -> str:
        return self.labels.get("__name__", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The level went from `before` to `after` at `at`; and back at `until`, when it did. Times are epoch seconds."""

    at: float
    before: float
    after: float
    until: float | None = None

    @property
    def size(self) -> float:
        return abs(self.after - self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A steady rise or fall over the whole window."""

    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A series' finite points in numbers. For a counter `change` and `shape` speak of its rate per second."""

    series: Series
    count: int
    nonfinite: int
    first: Point
    last: Point
    low: Point
    high: Point
    mean: float
    counter: bool
    increase: float
    resets: tuple[float, ...]
    change: Change | Trend | None
    shape: str

    @property
    def constant(self) -> bool:
        return self.low[1] == self.high[1]

    @property
    def weight(self) -> tuple[float, float]:
        """By which series are put in order: how far it moved, then how large it is."""
        moved = self.increase if self.counter else self.high[1] - self.low[1]
        if isinstance(self.change, Change) and not self.counter:
            moved = max(moved, self.change.size)
        return (moved, abs(self.high[1]))


def summarise(series: Series) -> Summary | None:
    """The numbers of a series; None when it has no finite point."""
    points = [point for point in series.points if math.isfinite(point[1])]
    if not points:
        return None
    counter = _is_counter(series, points)
    drops = [after for before, after in pairwise(points) if after[1] < before[1]] if counter else []
    moving = rates(points) if counter else points
    return Summary(
        series=series,
        count=len(points),
        nonfinite=len(series.points) - len(points),
        first=points[0],
        last=points[-1],
        low=min(points, key=lambda point: point[1]),
        high=max(points, key=lambda point: point[1]),
        mean=_mean([value for _, value in points]),
        counter=counter,
        increase=_increase(points) if counter else 0.0,
        resets=tuple(at for at, _ in drops),
        change=change_of(moving),
        shape=shape([value for _, value in moving]),
    )


def spread(series: Series) -> float:
    """How far the finite points lie apart; -1 when there are none. Cheap, to choose among thousands."""
    values = [value for _, value in series.points if math.isfinite(value)]
    return max(values) - min(values) if values else -1.0


def _is_counter(series: Series, points: Sequence[Point]) -> bool:
    """By the name, which functions such as rate() drop, and by hardly ever falling."""
    if not (series.histogram or series.name.endswith(COUNTER_SUFFIXES)) or len(points) < 2:
        return False
    falls = sum(after[1] < before[1] for before, after in pairwise(points))
    return min(value for _, value in points) >= 0 and falls <= max(1, len(points) // 10)


def rates(points: Sequence[Point]) -> list[Point]:
    """Increase per second between neighbours; after a reset the counter began again at zero."""
    return [
        (after[0], (after[1] - before[1] if after[1] >= before[1] else after[1]) / (after[0] - before[0]))
        for before, after in pairwise(points)
        if after[0] > before[0]
    ]


def _increase(points: Sequence[Point]) -> float:
    return sum(after[1] - before[1] if after[1] >= before[1] else after[1] for before, after in pairwise(points))


def change_of(points: Sequence[Point]) -> Change | Trend | None:
    """Where the level changed: one step, or one stretch on another level; a steady slope is no step.

    Least squares by cumulative sums, one pass: the best single split, and the stretch between the extremes of
    the centred cumulative sum (the circular form of binary segmentation). Levels are medians, so that a spike
    inside a level does not move it.
    """
    values = _scaled([value for _, value in points])
    if len(values) < MIN_POINTS or min(values) == max(values):
        return None
    mean = fmean(values)
    sums = [0.0, *accumulate(value - mean for value in values)]
    total = sum((value - mean) ** 2 for value in values)
    if total <= 0:
        return None
    start, stop, explained = _best_stretch(sums, total)
    slope, sloped = _line([at for at, _ in points], values, total)
    explained = min(explained / total, 1.0)
    if sloped >= max(explained, MIN_EXPLAINED):
        scale = _spread(points)
        return Trend(per_second=slope * scale) if _clear(sloped, len(values)) else None
    if explained < MIN_EXPLAINED or not _clear(explained, len(values)):
        return None
    return _change(points, start, stop)


def _change(points: Sequence[Point], start: int, stop: int) -> Change | None:
    inside = median(value for _, value in points[start:stop])
    outside = median(value for _, value in [*points[:start], *points[stop:]])
    if inside == outside:
        return None
    until = points[stop][0] if stop < len(points) else None
    return Change(at=points[start][0], before=outside, after=inside, until=until)


def _best_stretch(sums: Sequence[float], total: float) -> tuple[int, int, float]:
    """The stretch `[start, stop)` whose mean differs most from the rest, and the squares that it explains.

    A stretch that ends again has two free ends, so it must explain clearly more than a plain step.
    """
    size = len(sums) - 1

    def squares(start: int, stop: int) -> float:
        inside = stop - start
        return (sums[stop] - sums[start]) ** 2 * size / (inside * (size - inside))

    step = max((squares(at, size), at, size) for at in range(MIN_SEGMENT, size - MIN_SEGMENT + 1))
    start, stop = sorted((sums.index(min(sums)), sums.index(max(sums))))
    if stop - start >= MIN_SEGMENT and start >= MIN_SEGMENT and size - stop >= MIN_SEGMENT:
        there_and_back = squares(start, stop)
        if there_and_back > step[0] + MIN_GAIN * total:
            return start, stop, there_and_back
    return step[1], step[2], step[0]


def _line(times: Sequence[float], values: Sequence[float], total: float) -> tuple[float, float]:
    """The slope of the best straight line and the share of the squares it explains."""
    middle, mean = fmean(times), fmean(values)
    across = sum((at - middle) ** 2 for at in times)
    both = sum((at - middle) * (value - mean) for at, value in zip(times, values, strict=True))
    return (both / across, both**2 / across / total) if across else (0.0, 0.0)


def _clear(explained: float, count: int) -> bool:
    """The t statistic of a split or slope, squared, is large; 1.0 is a noiseless series."""
    return explained >= 1.0 or explained / (1.0 - explained) * (count - 2) >= MIN_T_SQUARED


def _spread(points: Sequence[Point]) -> float:
    values = [value for _, value in points]
    return max(values) - min(values)


def _scaled(values: Sequence[float]) -> list[float]:
    """Brought into 0..1, so that squares neither overflow nor vanish."""
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    width = high - low
    if not 0 < width < math.inf:
        return [0.0] * len(values)
    return [(value - low) / width for value in values]


def _mean(values: Sequence[float]) -> float:
    total = math.fsum(value / len(values) for value in values)
    return min(max(total, min(values)), max(values))


def shape(values: Sequence[float]) -> str:
    """Up to 20 digits, 0 the lowest and 9 the highest, each the mean of its share of the time.

    Digits and not block glyphs: three to a token instead of a glyph in up to three.
    """
    scaled = _scaled(values)
    if not scaled or min(scaled) == max(scaled):
        return ""
    size = min(SHAPE_POINTS, len(scaled))
    edges = [round(part * len(scaled) / size) for part in range(size + 1)]
    return "".join(str(round(9 * fmean(scaled[low:high]))) for low, high in pairwise(edges))
