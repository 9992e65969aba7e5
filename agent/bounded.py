"""Calls that may never return: each in a daemon thread that is abandoned when out of time, so none holds the run."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from agent.deadline import Deadline

Answer = TypeVar("Answer")


def start(act: Callable[[], Answer], name: str) -> Future[Answer]:
    """Run `act` in a daemon thread. A `ThreadPoolExecutor` would join a hung thread when the process ends."""
    future: Future[Answer] = Future()
    context = contextvars.copy_context()

    def body() -> None:
        try:
            answer = context.run(act)
        except BaseException as error:  # noqa: BLE001  whatever a tool or client raises is handed to the waiter
            future.set_exception(error)
        else:
            future.set_result(answer)

    threading.Thread(target=body, name=name, daemon=True).start()
    return future


def wait(future: Future[Answer], deadline: Deadline, grace: float = 0.0) -> BaseException | None:
    """The exception of a finished call, None for success. Raises `TimeoutError` when the deadline comes first.

    `grace` seconds let a call that keeps its own deadline say so itself.
    """
    seconds = deadline.remaining + grace
    return future.exception(timeout=min(seconds, threading.TIMEOUT_MAX))
