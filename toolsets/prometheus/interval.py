"""The step of a range query: fine enough to see, few enough points to read."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets.prometheus.api import PrometheusApi
from toolsets.timerange import Window, duration, span

STEPS = (1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)
MIN_SECONDS = 1.0
DEFAULT_SCRAPE_SECONDS = 15.0
ASK_SECONDS = 5.0
CACHE_SECONDS = 600.0


@dataclass(slots=True)
class ScrapeInterval:
    """The server's global scrape interval, asked at most every ten minutes; None where it does not tell."""

    api: PrometheusApi
    clock: Callable[[], float] = time.monotonic
    _kept: tuple[float, float | None] = field(default=(float("-inf"), None))

    def seconds(self, deadline: Deadline) -> float | None:
        asked_at, known = self._kept
        if self.clock() - asked_at > CACHE_SECONDS:
            known = self._ask(deadline.within(ASK_SECONDS))
            self._kept = (self.clock(), known)
        return known

    def _ask(self, deadline: Deadline) -> float | None:
        try:
            data = self.api.ask("/api/v1/status/config", {}, deadline).data
            text = str(data.get("yaml", "")) if isinstance(data, dict) else ""
            match = re.search(r"^global:\n(?:[ \t]+.*\n)*?[ \t]+scrape_interval:[ \t]*(\w+)", text, re.MULTILINE)
            return duration(match[1]) if match else None
        except ToolError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`note` tells the model why it is not the step it asked for."""

    seconds: float
    note: str = ""


def fitting(asked: object, window: Window, *, max_points: int, scrape: float | None) -> Step:
    """The step asked for, raised where it would give more than `max_points` points or repeat one scrape;
    the next round step that fits where none was asked. Raises `ToolError` for one that can't be read."""
    budget = window.seconds / max_points
    if asked is None or asked == "":
        return Step(seconds=_round(max(budget, scrape or DEFAULT_SCRAPE_SECONDS)))
    wanted = math.ceil(max(duration(asked), MIN_SECONDS) * 1000) / 1000  # sent in milliseconds, rounded to no less
    if wanted >= max(budget, scrape or 0.0):
        return Step(seconds=wanted)
    if wanted < budget:
        used, why = _round(max(budget, scrape or 0.0)), f"at most {max_points} points a series; ask a shorter window"
    else:
        used, why = scrape or wanted, "the scrape interval; there is nothing between"
    return Step(seconds=used, note=f"step {span(used)} was used instead of {span(wanted)}: {why}")


def ending_on_a_step(window: Window, step: float) -> Window:
    """The window from a little later on, so that its end is evaluated: the newest sample is what an alert is about."""
    steps = math.floor(window.seconds / step + 1e-9)
    return Window(start=window.end - timedelta(seconds=steps * step), end=window.end)


def _round(seconds: float) -> float:
    return next((float(step) for step in STEPS if step >= seconds), math.ceil(seconds / STEPS[-1]) * float(STEPS[-1]))
