"""Code mode at length: every mode of the hostile scripts, and two hundred runs in a real prefork worker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.agent.code_mode.hostile.people import ROOT, run_scripts
from tests.support.code_worker import CONCURRENCY, SCRIPTS
from tests.support.redis_process import RedisProcess
from worker.queue import CeleryPublisher, make_app
from worker.record import DEFAULT
from worker.settings import Settings

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform != "linux", reason="nothing can be sealed here"),
]
RUNS = 200


@pytest.mark.parametrize("without_rights", [False, True], ids=["as we are", "without rights"])
@pytest.mark.parametrize("start", [(), ("--cold",)], ids=["fork server", "cold"])
@pytest.mark.parametrize("skip", [(), ("--skip", "landlock")], ids=["all layers", "no landlock"])
def test_hostile_scripts_in_every_mode(without_rights: bool, start: tuple[str, ...], skip: tuple[str, ...]) -> None:
    done = run_scripts(*start, *skip, without_rights=without_rights)
    if done is None:
        pytest.skip("no interpreter here that a user without rights can run")
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_hundred_runs_in_a_prefork_worker_leave_nothing_behind(redis_process: RedisProcess) -> None:
    redis_process.flush()
    publisher = CeleryPublisher(make_app(Settings(), redis_process.url))
    for number in range(RUNS):
        publisher.investigate(str(number), 1, DEFAULT)
    command = [sys.executable, "-m", "tests.support.code_worker", redis_process.url]
    worker = subprocess.Popen(command, cwd=ROOT)
    try:
        with redis.Redis.from_url(redis_process.url, decode_responses=True) as client:
            eventually(lambda: client.llen("done") >= RUNS or worker.poll() is not None)
            runs = [json.loads(text) for text in client.lrange("done", 0, -1)]
    finally:
        worker.terminate()
        worker.wait(30)
    assert len(runs) == RUNS
    for run in runs:
        assert_own(run)
    assert_steady(runs)
    servers = {run["server"] for run in runs} - {None}
    assert 1 <= len(servers) <= CONCURRENCY
    scripts = {int(run["text"].split()[1]) for run in runs if run["text"].startswith("pid ")}
    assert len(scripts) > RUNS * 0.8
    eventually(lambda: not [pid for pid in servers | scripts if ours(pid)], seconds=10)


def assert_own(run: dict[str, Any]) -> None:
    """It says its own number, and no other run's."""
    assert set(re.findall(r"number (\d+);", run["text"])) == {run["key"]}, run["text"][:2_000]


def assert_steady(runs: list[dict[str, Any]]) -> None:
    """Each pool child holds at the end what it held after its first runs."""
    by_worker: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        by_worker[run["worker"]].append(run)
    assert len(by_worker) == CONCURRENCY, "a pool child died"
    for of_one in by_worker.values():
        settled = of_one[len(SCRIPTS) :]
        for what in ("descriptors", "threads"):
            held = [run[what] for run in settled]
            # Threads of the last bridge may still be on their way out, so not each count; a leak is in all of them.
            assert min(held[-5:]) <= min(held[:10]) + 1, (what, held)


def ours(pid: int) -> bool:
    """Whether that process is one of code mode's."""
    try:
        return b"code_mode" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def eventually(holds: Callable[[], object], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.1)
