"""Log lines put into few words: alike ones folded into one with a count, errors and rare ones kept first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.alert import clean
from toolsets.series.statistics import Labels
from toolsets.series.text import Grid, common_labels, selector, when, without

MAX_CHARS = 4_500
MAX_LINE_CHARS = 600
MAX_TEMPLATE_CHARS = 300  # lines that are alike that far are alike

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What differs between two lines of one statement: ids, numbers, addresses. Words with digits inside are such too.
_VARIABLE = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|\b(?=[\w.:]*\d)[\w.:]+")
_TROUBLE = re.compile(
    r"\b(?:error|err|errors|fatal|panic|critical|crit|emerg|exception|traceback|failed|failure|fail|killed|oom\w*|denied|"
    r"refused|timeout|timed out|unable|cannot|crash\w*|warn|warning|\w+(?:error|exception))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`at` is epoch seconds."""

    at: float
    labels: Labels
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Lines that are alike: the first of them stands for all."""

    first: Line
    count: int
    until: float
    streams: int
    trouble: bool


def tidy(text: str) -> str:
    """Without colours and control characters, its end cut when it is long."""
    text = clean(_ANSI.sub("", text)).strip()
    if len(text) > MAX_LINE_CHARS:
        return f"{text[:MAX_LINE_CHARS]}…[{len(text) - MAX_LINE_CHARS} more characters]"
    return text


def template(text: str) -> str:
    return _VARIABLE.sub("#", text[:MAX_TEMPLATE_CHARS])


def fold(lines: Iterable[Line]) -> list[Fold]:
    """In order of time, by the first line of each kind."""
    kinds: dict[str, list[Line]] = {}
    for line in sorted(lines, key=lambda line: line.at):
        kinds.setdefault(template(line.text), []).append(line)
    return [
        Fold(
            first=alike[0],
            count=len(alike),
            until=alike[-1].at,
            streams=len({tuple(sorted(line.labels.items())) for line in alike}),
            trouble=any(_TROUBLE.search(line.text[:MAX_TEMPLATE_CHARS]) for line in alike[:3]),
        )
        for alike in kinds.values()
    ]


def text_of(lines: Sequence[Line], *, max_chars: int = MAX_CHARS) -> str:
    """`2026-12-01T02:03:04Z {pod="a"} text`, common labels said once, in order of time. At least one line."""
    common = common_labels([line.labels for line in lines])
    folds = fold(lines)
    grid = Grid(start=min(one.first.at for one in folds), end=max(one.until for one in folds), step=0.0)
    written = [_written(one, common, grid) for one in folds]
    kept = _fitting(folds, written, max_chars)
    head = [f"{len(lines)} lines" + (f", all from {selector(common)}" if common else "")]
    if len(kept) < len(folds):
        shown = sum(folds[index].count for index in kept)
        head.append(
            f"PARTIAL: {len(kept)} of {len(folds)} kinds of line shown ({shown} of {len(lines)} lines), "
            "errors and rare ones first; narrow with a filter or a shorter window"
        )
    return "\n".join([*head, *(written[index] for index in kept)])


def _fitting(folds: Sequence[Fold], written: Sequence[str], max_chars: int) -> list[int]:
    """Those that fit, errors and rare ones chosen first, given in order of time."""
    kept: list[int] = []
    for index in sorted(range(len(folds)), key=lambda index: (not folds[index].trouble, folds[index].count, index)):
        max_chars -= len(written[index]) + 1
        if kept and max_chars < 0:
            break
        kept.append(index)
    return sorted(kept)


def _written(one: Fold, common: Labels, grid: Grid) -> str:
    parts = [when(one.first.at)]
    if labels := without(one.first.labels, common):
        parts.append(selector(labels))
    if one.count > 1:
        streams = f" in {one.streams} streams" if one.streams > 1 else ""
        parts.append(f"(x{one.count} until {grid.at(one.until)}{streams})")
    return " ".join([*parts, one.first.text.replace("\n", "\n    ")])
