"""Times as a model writes them, and the window to look at when it names none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.alert import Alert, parse_time
from agent.errors import ToolError
from agent.tools import Arguments

Now = Callable[[], datetime]  # aware, UTC

BEFORE = timedelta(minutes=60)  # what a window shows of the time before the alert
AFTER = timedelta(hours=6)  # and at most of the time since: a day-old alert is explained by what happened around it
FORMS = "use RFC 3339 (2026-12-01T02:00:00Z), epoch seconds, now, -1h, now-30m or alert-10m"

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)"
_DURATION = re.compile(rf"(?:{_PART})+")
_RELATIVE = re.compile(rf"(now|alert)?\s*(?:([+-])\s*((?:{_PART})+|\d+(?:\.\d+)?))?")
_MAX_SECONDS = 100 * _UNIT_SECONDS["y"]


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From `start` to `end`, aware, UTC, `start` before `end`."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()

    def __str__(self) -> str:
        return f"from {stamp(self.start)} to {stamp(self.end)}"


def window(arguments: Arguments, alert: Alert, *, now: datetime) -> Window:
    """The window of a call: `start` and `end` where given, else around the alert.

    Raises `ToolError` for a time that can't be read and for an end that is not after the start.
    """
    default = around(alert, now=now)
    end = moment(arguments.get("end"), alert=alert, now=now)
    start = moment(arguments.get("start"), alert=alert, now=now, before=end)
    if end is None:
        end = default.end if start is None or start < default.end else now.replace(microsecond=0)
    if start is None:
        start = default.start if default.start < end else end - BEFORE
    if start >= end:
        raise ToolError(f"end ({stamp(end)}) must be after start ({stamp(start)}); now is {stamp(now)}")
    return Window(start=start, end=end)


def around(alert: Alert, *, now: datetime) -> Window:
    """From an hour before the alert to now, at most six hours after it; an alert without a time began now."""
    now = now.replace(microsecond=0)
    began = min(alert.starts_at or now, now)
    return Window(start=(began - BEFORE).replace(microsecond=0), end=min(now, began + AFTER))


def moment(value: object, *, alert: Alert, now: datetime, before: datetime | None = None) -> datetime | None:
    """The time a model named, None where it named none. Raises `ToolError` when it can't be read.

    A bare `-1h` counts back from `before` (the window's end) where there is one, else from now.
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ToolError(f"can't read the time {value!r}: {FORMS}")
    text = str(value).strip()
    try:
        return _relative(text, alert, now, before) or _epoch(text) or _absolute(text)
    except (OverflowError, ValueError, OSError) as error:
        raise ToolError(f"can't read the time {text[:60]!r}: {FORMS}") from error


def _relative(text: str, alert: Alert, now: datetime, before: datetime | None) -> datetime | None:
    match = _RELATIVE.fullmatch(text.lower().removesuffix(" ago"))
    if not match or not (match[1] or match[2]):
        return None
    now = now.replace(microsecond=0)
    if match[1] == "alert":
        anchor = alert.starts_at or now
    elif match[1] == "now":
        anchor = now
    else:
        anchor = before or now
    offset = timedelta(seconds=duration(match[3])) if match[3] else timedelta()
    return anchor - offset if match[2] == "-" else anchor + offset


def _epoch(text: str) -> datetime | None:
    """Epoch seconds; also milli-, micro- and nanoseconds, told apart by their size."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(text)
    for limit, divisor in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if seconds >= limit:
            return datetime.fromtimestamp(seconds / divisor, UTC)
    return datetime.fromtimestamp(seconds, UTC)


def _absolute(text: str) -> datetime:
    at = parse_time(text)
    if at is None:
        raise ValueError(text)
    return at


def duration(value: object) -> float:
    """Seconds from `30s`, `1h30m` or a number of seconds. Raises `ToolError` unless it is positive and finite."""
    text = str(value).strip().lower()
    if _DURATION.fullmatch(text):
        seconds = sum(float(count) * _UNIT_SECONDS[unit] for count, unit in re.findall(_PART, text))
    else:
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
    if not 0 < seconds <= _MAX_SECONDS:
        raise ToolError(f"{text[:60]!r} is not a duration above zero: use 30s, 5m, 1h or seconds")
    return seconds


def stamp(at: datetime) -> str:
    """`2026-12-01T02:03:04Z`: whole seconds, which is how finely people and models speak of incidents."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """`90` -> `1m30s`: a duration as Prometheus writes it."""
    if seconds < 1:
        return f"{max(1, round(seconds * 1000))}ms"
    left, parts = round(seconds), []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, int(_UNIT_SECONDS[unit]))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
