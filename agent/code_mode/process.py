"""The child process as the host sees it: started, awaited, killed by a handle that no other process can come to own."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

FOLDER = Path(__file__).parent
ENVIRONMENT = {"PATH": "/nonexistent", "LANG": "C.UTF-8", "TZ": "UTC", "MALLOC_ARENA_MAX": "1"}
OPTIONS = ("-I", "-S", "-B", "-X", "utf8")
EXIT = struct.Struct("!idq")  # wait status, CPU seconds, peak memory in KiB


@dataclass(frozen=True, slots=True)
class Exit:
    """`code` is None where the process was ended by `signal`."""

    code: int | None
    signal: int | None = None
    cpu_seconds: float = 0.0
    peak_kib: int = 0

    @classmethod
    def of(cls, status: int, cpu_seconds: float, peak_kib: int) -> Exit:
        code = os.waitstatus_to_exitcode(status)
        return cls(code if code >= 0 else None, -code if code < 0 else None, cpu_seconds, peak_kib)


class Child(Protocol):
    """One script's process."""

    @property
    def pid(self) -> int: ...

    @property
    def exit_fd(self) -> int:
        """Readable once the process has ended; -1 where the system has no such thing."""
        ...

    def ended(self) -> Exit | None:
        """How it ended; None while it runs. What is left of its process group goes with it."""
        ...

    def kill(self) -> None:
        """End it now. Safe from any thread, any number of times, also after the end."""
        ...

    def close(self) -> None: ...


def command(module: str, fd: int) -> list[str]:
    return [sys.executable, *OPTIONS, str(FOLDER / module), str(fd)]


class Spawned:
    """A cold start: a new interpreter, our own child."""

    def __init__(self, bridge: int, stdout: int, stderr: int) -> None:
        self._process = subprocess.Popen(
            command("child.py", bridge),
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(bridge,),
            start_new_session=True,
            cwd="/",
        )
        self.pid = self._process.pid
        self.exit_fd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1
        self._lock = threading.Lock()
        self._exit: Exit | None = None

    def ended(self) -> Exit | None:
        with self._lock:
            if self._exit is None:
                try:
                    self._exit = self._reaped()
                except ChildProcessError:  # this process ignores SIGCHLD, or something in it waits for any child
                    self._exit = Exit(None, signal.SIGKILL)
                if self._exit is not None:
                    self._process.returncode = -1 if self._exit.code is None else self._exit.code
            return self._exit

    def kill(self) -> None:
        with self._lock:
            if self._exit is None:
                with suppress(ProcessLookupError):
                    if self.exit_fd >= 0:
                        signal.pidfd_send_signal(self.exit_fd, signal.SIGKILL)
                    else:
                        os.kill(self.pid, signal.SIGKILL)  # not reaped, so still the same process
                self._kill_group()

    def close(self) -> None:
        if self.exit_fd >= 0:
            os.close(self.exit_fd)

    def _reaped(self) -> Exit | None:
        if hasattr(os, "waitid"):
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self._kill_group()  # before it is reaped: until then the number of the group is its own
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        return Exit.of(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss) if pid else None

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses for a group of zombies
            os.killpg(self.pid, signal.SIGKILL)


class Forked:
    """A child of the fork server, which tells its end on `status`. Sealed, so it has no children of its own."""

    def __init__(self, pid: int, pidfd: int, status: socket.socket) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._status = status
        self.exit_fd = status.fileno()
        self._lock = threading.Lock()
        self._exit: Exit | None = None

    def ended(self) -> Exit | None:
        with self._lock:
            if self._exit is None:
                try:
                    told = self._status.recv(EXIT.size, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return None
                if len(told) < EXIT.size:  # the server died, and its children with it
                    self._signal()
                    self._exit = Exit(None, signal.SIGKILL)
                else:
                    self._exit = Exit.of(*EXIT.unpack(told))
            return self._exit

    def kill(self) -> None:
        with self._lock:
            if self._exit is None:
                self._signal()

    def close(self) -> None:
        os.close(self._pidfd)
        self._status.close()

    def _signal(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
