"""One run: a sealed child started, watched by one loop over its output and its end, and gone when this returns."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agent.code_mode.bridge import Abuse, Ask, Bridge, TooMany, framed
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.forking import ForkServer
from agent.code_mode.output import Output
from agent.code_mode.process import Child, Exit, Spawned
from agent.code_mode.wire import UNSEALED
from agent.deadline import Clock, Deadline

LOOK_SECONDS = 0.5  # how often overdue calls are looked for
BLIND_LOOK_SECONDS = 0.02  # where the end of a process can't be waited for
DEATH_SECONDS = 5.0  # for a killed process to be gone; more means it hangs in the kernel
DRAIN_SECONDS = 0.5  # for output of what may still hold the pipes after the end
CHUNK_BYTES = 65_536
AT_ONCE_BYTES = 65_536  # what a socket takes without anyone reading


class End(StrEnum):
    """Why the run ended."""

    FINISHED = "finished"
    FAILED = "failed"  # the script raised, or exited with a status
    WALL = "wall"
    CPU = "cpu"
    MEMORY = "memory"
    OUTPUT = "output"
    PROTOCOL = "protocol"
    CALLS = "calls"
    SIGNAL = "signal"
    UNSEALED = "unsealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    end: End
    words: str  # for the model: what ended the run; "" when it finished
    stdout: str
    stderr: str
    value: str
    lost_bytes: int
    exit: Exit
    seconds: float
    layers: dict[str, str]
    forked: bool


@dataclass(slots=True)
class _Run:
    """What is known of a run while it lasts."""

    child: Child
    bridge: Bridge
    streams: dict[int, Output]
    wall: Deadline
    stopped: tuple[End, str] | None = None
    gone: Exit | None = None

    def stop(self, end: End, words: str) -> None:
        """The first reason counts."""
        self.stopped = self.stopped or (end, words)
        self.child.kill()


@dataclass(slots=True, kw_only=True)
class Host:
    """Starts and watches scripts. `need` are the layers without which a script is not run; `skip` are left out
    on purpose, to show in tests what each is for."""

    limits: CodeModeConfig
    need: Sequence[str] = ()
    skip: Sequence[str] = ()
    server: ForkServer | None = None
    clock: Clock = time.monotonic
    _slots: threading.BoundedSemaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = threading.BoundedSemaphore(self.limits.concurrent_scripts)

    def run(
        self, code: str, specs: Sequence[dict[str, Any]], ask: Ask, *, wall_seconds: float, call_seconds: float
    ) -> Outcome:
        """Run one script to whatever end; never raises for what the script does. `ask` answers its calls.

        Raises `OSError` when no process can be started, `TimeoutError` when others leave it no time.
        """
        if not self._slots.acquire(timeout=wall_seconds):
            raise TimeoutError(errno.ETIMEDOUT, "other scripts took all the time")
        try:
            return self._run(code, specs, ask, wall_seconds, call_seconds)
        finally:
            self._slots.release()

    def _run(
        self, code: str, specs: Sequence[dict[str, Any]], ask: Ask, wall_seconds: float, call_seconds: float
    ) -> Outcome:
        begun = self.clock()
        ours, theirs = socket.socketpair()
        pipes = [os.pipe(), os.pipe()]
        order = framed(self._order(code, specs))
        try:
            if len(order) <= AT_ONCE_BYTES:  # it lies there when the child looks
                ours.sendall(order)
                order = b""
            child, forked = self._start(theirs.fileno(), pipes[0][1], pipes[1][1])
        except OSError:
            ours.close()
            for read, _ in pipes:
                os.close(read)
            raise
        finally:
            theirs.close()
            for _, write in pipes:
                os.close(write)
        streams = {read: Output(self.limits.output_bytes) for read, _ in pipes}
        wall = Deadline.after(wall_seconds, self.clock)
        run = self._watched(child, ours, streams, wall, ask, call_seconds)
        try:
            run.bridge.start(order)
            self._watch(run, wall_seconds)
            if run.stopped is None:
                run.bridge.finish(DRAIN_SECONDS)
        finally:
            self._clear(run)
        return self._outcome(run, self.clock() - begun, forked)

    def _start(self, bridge: int, stdout: int, stderr: int) -> tuple[Child, bool]:
        forked = self.server.start(bridge, stdout, stderr) if self.server is not None else None
        if forked is not None:
            return forked, True
        return Spawned(bridge, stdout, stderr), False

    def _order(self, code: str, specs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "code": code,
            "tools": list(specs),
            "memory_bytes": self.limits.memory_mb * 1024 * 1024,
            "cpu_seconds": self.limits.cpu_seconds,
            "need": list(self.need),
            "skip": list(self.skip),
        }

    def _watched(
        self,
        child: Child,
        ours: socket.socket,
        streams: dict[int, Output],
        wall: Deadline,
        ask: Ask,
        call_seconds: float,
    ) -> _Run:
        def abused(abuse: Abuse) -> None:
            if isinstance(abuse, TooMany):
                run.stop(End.CALLS, str(abuse))
            else:
                run.stop(End.PROTOCOL, f"it broke the protocol of calls: {abuse}")

        bridge = Bridge(
            ours,
            ask=ask,
            abused=abused,
            concurrent=self.limits.concurrent_sub_calls,
            frame_bytes=self.limits.frame_bytes,
            queue_bytes=self.limits.result_bytes,
            call_seconds=call_seconds,
            clock=self.clock,
        )
        run = _Run(child=child, bridge=bridge, streams=streams, wall=wall)
        return run

    def _watch(self, run: _Run, wall_seconds: float) -> None:
        poll = select.poll()
        for fd in (*run.streams, run.child.exit_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        look = LOOK_SECONDS if run.child.exit_fd >= 0 else BLIND_LOOK_SECONDS
        death = Deadline.never()
        while not death.passed:
            for fd, _ in poll.poll(1_000 * min(look, run.wall.remaining if run.stopped is None else look)):
                if fd in run.streams and not self._read(run, fd):
                    poll.unregister(fd)
            run.gone = run.child.ended()
            if run.gone is not None:
                return
            run.bridge.expire()
            if run.wall.passed:
                run.stop(End.WALL, f"it ran into the limit of {wall_seconds:g} s")
            if run.stopped is not None and death.at == Deadline.never().at:
                death = Deadline.after(DEATH_SECONDS, self.clock)

    def _read(self, run: _Run, fd: int) -> bool:
        """Take what there is to read; False at the end of the stream."""
        data = os.read(fd, CHUNK_BYTES)
        run.streams[fd].feed(data)
        if sum(output.total for output in run.streams.values()) > self.limits.flood_bytes and run.stopped is None:
            run.stop(End.OUTPUT, f"it printed more than {self.limits.flood_bytes} bytes")
        return bool(data)

    def _clear(self, run: _Run) -> None:
        """Whatever happened: the process is gone, its last output read, every descriptor closed."""
        run.child.kill()
        run.bridge.end()
        self._drain(run)
        if run.gone is None:
            run.gone = run.child.ended()
        for fd in run.streams:
            os.close(fd)
        run.child.close()

    def _drain(self, run: _Run) -> None:
        poll = select.poll()
        for fd in run.streams:
            poll.register(fd, select.POLLIN)
        left, deadline = set(run.streams), Deadline.after(DRAIN_SECONDS, self.clock)
        while left and not deadline.passed:
            for fd, _ in poll.poll(1_000 * deadline.remaining):
                if not self._read(run, fd):
                    poll.unregister(fd)
                    left.discard(fd)

    def _outcome(self, run: _Run, seconds: float, forked: bool) -> Outcome:
        stdout, stderr = run.streams.values()
        gone = run.gone or Exit(None, signal.SIGKILL)
        end, words = run.stopped or self._judged(gone, stderr)
        return Outcome(
            end=end,
            words=words,
            stdout=stdout.text(),
            stderr=stderr.text(),
            value=run.bridge.value,
            lost_bytes=stdout.lost + stderr.lost,
            exit=gone,
            seconds=seconds,
            layers=run.bridge.layers or {},
            forked=forked,
        )

    def _judged(self, gone: Exit, stderr: Output) -> tuple[End, str]:
        """What an end that we did not bring about means."""
        limits = self.limits
        if gone.code == 0:
            return End.FINISHED, ""
        if gone.code == UNSEALED:
            return End.UNSEALED, "the host no longer gives the isolation that is required; nothing was run"
        if gone.signal == signal.SIGXCPU or (gone.signal == signal.SIGKILL and gone.cpu_seconds >= limits.cpu_seconds):
            return End.CPU, f"it used more than {limits.cpu_seconds} s of CPU time"
        if gone.signal in (signal.SIGKILL, signal.SIGSEGV) and gone.peak_kib >= limits.memory_mb * 1024 // 2:
            return End.MEMORY, f"it used more than the {limits.memory_mb} MB of memory it may have"
        if gone.signal is not None:
            return End.SIGNAL, f"it was ended by signal {gone.signal} ({_name(gone.signal)})"
        if "MemoryError" in stderr.text()[-200:]:
            return End.MEMORY, f"it needed more than the {limits.memory_mb} MB of memory it may have"
        return End.FAILED, f"it ended with status {gone.code}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
