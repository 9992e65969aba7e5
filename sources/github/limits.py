"""GitHub's rate limits: which refusals are one, how long to wait, and keeping quiet until then.

https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api, read 2026-12-01.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.deadline import Clock
from agent.errors import Transient
from agent.http import MAX_WAIT_SECONDS, Response, retry_after, server_time

UNSAID_SECONDS = 60.0  # "wait for at least one minute"
_LIMIT_WORDS = re.compile(r"rate limit|abuse detection", re.IGNORECASE)
_REFUSAL_WORDS = re.compile(r"resource not accessible|is locked|must have (?:admin|write)", re.IGNORECASE)


def limit_wait(response: Response) -> float | None:
    """Seconds to wait when this reply is a primary or secondary rate limit; None when it is not.

    GitHub answers 403 as well as 429, sometimes with no header at all; a refusal for lack of a right is 403 too.
    """
    if response.status == 429:
        return _wait(response.headers)
    if response.status != 403 or _REFUSAL_WORDS.search(response.text[:2_000]):
        return None
    spent = response.headers.get("x-ratelimit-remaining", "").strip() == "0"
    if spent or "retry-after" in response.headers or _LIMIT_WORDS.search(response.text[:2_000]):
        return _wait(response.headers)
    return None


def _wait(headers: Mapping[str, str]) -> float:
    seconds = retry_after(headers)
    if seconds is not None:
        return seconds
    reset = headers.get("x-ratelimit-reset", "").strip()
    if headers.get("x-ratelimit-remaining", "").strip() == "0" and reset.isascii() and reset.isdigit():
        began = server_time(headers)
        now = began.timestamp() if began else time.time()  # the reset is by GitHub's clock, not by ours
        return min(max(0.0, float(reset[:12]) - now), MAX_WAIT_SECONDS)
    return UNSAID_SECONDS


@dataclass(slots=True)
class Gate:
    """Who goes on asking while limited is locked out for longer, so nothing is sent before the wait is over.

    The search has a limit of its own.
    """

    clock: Clock = time.monotonic
    _until: dict[bool, float] = field(default_factory=dict)

    def check(self, path: str) -> None:
        """Raises `Transient` with what is left of the wait."""
        left = self._until.get(_is_search(path), 0.0) - self.clock()
        if left > 0:
            raise Transient("github: not asked, a rate limit is not over yet", retry_after=left)

    def shut(self, path: str, seconds: float) -> None:
        self._until[_is_search(path)] = self.clock() + seconds


def _is_search(path: str) -> bool:
    return path.startswith("/search/")
