from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from agent.errors import Transient
from tests.support.redis_process import RedisProcess
from worker.queue import CeleryPublisher, make_app
from worker.record import CRITICAL, DEFAULT, SWEEP
from worker.settings import Limits, RedisSettings, Settings

ROOT = Path(__file__).parents[2]


def eventually(holds: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with RedisProcess(Path(tmp_path_factory.mktemp("queue"))) as server:
        yield server


@pytest.fixture(scope="module")
def worker(own_redis: RedisProcess) -> Iterator[subprocess.Popen[bytes]]:
    """Two children, started after a sweep's backlog and one page were published."""
    publisher = CeleryPublisher(make_app(Settings(), own_redis.url))
    for number in range(6):
        publisher.investigate(f"sweep{number}", 1, SWEEP)
    publisher.investigate("page", 1, CRITICAL)
    process = subprocess.Popen([sys.executable, "-m", "tests.support.queue_worker", own_redis.url], cwd=ROOT)
    yield process
    process.terminate()
    process.wait(30)


def test_a_page_goes_before_a_backlog(own_redis: RedisProcess, worker: subprocess.Popen[bytes]) -> None:
    with redis.Redis.from_url(own_redis.url, decode_responses=True) as client:
        eventually(lambda: client.llen("done") >= 7)
        assert "page" in client.lrange("done", 0, 1)  # first, or second beside it: there are two children
        client.delete("done")


def test_tasks_that_end_badly_cost_only_themselves(own_redis: RedisProcess, worker: subprocess.Popen[bytes]) -> None:
    publisher = CeleryPublisher(make_app(Settings(), own_redis.url))
    with redis.Redis.from_url(own_redis.url, decode_responses=True) as client:
        for key in ("memory", "exit", "interrupt", "unpicklable", "killed", "a", "b", "c"):
            publisher.investigate(key, 1, DEFAULT)
        eventually(lambda: set(client.lrange("done", 0, -1)) == {"killed", "a", "b", "c"})
        assert client.get("ran:killed") == "2"  # lost with its child, delivered again
        eventually(lambda: not client.hlen("unacked"))
        assert client.get("ran:memory") == "1"


def test_publishing_without_a_broker_ends_in_time_and_is_transient() -> None:
    settings = Settings(redis=RedisSettings(timeout_seconds=1))
    publisher = CeleryPublisher(make_app(settings, "redis://:hunter2x@127.0.0.1:1/0"))
    start = time.monotonic()
    with pytest.raises(Transient) as caught:
        publisher.write_back("pd:Q1", 1)
    assert time.monotonic() - start < 10
    assert "hunter2x" not in str(caught.value)


def test_a_message_that_outlives_its_task_is_refused_at_start_up() -> None:
    with pytest.raises(ValueError, match=r"hard_seconds .* must be less than limits.visibility_seconds"):
        Limits(hard_seconds=4_000)
    with pytest.raises(ValueError, match=r"soft_seconds .* must be less than limits.hard_seconds"):
        Limits(soft_seconds=1_320)
