"""One deadline, passed down: run > model call and tool call > request."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]  # seconds, monotonic


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on a monotonic clock; a wall-clock jump does not move it."""

    at: float
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> Deadline:
        return cls(clock() + seconds, clock)

    @classmethod
    def never(cls) -> Deadline:
        return cls(math.inf)

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        return self.remaining <= 0.0

    def within(self, seconds: float) -> Deadline:
        """The sooner of this deadline and `seconds` from now."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)
