"""A write that was accepted (202) and is carried out later: asks until it is known what became of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.http import Response
from sources.opsgenie.client import OpsApi, part
from sources.opsgenie.dialect import Dialect

FIRST_WAIT_SECONDS = 1.0
MAX_WAIT_SECONDS = 8.0
MAX_WAITS_SECONDS = 60.0  # all together
_TOO_LONG = re.compile(r"(?i)too (?:long|large|big)|max(?:imum)? (?:length|size)|exceed|\blength\b|characters")


class TooLong(Permanent):
    """Raised when the note is refused for its size: a shorter one may pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What became of writes, by their request ids."""

    api: OpsApi
    dialect: Dialect
    sleep: Callable[[float], None]

    def follow(self, request: str, deadline: Deadline) -> None:
        """Returns when it was carried out. Raises `Permanent` when it failed, `Transient` when that stays unknown."""
        for wait in _waits():
            if wait >= deadline.remaining:
                break
            self.sleep(wait)
            outcome = self._outcome(request, deadline)
            if outcome is None:
                continue
            success, words = outcome
            if success:
                return
            raise refused(f"{self.dialect.kind}: the note was accepted, then not added: {words}", words)
        raise Transient(f"{self.dialect.kind}: the note was accepted, but it is not known yet whether it was added")

    def _outcome(self, request: str, deadline: Deadline) -> tuple[bool, str] | None:
        """None while it is not known: a 404 means "not processed yet", and any other fault tells nothing either."""
        path = f"{self.dialect.alerts}/requests/{part(request)}"
        try:
            response = self.api.send("GET", path, deadline=deadline)
            body: Any = response.json() if response.status == 200 else None
        except RootcausedError:
            return None
        data = body.get("data", body) if isinstance(body, dict) else None
        if not isinstance(data, dict):
            return None
        success = data.get("isSuccess", data.get("success"))
        return (success, str(data.get("status") or "no reason given")[:300]) if isinstance(success, bool) else None


def size_checked(api: OpsApi, method: str, response: Response) -> Response:
    """The response when it is a success. Raises `TooLong` where the API's own words say so, else by status."""
    try:
        return api.checked(method, response)
    except Permanent as error:
        words = response.text if response.status in (400, 413, 422) else ""
        raise refused(str(error), words[:2_000]) from None


def refused(message: str, words: str) -> Permanent:
    return TooLong(message) if _TOO_LONG.search(words) else Permanent(message)


def _waits() -> Iterator[float]:
    """1, 2, 4, 8, 8, ... seconds, a minute in all."""
    total = 0.0
    for power in itertools.count():
        wait = min(FIRST_WAIT_SECONDS * 2**power, MAX_WAIT_SECONDS)
        total += wait
        if total > MAX_WAITS_SECONDS:
            return
        yield wait
