"""Series as the text a model reads: common labels once, one line a series, the most telling first, bounded."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolsets.series.statistics import Change, Labels, Series, Summary, Trend, spread, summarise
from toolsets.timerange import span, stamp

MAX_CHARS = 4_500  # a result of the default 1,500 tokens, digits being dear
MAX_SERIES = 40
MAX_SUMMARISED = 200
MAX_LABEL_CHARS = 120
MAX_VALUE_POINTS = 100_000  # of the structured value, for code


def number(value: float) -> str:
    """`1073741824`, `12346`, `0.001234`, `NaN`: four significant digits, whole numbers whole."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if abs(value) < 1e15 and (value == int(value) or abs(value) >= 1000):
        return f"{value:.0f}"
    return f"{value:.4g}"


def clock(at: float) -> str:
    """`02:03:04` of an epoch; the date stands in the query line."""
    return _at(at).strftime("%H:%M:%S")


def when(at: float) -> str:
    return stamp(_at(at))


def _at(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def selector(labels: Labels) -> str:
    """`up{job="x"}`: the series as one would select it."""
    name = labels.get("__name__", "")
    inner = ",".join(f'{key}="{_short(value)}"' for key, value in sorted(labels.items()) if key != "__name__")
    return f"{name}{{{inner}}}" if inner or not name else name


def _short(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text if len(text) <= MAX_LABEL_CHARS else f"{text[:MAX_LABEL_CHARS]}…"


def common_labels(every: Sequence[Labels]) -> Labels:
    """What all of them have in common, to be said once; nothing when there is one only."""
    if len(every) < 2:
        return {}
    first, *rest = every
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in rest)}


def without(labels: Labels, common: Labels) -> Labels:
    return {key: value for key, value in labels.items() if key not in common}


def cardinality(every: Sequence[Labels]) -> str:
    """`pod 412, instance 3`: distinct values of the labels that differ, most first."""
    values: dict[str, set[str]] = {}
    for labels in every:
        for key, value in labels.items():
            values.setdefault(key, set()).add(value)
    counts = sorted(((len(found), key) for key, found in values.items() if len(found) > 1), reverse=True)
    return ", ".join(f"{key} {count}" for count, key in counts[:10])


def bounded(lines: Iterable[str], *, max_lines: int, max_chars: int = MAX_CHARS) -> list[str]:
    """The lines that fit, at least one."""
    kept: list[str] = []
    for line in lines:
        max_chars -= len(line) + 1
        if len(kept) == max_lines or (kept and max_chars < 0):
            break
        kept.append(line)
    return kept


def partial(shown: int, every: Sequence[Labels], order: str) -> str:
    """How much is left out, along what the rest differs, and how to get less."""
    by = cardinality(every)
    return (
        f"PARTIAL: {shown} of {len(every)} series shown, by {order}; narrow with more label matchers, "
        f"sum by (label) (...) or topk(10, ...)" + (f"\ndistinct label values: {by}" if by else "")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The times a range query was evaluated at, in epoch seconds; a step of 0 stands for samples as scraped."""

    start: float
    end: float
    step: float

    @property
    def last(self) -> float:
        return self.start + math.floor((self.end - self.start) / self.step) * self.step

    def at(self, at: float) -> str:
        """As short as is clear: the date only where the window has more than one."""
        return clock(at) if self.end - self.start < 86_400 else when(at)


def range_text(every: Sequence[Series], grid: Grid) -> str:
    """Series over time, the one that moved most first."""
    summaries = _ranked(every)
    labels = [series.labels for series in every]
    common = common_labels(labels)
    lines = bounded((_range_line(summary, common, grid) for summary in summaries), max_lines=MAX_SERIES)
    head = [_head(len(every), common, f"step {span(grid.step)}" if grid.step > 0 else "raw samples")]
    empty = sum(spread(series) < 0 for series in every)
    if len(lines) < len(every) - empty:
        head.append(partial(len(lines), labels, "largest change"))
    if empty:
        head.append(f"{empty} series with NaN or infinite points only")
    return "\n".join([*head, *lines, *_notes(summaries[: len(lines)])])


def _ranked(every: Sequence[Series]) -> list[Summary]:
    """Summaries, the largest change first; of thousands only those that lie furthest apart are looked at closely."""
    if len(every) > MAX_SUMMARISED:
        every = heapq.nlargest(MAX_SUMMARISED, every, key=spread)
    summaries = [summary for series in every if (summary := summarise(series))]
    return sorted(summaries, key=lambda summary: summary.weight, reverse=True)


def _head(count: int, common: Labels, also: str) -> str:
    shared = f"; all have {selector(common)}" if common else ""
    return f"{count} series, {also}{shared}"


def _range_line(summary: Summary, common: Labels, grid: Grid) -> str:
    """`{pod="a"} first=1 last=9 min=1 (at 02:00:00) max=9 (at 02:40:00) avg=3; step from 1 to 9 at ...`"""
    labels = selector(without(summary.series.labels, common))
    if summary.constant:
        what = f"constant {number(summary.first[1])}"
    elif summary.counter:
        what = _counter(summary, grid)
    else:
        what = _gauge(summary, grid)
    return "; ".join([f"{labels} {what}", *_changed(summary), *_gaps(summary, grid)])


def _gauge(summary: Summary, grid: Grid) -> str:
    first, last, mean = number(summary.first[1]), number(summary.last[1]), number(summary.mean)
    low = f"min={number(summary.low[1])} (at {grid.at(summary.low[0])})"
    high = f"max={number(summary.high[1])} (at {grid.at(summary.high[0])})"
    return f"first={first} last={last} {low} {high} avg={mean}"


def _counter(summary: Summary, grid: Grid) -> str:
    seconds = summary.last[0] - summary.first[0]
    first, last, increase = number(summary.first[1]), number(summary.last[1]), number(summary.increase)
    text = f"counter first={first} last={last} increase={increase}"
    if seconds > 0:
        text += f" ({number(summary.increase / seconds)}/s)"
    if summary.resets:
        text += f" resets={len(summary.resets)} (last at {grid.at(summary.resets[-1])})"
    return text


def _changed(summary: Summary) -> list[str]:
    said: list[str] = []
    unit, what = ("/s", "rate ") if summary.counter else ("", "")
    match summary.change:
        case Change(at=at, before=before, after=after, until=until):
            back = f", back at {when(until)}" if until is not None else ""
            said.append(f"{what}step from {number(before)}{unit} to {number(after)}{unit} at {when(at)}{back}")
        case Trend(per_second=slope):
            said.append(f"{what}{'rising' if slope > 0 else 'falling'} steadily, {number(slope * 3600)}{unit} per hour")
        case None:
            pass
    if summary.shape and not summary.constant:
        said.append(f"shape {summary.shape}")
    return said


def _gaps(summary: Summary, grid: Grid) -> list[str]:
    """A series that begins late, ends early or has holes: a restart, a lost target, a failed scrape."""
    said = [f"{summary.nonfinite} points NaN or infinite"] if summary.nonfinite else []
    if grid.step <= 0:
        return said
    begins, ends = summary.series.points[0][0], summary.series.points[-1][0]
    if begins - grid.start > 1.5 * grid.step:
        said.append(f"begins {when(begins)}")
    if grid.last - ends > 1.5 * grid.step:
        said.append(f"ends {when(ends)}")
    expected = round((ends - begins) / grid.step) + 1
    if (missing := expected - len(summary.series.points)) > 0:
        said.append(f"{missing} of {expected} points missing")
    return said


def _notes(shown: Sequence[Summary]) -> list[str]:
    notes = []
    if any(summary.shape and not summary.constant for summary in shown):
        notes.append("shape: 0 lowest to 9 highest over the window")
    if any(summary.counter and not summary.series.histogram for summary in shown):
        notes.append("note: counters only grow; use rate(metric[5m]) or increase()")
    if any(summary.series.histogram for summary in shown):
        notes.append("note: native histograms, shown by their count; use histogram_quantile(0.99, rate(metric[5m]))")
    return notes


def instant_text(every: Sequence[Series], *, at: str) -> str:
    """Values at one time, the largest first."""
    ordered = sorted(every, key=_last_value, reverse=True)
    labels = [series.labels for series in every]
    common = common_labels(labels)
    lines = bounded(
        (
            f"{selector(without(series.labels, common))} {number(series.points[-1][1])}"
            + (" (count of a native histogram)" if series.histogram else "")
            for series in ordered
        ),
        max_lines=100,
    )
    head = [_head(len(every), common, f"at {at}")]
    if len(lines) < len(every):
        head.append(partial(len(lines), labels, "largest value"))
    return "\n".join([*head, *lines, *_histogram_totals(every)])


def _last_value(series: Series) -> float:
    value = series.points[-1][1]
    return -math.inf if math.isnan(value) else value


def _histogram_totals(every: Sequence[Series]) -> list[str]:
    names = Counter(series.name for series in every if series.histogram)
    return [f"note: use histogram_quantile(0.99, rate({name or 'metric'}[5m]))" for name in list(names)[:1]]


def as_value(every: Sequence[Series]) -> list[dict[str, Any]]:
    """The same for code: `[{metric, values: [[epoch seconds, value], ...]}]`, null where not finite.

    Cut to whole series, those that moved most first, so that a cut never falsifies one.
    """
    budget = MAX_VALUE_POINTS
    if sum(len(series.points) for series in every) > budget:
        every = sorted(every, key=spread, reverse=True)
    kept: list[dict[str, Any]] = []
    for series in every:
        budget -= len(series.points)
        if kept and budget < 0:
            break
        values = [[at, value if math.isfinite(value) else None] for at, value in series.points]
        kept.append({"metric": series.labels, "values": values})
    return kept
