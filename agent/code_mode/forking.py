"""The worker's side of the fork server: one a process, made at first use, replaced when it dies."""

from __future__ import annotations

import os
import socket
import subprocess
import threading

from agent.code_mode.process import ENVIRONMENT, Forked, command

ANSWER_SECONDS = 5.0  # for a fork that takes two milliseconds; past it the server is taken for dead


class ForkServer:
    """Thread-safe. What a parent process made is not used after a fork: each process makes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready = False

    @property
    def pid(self) -> int | None:
        """Of the running server, if this process made one."""
        return self._process.pid if self._process is not None and self._owner == os.getpid() else None

    def start(self, bridge: int, stdout: int, stderr: int) -> Forked | None:
        """A child with these descriptors; None where the server isn't loaded yet or has died: start cold then."""
        control = self._usable()
        if control is None:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            ours.settimeout(ANSWER_SECONDS)
            socket.send_fds(control, [b"run"], [bridge, stdout, stderr, theirs.fileno()])
            theirs.close()
            data, fds, _, _ = socket.recv_fds(ours, 4, 1)
        except OSError:
            data, fds = b"", []
        theirs.close()
        if not fds:
            ours.close()
            self._discard(control)
            return None
        ours.settimeout(None)
        return Forked(int.from_bytes(data, "big"), fds[0], ours)

    def warm(self, seconds: float) -> bool:
        """Start the server if need be and wait until it is loaded."""
        control = self._usable()
        if control is None and self._control is not None:
            self._control.settimeout(seconds)
            self._greeted(self._control, 0)
        return self._ready

    def close(self) -> None:
        if self._control is not None:
            self._discard(self._control)

    def _usable(self) -> socket.socket | None:
        with self._lock:
            if self._owner != os.getpid():
                self._forget()
            if self._control is None:
                self._launch()
            if not self._ready and self._control is not None:
                self._greeted(self._control, socket.MSG_DONTWAIT)
            return self._control if self._ready else None

    def _greeted(self, control: socket.socket, flags: int) -> None:
        try:
            said = control.recv(16, flags)
        except (BlockingIOError, TimeoutError):
            return
        finally:
            control.settimeout(None)
        if said:
            self._ready = True
        else:
            self._end()

    def _launch(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            command("server.py", theirs.fileno()),
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            cwd="/",
        )
        theirs.close()
        self._control, self._owner, self._ready = ours, os.getpid(), False

    def _discard(self, control: socket.socket) -> None:
        with self._lock:
            if self._control is control:
                self._end()

    def _end(self) -> None:
        """The server leaves when its control socket closes, and takes its children along; a stuck one is killed."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._control, self._process, self._ready = None, None, False

    def _forget(self) -> None:
        """After a fork: the server is the parent's; only our copy of its socket goes."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for
        self._control, self._process, self._ready = None, None, False
