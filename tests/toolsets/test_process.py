from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.deadline import Deadline
from toolsets.process import Limits, Outcome, run

SOON = Limits(seconds=0.4)


def seconds_of(act: Callable[[], object]) -> float:
    started = time.monotonic()
    act()
    return time.monotonic() - started


def sh(script: str, limits: Limits = SOON, deadline_seconds: float = 10) -> Outcome:
    return run(["/bin/sh", "-c", script], deadline=Deadline.after(deadline_seconds), limits=limits)


def ends(pid: int) -> bool:
    """Whether it ends within two seconds. A killed orphan may stay as a zombie where nothing reaps it."""
    until = Deadline.after(2)
    while not until.passed:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in ("Z", "X"):
            return True
    return False


def test_output_and_error_come_back_in_order_with_the_exit_code() -> None:
    outcome = sh("echo one; echo two >&2; exit 3")
    assert (outcome.output, outcome.code, outcome.ended) == ("one\ntwo\n", 3, "")


def test_a_program_that_runs_too_long_is_killed_and_its_output_so_far_kept() -> None:
    outcome = sh("echo started; sleep 60")
    assert outcome.code is None
    assert outcome.output == "started\n"
    assert outcome.ended.startswith("stopped after 0.4")


def test_the_deadline_of_the_call_is_kept_when_it_is_sooner() -> None:
    assert seconds_of(lambda: sh("sleep 60", Limits(seconds=30), deadline_seconds=0.3)) < 2


def test_a_grandchild_that_holds_the_output_does_not_hold_us() -> None:
    outcome = None

    def act() -> None:
        nonlocal outcome
        outcome = sh("sleep 60 & echo $!; exit 0", Limits(seconds=30))

    assert seconds_of(act) < 3
    assert outcome is not None
    assert outcome.code == 0
    assert ends(int(outcome.output))


def test_a_grandchild_in_a_session_of_its_own_does_not_hold_us_either() -> None:
    assert seconds_of(lambda: sh("setsid sleep 3 & exit 0", Limits(seconds=30))) < 2


def test_the_whole_group_dies_at_the_time_limit() -> None:
    outcome = sh("sleep 60 & echo $!; sleep 60")
    assert ends(int(outcome.output))


def test_output_is_capped_while_it_streams() -> None:
    outcome = run(["yes"], deadline=Deadline.after(10), limits=Limits(seconds=10, output_bytes=5_000))
    assert len(outcome.output) == 5_000
    assert outcome.ended == "stopped after 5000 bytes of output"


def test_closing_the_output_does_not_let_it_live_on() -> None:
    assert seconds_of(lambda: sh("exec >&- 2>&-; sleep 60")) < 2


def test_the_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGERDUTY_TOKEN", "sk-test-ENV-77")
    output = run(["env"], deadline=Deadline.after(5), environment={"GIVEN": "yes"}).output
    names = {line.partition("=")[0] for line in output.splitlines()}
    assert "sk-test-ENV-77" not in output
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {
        "PATH",
        "LANG",
        "TZ",
        "PYTHONIOENCODING",
        "HOME",
        "TMPDIR",
        "GIVEN",
    }


def test_home_is_empty_and_gone_afterwards() -> None:
    home, count = sh('echo "$HOME"; ls -A "$HOME" | wc -l').output.split()
    assert count == "0"
    assert not Path(home).exists()


def test_standard_input_is_at_its_end() -> None:
    assert sh("read x; echo status $?").output == "status 1\n"


def test_bytes_that_are_not_utf8_are_replaced_and_nul_and_escapes_dropped() -> None:
    assert sh(r"printf 'a\377b\000c\033[31md'").output == "a�bc[31md"


def test_memory_is_limited() -> None:
    program = "x = bytearray(900_000_000); print(len(x))"
    outcome = run(
        [sys.executable, "-I", "-S", "-c", program],
        deadline=Deadline.after(10),
        limits=Limits(seconds=10, memory_mb=300),
    )
    assert outcome.code not in (0, None)
    assert "MemoryError" in outcome.output


def test_a_program_that_is_not_there_is_an_exit_code() -> None:
    assert run(["no-such-program-here"], deadline=Deadline.after(5)).code == 127
