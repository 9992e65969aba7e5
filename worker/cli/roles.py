"""`run`, `worker`, `schedule`, `serve`: the daemon's processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.options import ConfigFile, file_of, settings_of

if TYPE_CHECKING:
    from worker.cli.supervisor import Role
    from worker.settings import Settings

REDIS_LOOK_SECONDS = 5.0
REDIS_MISSES = 3

Parent = Annotated[int, typer.Option("--parent", hidden=True, help="End when this process ends.")]


class WorkerRole(StrEnum):
    INVESTIGATE = "investigate"
    IO = "io"


def run(config: ConfigFile = None) -> None:
    """Run everything in one process tree.

    Redis (unless redis.url is set), receiver, scheduler and workers. A process that dies is started again.
    SIGTERM ends all in order, within 25 seconds.
    """
    from worker.receiver import check_bind

    settings = settings_of(config)
    check_bind(settings.server)
    file = file_of(config)
    roles = [_role("serve", file), _role("schedule", file), *_workers(file)]
    with _redis(settings) as tend:
        status = _supervise(settings, roles, tend)
    raise typer.Exit(status)


def worker(
    config: ConfigFile = None,
    role: Annotated[
        WorkerRole | None,
        typer.Option("--role", help="Only investigations, or only polls and write-backs (io).", show_default=False),
    ] = None,
    parent: Parent = 0,
) -> None:
    """Consume the queues.

    One process tree for investigations and one for polls and write-backs, unless --role picks one of them."""
    settings = settings_of(config)
    if role is None:
        raise typer.Exit(_supervise(settings, _workers(file_of(config)), lambda: None))
    _start(settings, f"worker-{role}", parent)
    from worker.queue import run_worker

    raise typer.Exit(run_worker(settings, role=role.value))


def schedule(config: ConfigFile = None, parent: Parent = 0) -> None:
    """Tick polls and sweeps, and publish what is owed.

    Any number may run; one leads."""
    settings = settings_of(config)
    _start(settings, "schedule", parent)
    from worker.schedule import run as run_schedule

    raise typer.Exit(run_schedule(settings))


def serve(config: ConfigFile = None, parent: Parent = 0) -> None:
    """Receive webhooks and serve the API.

    On server.host and server.port of the configuration."""
    settings = settings_of(config)
    _start(settings, "serve", parent)
    from worker.receiver import serve as run_server

    raise typer.Exit(run_server(settings))


def _start(settings: Settings, role: str, parent: int) -> None:
    from worker import telemetry
    from worker.cli.supervisor import end_with

    telemetry.configure(settings, role=role)
    end_with(parent)


def _supervise(settings: Settings, roles: list[Role], tend: Callable[[], None]) -> int:
    import structlog

    from worker import telemetry
    from worker.cli.supervisor import Supervisor, stop_on_signals

    telemetry.configure(settings, role="run")
    stop = stop_on_signals()
    return Supervisor(roles, say=structlog.get_logger("rootcaused.run").info, tend=tend).run(stop)


def _workers(file: Path | None) -> list[Role]:
    return [_role("worker", file, role) for role in WorkerRole]


def _role(command: str, file: Path | None, role: WorkerRole | None = None) -> Role:
    """The same program again."""
    import os

    from worker.cli.supervisor import Role

    where = ["--config", str(file.absolute())] if file else []
    words = [command, *where, *(["--role", role.value] if role else []), "--parent", str(os.getpid())]
    name = f"{command}-{role}" if role else command
    return Role(name=name, command=[sys.executable, "-m", "worker.cli.main", *words])


@contextmanager
def _redis(settings: Settings) -> Iterator[Callable[[], None]]:
    """A server of our own for as long as the daemon runs, unless one is configured; gives what keeps it up."""
    if settings.redis.url is not None:
        yield lambda: None
        return
    from worker.redis_server import RedisServer

    with RedisServer(settings.state_dir) as server:
        yield _Watch(settings, server.stop, server.start)


class _Watch:
    """Starts the server again when it has not answered several looks in a row."""

    def __init__(self, settings: Settings, stop: Callable[[], None], start: Callable[[], None]) -> None:
        import time

        self._settings, self._stop, self._start, self._clock = settings, stop, start, time.monotonic
        self._next, self._misses = 0.0, 0

    def __call__(self) -> None:
        from agent.errors import ConfigError
        from worker.redis_server import address

        if self._clock() < self._next:
            return
        self._next = self._clock() + REDIS_LOOK_SECONDS
        try:
            address(self._settings)
            self._misses = 0
        except ConfigError:
            self._misses += 1
        if self._misses >= REDIS_MISSES:
            self._misses = 0
            self._stop()
            self._start()
