"""Threads made before the seal and parked, so that `threading` works where making threads is denied.

Standard library only. A parked thread runs one function after another; `threading` and what builds on it
(executors, `asyncio.to_thread`) get theirs from here.
"""

from __future__ import annotations

import _thread
import threading

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all of this module
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Work = tuple[Callable[[], None], Callable[[], None]]  # what to do; what to do once the thread is free again

PARKED = 16
STACK_BYTES = 2 * 1024 * 1024


class Parking:
    """The parked threads, and the stand-ins for what `threading` uses to start and join."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._waiting: list[tuple[Any, list[Work]]] = []
        self._ended: dict[int, Any] = {}  # thread id -> the lock that `threading` waits for (until 3.12)

    def fill(self) -> None:
        threading.stack_size(STACK_BYTES)
        for _ in range(PARKED):
            gate = _thread.allocate_lock()
            gate.acquire()
            post: list[Work] = []
            self._waiting.append((gate, post))
            _thread.start_new_thread(self._live, (gate, post))

    def install(self) -> None:
        """Put the stand-ins in place of the originals in `threading` and `_thread`."""
        for module in (threading, _thread):
            for name, stand_in in (
                ("_start_new_thread", self.start_new_thread),
                ("start_new_thread", self.start_new_thread),
                ("start_new", self.start_new_thread),
                ("_start_joinable_thread", self.start_joinable_thread),
                ("start_joinable_thread", self.start_joinable_thread),
                ("_set_sentinel", self.set_sentinel),
                ("_ThreadHandle", Handle),
            ):
                if hasattr(module, name):
                    setattr(module, name, stand_in)

    def start_new_thread(
        self, function: Callable[..., Any], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> int:
        return self._give(lambda: function(*args, **(kwargs or {})), self._end_of_thread)

    def start_joinable_thread(self, function: Callable[[], Any], handle: Any = None, daemon: bool = True) -> Any:  # noqa: ARG002
        handle = handle or Handle()
        handle.started = True

        def run() -> None:
            handle.ident = _thread.get_ident()
            function()

        self._give(run, handle._set_done)
        return handle

    def set_sentinel(self) -> Any:
        lock = _thread.allocate_lock()
        self._ended[_thread.get_ident()] = lock
        return lock

    def _end_of_thread(self) -> None:
        ended = self._ended.pop(_thread.get_ident(), None)
        if ended is not None and ended.locked():
            ended.release()

    def _give(self, act: Callable[[], None], done: Callable[[], None]) -> int:
        with self._lock:
            if not self._waiting:
                raise RuntimeError(f"can't start new thread: at most {PARKED} at a time")
            gate, post = self._waiting.pop()
        post.append((act, done))
        gate.release()
        return id(gate)

    def _live(self, gate: Any, post: list[Work]) -> None:
        while True:
            gate.acquire()
            act, done = post.pop()
            try:
                act()
            except SystemExit:
                pass
            except BaseException as error:  # noqa: BLE001  as threads do: tell, and go on
                threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, None)))
            del act  # it may hold much
            with self._lock:
                self._waiting.append((gate, post))
            done()  # last: who was waiting for this thread may want another at once


class Handle:
    """Stands for `_thread._ThreadHandle` (from 3.13)."""

    def __init__(self) -> None:
        self.ident = 0
        self.started = False
        self._done = _Flag()

    def is_done(self) -> bool:
        return self._done.is_set()

    def _set_done(self) -> None:
        self._done.set()

    def join(self, timeout: float | None = None) -> None:
        if not self.started:
            raise RuntimeError("thread not started")
        self._done.wait(timeout)


class _Flag:
    """An event of one bare lock, held until it is set."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        if not self._set:
            self._set = True
            self._lock.release()

    def wait(self, timeout: float | None = None) -> None:
        if self._lock.acquire(timeout=-1 if timeout is None or timeout < 0 else timeout):
            self._lock.release()
