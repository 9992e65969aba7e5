"""Why a query came back empty: the metric's true name, a label's true values, or a condition that nothing meets."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets.prometheus.api import PrometheusApi, bounds, read_series
from toolsets.prometheus.selectors import Matcher, Selector, selectors
from toolsets.timerange import Window

MAX_SELECTORS = 3
MAX_LABELS = 3
MAX_NAMES = 8
MAX_VALUES = 12
SECONDS = 10.0  # of the call's own time, for the whole explanation
CACHE_SECONDS = 60.0


@dataclass(slots=True)
class MetricNames:
    """All metric names of the server, asked at most once a minute. Replaced whole, so threads may share it."""

    api: PrometheusApi
    clock: Callable[[], float] = time.monotonic
    _kept: tuple[float, frozenset[str]] = field(default=(float("-inf"), frozenset()))

    def all(self, deadline: Deadline) -> frozenset[str]:
        asked_at, names = self._kept
        if self.clock() - asked_at > CACHE_SECONDS:
            names = frozenset(self.api.label_values("__name__", {}, deadline))
            self._kept = (self.clock() if names else float("-inf"), names)
        return names

    def has(self, name: str, deadline: Deadline) -> bool:
        """Asks again for a name that the kept list lacks: it may be newer, and a wrong "there is none" misleads."""
        if name in self.all(deadline):
            return True
        return bool(self.api.label_values("__name__", {"match[]": f'{{__name__="{name}"}}'}, deadline))


def why_empty(api: PrometheusApi, names: MetricNames, query: str, window: Window, deadline: Deadline) -> str:
    """What the model should know to ask better; "" when the server does not tell. Never raises."""
    deadline = deadline.within(SECONDS)
    asked = selectors(query)[:MAX_SELECTORS]
    try:
        counts = [_count(api, one, window, deadline) for one in asked]
        if all(counts):
            return "\n".join(
                f"{one.text} matches {count} series: the comparison, join or function around it leaves none"
                for one, count in zip(asked, counts, strict=True)
            )
        return "\n".join(
            _unmatched(api, names, one, window, deadline) for one, count in zip(asked, counts, strict=True) if not count
        )
    except ToolError:
        return ""


def _unmatched(api: PrometheusApi, names: MetricNames, one: Selector, window: Window, deadline: Deadline) -> str:
    """Why a selector matches nothing: no such metric, no such label value, or not at this time."""
    if not one.name:
        return f"{one.text} matches no series in this window"
    if not names.has(one.name, deadline):
        near = closest(one.name, names.all(deadline))
        return f"no metric is named {one.name}" + (f"; closest: {', '.join(near)}" if near else "")
    wrong = [_values(api, one, matcher, window, deadline) for matcher in one.matchers[:MAX_LABELS]]
    if told := [line for line in wrong if line]:
        return "\n".join(told)
    if one.matchers:
        return f"{one.name} exists, but no series matches all of {one.text} in this window"
    return f"{one.name} exists, but has no samples in this window: try another start and end"


def _count(api: PrometheusApi, one: Selector, window: Window, deadline: Deadline) -> int:
    """Series the bare selector matches at any time of the window."""
    seconds = max(1, round(window.seconds))
    answer = api.query(f"count(last_over_time({one.text}[{seconds}s]))", time=window.end.timestamp(), deadline=deadline)
    found = read_series(answer.data)
    return int(found[0].points[-1][1]) if found else 0


def _values(api: PrometheusApi, one: Selector, matcher: Matcher, window: Window, deadline: Deadline) -> str:
    """The values that a label really has on this metric, where the matcher meets none of them."""
    values = api.label_values(matcher.label, {"match[]": f'{{__name__="{one.name}"}}', **bounds(window)}, deadline)
    if not values:
        return "" if matcher.operator in ("!=", "!~") else f"{one.name} has no label {matcher.label} in this window"
    if _met(api, one, matcher, values, window, deadline):
        return ""
    shown = closest(matcher.value, values, count=MAX_VALUES) or sorted(values)[:MAX_VALUES]
    more = f" (of {len(values)})" if len(values) > len(shown) else ""
    asked = f'{matcher.label}{matcher.operator}"{matcher.value}"'
    return f"{one.name}: {asked} matches no value; there are {', '.join(shown)}{more}"


def _met(
    api: PrometheusApi, one: Selector, matcher: Matcher, values: Sequence[str], window: Window, deadline: Deadline
) -> bool:
    """Whether the matcher meets one of the values. The server judges patterns: ours could take exponential time."""
    match matcher.operator:
        case "=":
            return matcher.value in values
        case "!=":
            return any(value != matcher.value for value in values)
    alone = f'{{__name__="{one.name}",{matcher.label}{matcher.operator}{_quoted(matcher.value)}}}'
    return bool(api.label_values(matcher.label, {"match[]": alone, **bounds(window)}, deadline))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def closest(word: str, known: Sequence[str] | frozenset[str], *, count: int = MAX_NAMES) -> list[str]:
    """The names nearest in parts and spelling; the parts choose first, since spelling alone is slow on many names."""
    parts = _parts(word)
    overlap = sorted(known, key=lambda name: (-len(parts & _parts(name)), abs(len(name) - len(word)), name))[:200]
    sharing = [name for name in overlap if parts & _parts(name)]
    spelt = difflib.get_close_matches(word, overlap, n=count, cutoff=0.6)
    return list(dict.fromkeys([*spelt, *sharing]))[:count]


def _parts(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower())) - {""}
