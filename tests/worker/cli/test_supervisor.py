"""The supervisor with real child processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from worker.cli.exits import Status
from worker.cli.supervisor import FIRST_PAUSE_SECONDS, Role, Supervisor

READY = "open({path!r}, 'a').write('started\\n')"
IDLE = f"{READY}\nimport time\ntime.sleep(60)"
STUBBORN = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{IDLE}"
ORDERLY = (
    "import signal, sys, time\n"
    "def leave(*_): open({path!r}, 'a').write('ended\\n'); sys.exit(0)\n"
    f"signal.signal(signal.SIGTERM, leave)\n{IDLE}"
)
WITH_CHILD = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    f"open({{path!r}} + '.child', 'w').write(str(child.pid))\n{IDLE}"
)


def role(name: str, program: str, path: Path) -> Role:
    command = [sys.executable, "-S", "-c", program.format(path=str(path))]
    return Role(name=name, command=command)


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline, "not within 15 s"
        time.sleep(0.01)


def said(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


class Run:
    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.stop = threading.Event()
        self.status: int | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        self.status = self.supervisor.run(self.stop)

    def end(self) -> int | None:
        self.stop.set()
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.status


@contextmanager
def supervised(*roles: Role, **options: Any) -> Iterator[tuple[Run, list[dict[str, Any]]]]:
    told: list[dict[str, Any]] = []
    run = Run(Supervisor(roles, say=lambda event, **fields: told.append({"event": event, **fields}), **options))
    try:
        yield run, told
    finally:
        run.end()


def test_every_role_is_started_and_all_are_ended_in_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    roles = role("one", IDLE, one), role("two", ORDERLY, two)
    with supervised(*roles) as (run, told):
        eventually(lambda: said(one) and said(two))
        pids = run.supervisor.pids
        assert sorted(pids) == ["one", "two"]
        assert run.end() == Status.OK
    assert said(two) == ["started", "ended"]
    assert not any(alive(pid) for pid in pids.values())
    assert {entry["event"] for entry in told} == {"process_started"}


def test_a_child_that_dies_is_started_again_after_a_pause_that_grows(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "one"
    with supervised(role("one", READY, path), clock=lambda: now[0]) as (_, told):
        ends = lambda: [entry for entry in told if entry["event"] == "process_ended"]  # noqa: E731
        eventually(lambda: len(ends()) == 1)
        assert said(path) == ["started"]
        now[0] += FIRST_PAUSE_SECONDS + 0.01
        eventually(lambda: len(ends()) == 2)
        assert [entry["restart_seconds"] for entry in ends()] == [1.0, 2.0]


def test_a_child_killed_outright_is_started_again(tmp_path: Path) -> None:
    path = tmp_path / "one"
    now = [0.0]
    with supervised(role("one", IDLE, path), clock=lambda: now[0]) as (run, told):
        eventually(lambda: said(path))
        os.kill(run.supervisor.pids["one"], signal.SIGKILL)
        eventually(lambda: told[-1]["event"] == "process_ended")
        now[0] += FIRST_PAUSE_SECONDS + 0.01
        eventually(lambda: len(said(path)) == 2)


@pytest.mark.parametrize("status", [Status.USAGE, Status.CONFIGURATION])
def test_a_child_that_says_the_configuration_is_wrong_ends_all(tmp_path: Path, status: Status) -> None:
    path = tmp_path / "other"
    roles = role("bad", f"import sys; sys.exit({int(status)})", path), role("other", IDLE, path)
    with supervised(*roles) as (run, _):
        run.thread.join(15)
        assert run.status == status


def test_a_child_that_ignores_the_signal_is_killed_with_all_it_started(tmp_path: Path) -> None:
    stubborn, parent = tmp_path / "stubborn", tmp_path / "parent"
    roles = role("stubborn", STUBBORN, stubborn), role("parent", WITH_CHILD, parent)
    with supervised(*roles, stop_seconds=0.3) as (run, told):
        eventually(lambda: said(stubborn) and said(parent))
        pids = [*run.supervisor.pids.values(), int((tmp_path / "parent.child").read_text())]
        run.end()
    assert [entry["name"] for entry in told if entry["event"] == "process_killed"] == ["stubborn"]
    eventually(lambda: not any(alive(pid) for pid in pids))


def test_what_is_tended_is_called_at_every_look(tmp_path: Path) -> None:
    calls: list[int] = []
    with supervised(role("one", IDLE, tmp_path / "one"), tend=lambda: calls.append(1)):
        eventually(lambda: len(calls) >= 3)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel call is Linux's")
def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    child = (
        "import os, sys, time\n"
        "from worker.cli.supervisor import end_with\n"
        "end_with(int(sys.argv[1]))\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}, str(os.getpid())])\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as out:
        pid = int(out.readline())
        process.kill()
        process.wait(10)
        eventually(lambda: not alive(pid))
