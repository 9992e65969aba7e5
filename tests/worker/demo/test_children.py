"""Child processes of the demo end with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agent.errors import ConfigError
from worker.demo.children import Child, descendants, ended_by_sigterm

READY = "print('ready', flush=True);"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
WITH_CHILD = (
    "import subprocess, sys; sleep = [sys.executable, '-c', 'import time; time.sleep(60)'];"
    "p = subprocess.Popen(sleep, start_new_session=True);"
    "print(p.pid, flush=True);"
)
WAIT = "import time; time.sleep(60)"


def child(folder, code, **more):
    return Child("the child", ["-c", code], folder=folder, log=folder / "child.log", piped=True, **more)


def gone(pid):
    """Whether there is no such process any more (a zombie of somebody else's is gone too)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_the_first_line_is_handed_over(tmp_path):
    one = child(tmp_path, READY + WAIT)
    try:
        assert one.first_line(20) == "ready\n"
        assert one.alive
    finally:
        one.stop()
    assert not one.alive


def test_a_child_that_ends_without_a_word_is_reported_with_its_log(tmp_path):
    one = child(tmp_path, "import sys; sys.exit('no such thing')")
    try:
        with pytest.raises(ConfigError, match="no such thing"):
            one.first_line(20)
    finally:
        one.stop()


def test_what_a_child_left_behind_is_ended_too(tmp_path):
    one = child(tmp_path, WITH_CHILD + WAIT)
    grandchild = int(one.first_line(20))
    assert grandchild in descendants(one.pid)
    one.stop()
    assert gone(grandchild)


def test_a_child_that_ignores_the_signal_is_ended_by_force(tmp_path):
    one = child(tmp_path, STUBBORN + READY + WAIT, stop_seconds=0.1)
    one.first_line(20)
    one.stop()
    assert not one.alive


def test_a_child_that_has_ended_can_be_stopped(tmp_path):
    one = child(tmp_path, READY)
    one.first_line(20)
    one.stop()
    one.stop()
    assert not one.alive


def test_the_tail_is_the_end_of_the_log(tmp_path):
    one = child(tmp_path, f"import sys; [print(i, file=sys.stderr) for i in range(100)]; {READY}")
    one.first_line(20)
    one.stop()
    assert one.tail().splitlines()[-1] == "99"
    assert len(one.tail().splitlines()) == 40


def terminate_and_note(seen):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        seen.append("finally")


def test_sigterm_runs_what_stands_in_finally():
    seen: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left, ended_by_sigterm():
        terminate_and_note(seen)
    assert (left.value.code, seen) == (128 + signal.SIGTERM, ["finally"])
    assert signal.getsignal(signal.SIGTERM) == before


def test_descendants_of_nothing_are_none():
    assert descendants(2**22 + 1) == {}
