"""Child processes that end when we end, whichever way that is."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.errors import ConfigError

STOP_SECONDS = 40.0  # more than the 25 s in which the daemon ends all its processes in order
FORCE_SECONDS = 2.0
TAIL_LINES = 40


class Child:
    """A process in a session of its own, so that it and what it started can be ended together."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        log: Path,
        piped: bool = False,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self.name = name
        self.log = log
        self._stop_seconds = stop_seconds
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def first_line(self, seconds: float) -> str:
        """What it prints first. Raises `ConfigError` when it prints nothing in time or ends."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline().decode("utf-8", "replace") if ready else ""
        if not line:
            raise ConfigError(f"{self.name} did not start:\n{self.tail()}")
        return line

    def tail(self) -> str:
        """The last lines of its log."""
        try:
            return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-TAIL_LINES:])
        except OSError:
            return ""

    def stop(self) -> None:
        """Ask it to end; when it does not in time, or when it left anything behind, end that by force."""
        family = descendants(self.pid)
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(self._stop_seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
        _end_by_force(family)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def descendants(pid: int) -> dict[int, str]:
    """Children, their children and so on, each with its start time; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := _stat(int(folder.name)):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    ahead = [pid]
    while ahead:
        mine = children.get(ahead.pop(), [])
        found += mine
        ahead += mine
    return {one: _started(one) for one in found}


def _end_by_force(family: dict[int, str]) -> None:
    """Kill what is left and wait until it is gone, so that its files can be removed."""
    until = time.monotonic() + FORCE_SECONDS
    # A pid with another start time is somebody else's by now.
    while left := [pid for pid, started in family.items() if started and _started(pid) == started]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return
        time.sleep(0.01)


def _started(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if fields else ""


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty when there is no such process or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # the name before may hold blanks
    except OSError:
        return []
    return [] if fields[0] == "Z" else fields


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Inside, SIGTERM is a `SystemExit`, so that every `finally` on the way out runs."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
