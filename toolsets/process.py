"""A child process that can't outlive, outgrow or outwait its limits, whatever it starts itself."""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from agent.alert import clean
from agent.deadline import Deadline

TICK_SECONDS = 0.05
LINGER_SECONDS = 0.5  # how long output may go on after the child itself has ended
MAX_OPEN_FILES = 256
MAX_FILE_BLOCKS = 204_800  # of 512 bytes: 100 MB
DEFAULT_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONIOENCODING": "utf-8:backslashreplace",
}
# Limits are set by a shell that becomes the program: code between fork and exec (preexec_fn) can deadlock in a
# process with threads. A limit that can't be set is one the daemon itself is already under.
_LIMITED = (
    "ulimit -c 0 2>/dev/null; ulimit -n {files} 2>/dev/null; ulimit -f {blocks} 2>/dev/null; "
    'ulimit -t {cpu} 2>/dev/null; ulimit -v {kilobytes} 2>/dev/null; exec "$@"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    seconds: float = 30.0
    memory_mb: int = 1_024
    output_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How it went. `code` is None when we ended it; then `ended` says why. `output` is standard output and error."""

    code: int | None
    output: str
    ended: str = ""


def run(
    argv: Sequence[str],
    *,
    deadline: Deadline,
    limits: Limits = Limits(),
    environment: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stdin: IO[bytes] | None = None,
) -> Outcome:
    """Run `argv` (no shell looks at it) in a session of its own with standard input empty.

    Comes back within the sooner of `deadline` and `limits.seconds` plus about a second, also when a grandchild
    holds the output open. Raises `OSError` only when no process can be started at all.
    """
    until = deadline.within(limits.seconds)
    wrapper = _LIMITED.format(
        files=MAX_OPEN_FILES,
        blocks=MAX_FILE_BLOCKS,
        cpu=int(limits.seconds) + 1,
        kilobytes=limits.memory_mb * 1024,
    )
    with tempfile.TemporaryDirectory(prefix="rootcaused-", ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            ["/bin/sh", "-c", wrapper, "sh", *argv],
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd or home,
            env={**DEFAULT_ENVIRONMENT, **(environment or {}), "HOME": home, "TMPDIR": home},
            start_new_session=True,
        )
        try:
            output, ended = _read(process, until, limits)
        finally:
            code = _end(process)
    return Outcome(code=None if ended else code, output=_text(output), ended=ended)


def _read(process: subprocess.Popen[bytes], until: Deadline, limits: Limits) -> tuple[bytes, str]:
    """Output so far, and why reading stopped before its end ("" when it did not)."""
    assert process.stdout is not None
    started = until.clock()
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    output = bytearray()
    linger = Deadline.never()
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while not until.passed:
            if linger.passed:
                return bytes(output), ""  # the child has ended; something it started still holds the output
            if linger.at == math.inf and _exited(process):
                linger = until.within(LINGER_SECONDS)
            if not ready.select(min(TICK_SECONDS, until.remaining)):
                continue
            chunk = os.read(pipe, 65_536)
            if not chunk and _wait(process, until):
                return bytes(output), ""
            output += chunk[: limits.output_bytes - len(output)]
            if len(output) >= limits.output_bytes:
                return bytes(output), f"stopped after {limits.output_bytes} bytes of output"
    return bytes(output), f"stopped after {until.clock() - started:.1f} s"


def _wait(process: subprocess.Popen[bytes], until: Deadline) -> bool:
    """Whether a child that has closed its output also ends in time."""
    while not _exited(process):
        if until.passed:
            return False
        time.sleep(min(TICK_SECONDS, until.remaining))
    return True


def _exited(process: subprocess.Popen[bytes]) -> bool:
    """Without reaping it: until we do, its id (and so its group's) can't be given to another process."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: subprocess.Popen[bytes]) -> int:
    """Kill whatever is left of the group, then reap the child."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # only the zombie we are about to reap is left
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
    return process.wait()


def _text(output: bytes) -> str:
    return clean(output.decode("utf-8", "replace"))
