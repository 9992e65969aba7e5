"""Several roles in one process tree: started, restarted when they die, ended together."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from worker.cli.exits import Status

LOOK_SECONDS = 0.2
STOP_SECONDS = 25.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
STABLE_SECONDS = 60.0  # after so long a life, the next pause is the first again
HOPELESS = (Status.USAGE, Status.CONFIGURATION)  # starting again would not help
PR_SET_PDEATHSIG = 1  # linux/prctl.h

Say = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One process; SIGTERM asks it to end in order."""

    name: str
    command: Sequence[str]


@dataclass(slots=True)
class _Child:
    role: Role
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    pause: float = FIRST_PAUSE_SECONDS


class Supervisor:
    """`tend` is called at every look. Children lead groups of their own: Ctrl-C reaches them through us alone."""

    def __init__(
        self,
        roles: Sequence[Role],
        *,
        say: Say,
        tend: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self._children = [_Child(role) for role in roles]
        self._say = say
        self._tend = tend
        self._clock = clock
        self._stop_seconds = stop_seconds

    @property
    def pids(self) -> dict[str, int]:
        """The running processes by role."""
        return {child.role.name: child.process.pid for child in self._children if child.process}

    def run(self, stop: threading.Event) -> int:
        """Until `stop` is set, or a child says that the configuration is wrong. Returns the exit status."""
        try:
            while not stop.is_set():
                for child in self._children:
                    status = self._look(child)
                    if status in HOPELESS:
                        return status
                self._tend()
                stop.wait(LOOK_SECONDS)
            return Status.OK
        finally:
            self._end()

    def _look(self, child: _Child) -> int:
        """Start what is due. Returns the status of a child that just ended, else 0."""
        now = self._clock()
        if child.process is None:
            if now >= child.due_at:
                self._start(child, now)
            return 0
        status = child.process.poll()
        if status is None:
            return 0
        child.process = None
        if now - child.started_at >= STABLE_SECONDS:
            child.pause = FIRST_PAUSE_SECONDS
        self._say("process_ended", name=child.role.name, status=status, restart_seconds=child.pause)
        child.due_at = now + child.pause
        child.pause = min(child.pause * 2, LONGEST_PAUSE_SECONDS)
        return status

    def _start(self, child: _Child, now: float) -> None:
        child.process = subprocess.Popen(child.role.command, stdin=subprocess.DEVNULL, start_new_session=True)
        child.started_at = now
        self._say("process_started", name=child.role.name, pid=child.process.pid)

    def _end(self) -> None:
        """Ask all at once, wait for all together, then end by force what is left, with its children."""
        running = [(child.role, child.process) for child in self._children if child.process]
        for _, process in running:
            process.terminate()
        deadline = self._clock() + self._stop_seconds
        for role, process in running:
            try:
                process.wait(max(0.0, deadline - self._clock()))
            except subprocess.TimeoutExpired:
                self._say("process_killed", name=role.name, pid=process.pid, after_seconds=self._stop_seconds)
            with suppress(ProcessLookupError):  # the group outlives its leader as long as it has members
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def end_with(parent: int) -> None:
    """Have the kernel end this process in order when `parent` dies; where there is no such call, nothing happens."""
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before we asked
        raise SystemExit(Status.FAILED)
