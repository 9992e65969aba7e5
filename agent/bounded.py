"""Calls that may never return: each in a daemon thread that is abandoned when out of time, so none holds the run."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from agent.deadline import Deadline

Answer = TypeVar("Answer")


def start(act: Callable[[], Answer], name: str) -> Future[Answer]:
    """Run `act` in a daemon thread. A `ThreadPoolExecutor` would join a hung thread when the process ends."""
    future: Future[Answer] = Future()
    threading.Thread(target=_body(act, future), name=name, daemon=True).start()
    return future


def _body(act: Callable[[], Answer], future: Future[Answer]) -> Callable[[], None]:
    context = contextvars.copy_context()

    def body() -> None:
        try:
            answer = context.run(act)
        except BaseException as error:  # noqa: BLE001  whatever a tool or client raises is handed to the waiter
            future.set_exception(error)
        else:
            future.set_result(answer)

    return body


class Lane:
    """A daemon thread for one call after another: a new one for each costs a heavy client a fifth more. A call that
    does not return costs the lane its thread, not the next call its turn."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._bodies: SimpleQueue[Callable[[], None] | None] | None = None
        self._last: Future[object] | None = None

    def start(self, act: Callable[[], Answer]) -> Future[Answer]:
        future: Future[Answer] = Future()
        body = _body(act, future)
        with self._lock:
            if self._bodies is None or (self._last is not None and not self._last.done()):
                self._close()
                self._bodies = SimpleQueue()
                threading.Thread(target=_work, args=(self._bodies,), name=self._name, daemon=True).start()
            self._last = future  # type: ignore[assignment]  # only whether it is done matters
            self._bodies.put(body)
        return future

    def _close(self) -> None:
        if self._bodies is not None:
            self._bodies.put(None)

    def __del__(self) -> None:
        self._close()


def _work(bodies: SimpleQueue[Callable[[], None] | None]) -> None:
    while (body := bodies.get()) is not None:
        body()


def wait(future: Future[Answer], deadline: Deadline, grace: float = 0.0) -> BaseException | None:
    """The exception of a finished call, None for success. Raises `TimeoutError` when the deadline comes first.

    `grace` seconds let a call that keeps its own deadline say so itself.
    """
    seconds = deadline.remaining + grace
    return future.exception(timeout=min(seconds, threading.TIMEOUT_MAX))
