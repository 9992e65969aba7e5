"""A worker that must stop hands its investigations over instead of finishing them or dropping them.

On SIGTERM Celery takes no new task and waits for the running ones. After `worker.soft_shutdown_seconds` the parent
asks its children (SIGUSR2); an investigation then leaves with what its journal holds, and is queued again at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

ASK = signal.SIGUSR2  # Celery and billiard use SIGUSR1 in children


class HandOver(BaseException):
    """Raised inside an investigation that must end now. Not an `Exception`: no library may take it for its own."""


class Handover:
    """One a process. Work that can be handed over is done inside `allowed()`."""

    def __init__(self) -> None:
        self._asked = False
        self._allowed = False

    def arm(self) -> None:
        """Listen for the parent; in a child, on its main thread."""
        self._asked = False
        signal.signal(ASK, self._on_ask)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Raises `HandOver` at once when it was asked for before."""
        if self._asked:
            raise HandOver
        self._allowed = True
        try:
            yield
        finally:
            self._allowed = False

    def _on_ask(self, *_: object) -> None:
        self._asked = True
        if self._allowed:
            self._allowed = False  # once: what cleans up after it must not be interrupted
            raise HandOver


def ask_later(children: Callable[[], Iterable[int]], seconds: float) -> threading.Timer:
    """Ask the processes that `children` names, `seconds` from now."""

    def ask() -> None:
        for pid in children():
            with suppress(ProcessLookupError):
                os.kill(pid, ASK)

    timer = threading.Timer(seconds, ask)
    timer.daemon = True
    timer.start()
    return timer
