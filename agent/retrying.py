"""The one retry layer over models: waits as told by the provider, else ever longer, and never past the deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.deadline import Deadline
from agent.errors import Transient
from agent.model import Message, Model, Reply, ToolSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long. The count is per request: an earlier burst of refusals costs a later one nothing."""

    attempts: int = 8
    share: float = 0.5  # of the time that is left; the rest is for the next model, or for an answer without one
    first_seconds: float = 1.0
    longest_seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)  # 0 <= x < 1

    def pause(self, attempt: int, told: float | None) -> float:
        """Seconds before the next attempt: what the provider said and a little more, else jittered exponential."""
        if told is not None:
            return told + self.jitter()
        longest = min(self.longest_seconds, self.first_seconds * 2.0**attempt)
        return longest * (0.5 + self.jitter() / 2)


@dataclass(frozen=True, slots=True)
class Retrying:
    """A model that asks again where that may help. Raises the last `Transient` when it may not, in time, any more."""

    model: Model
    patience: Patience
    call_seconds: float
    label: str = ""  # where two models share a name

    @property
    def name(self) -> str:
        return self.label or self.model.name

    @property
    def window_tokens(self) -> int:
        return self.model.window_tokens

    def reply(self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, deadline: Deadline) -> Reply:
        enough = deadline.within(deadline.remaining * self.patience.share)
        attempt = 0
        while True:
            attempt += 1
            try:
                return self.model.reply(messages, tools, deadline=deadline.within(self.call_seconds))
            except Transient as error:
                pause = self.patience.pause(attempt - 1, error.retry_after)
                if attempt >= self.patience.attempts or pause >= enough.remaining:
                    raise
                self.patience.sleep(pause)
