from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.support.alerts import alert
from tests.support.redis_process import executable
from worker.queue import CeleryPublisher, make_app
from worker.record import DEFAULT
from worker.redis_client import connect
from worker.settings import RedisSettings, Settings
from worker.store import Store

PASSWORD = "hunter2x"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Watched:
    """A password-protected server and the sentinel that knows it as `main`."""

    port: int
    sentinel_port: int

    @property
    def url(self) -> str:
        return f"sentinel://:{PASSWORD}@127.0.0.1:{self.sentinel_port}/0"


@contextlib.contextmanager
def running(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    port, sentinel_port = free_port(), free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {sentinel_port}\nbind 127.0.0.1\ndir {tmp_path}\n"
        f"sentinel monitor main 127.0.0.1 {port} 1\nsentinel auth-pass main {PASSWORD}\n"
    )
    data = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path), "--requirepass", PASSWORD)
    with running(executable(), *data), running(executable(), str(config), "--sentinel"):
        yield Watched(port, sentinel_port)


def settings() -> Settings:
    return Settings(redis=RedisSettings(sentinel_master="main", timeout_seconds=5))


def ready(url: str) -> Store:
    """The store once the sentinel answers for its server."""
    store = Store(connect(url, settings().redis))
    deadline = time.monotonic() + 10
    while True:
        try:
            store.ping()
        except Exception:  # noqa: BLE001 - whatever it says before it is up
            assert time.monotonic() < deadline, "the sentinel never answered"
            time.sleep(0.05)
        else:
            return store


def test_store_and_queue_find_their_server_by_sentinel(watched: Watched) -> None:
    store = ready(watched.url)
    assert store.admit(alert(), via="poll").queued
    CeleryPublisher(make_app(settings(), watched.url)).investigate("pd:Q1", 1, DEFAULT)
    with redis.Redis(port=watched.port, password=PASSWORD) as client:
        assert client.llen(DEFAULT) == 1
        assert client.exists("rootcaused:alert:pd:Q1")
