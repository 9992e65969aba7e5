"""Options that several commands take, and what they are turned into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import Transient
from worker.cli.exits import RedisAway

if TYPE_CHECKING:
    from worker.front import Front
    from worker.settings import Settings

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The configuration file; else $ROOTCAUSED_CONFIG, ./rootcaused.yaml, /etc/rootcaused/config.yaml.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")]
Since = Annotated[
    str, typer.Option("--since", help="Changed since: 90m, 24h, 7d, or a date or time.", show_default=False)
]


def file_of(config: Path | None) -> Path | None:
    """The configuration file in use. Raises `ConfigError`."""
    from worker.config import environment, find

    return find(config, environment())


def settings_of(config: Path | None) -> Settings:
    """The settings, for a process of the daemon. Raises `ConfigError`."""
    from worker.config import environment, load

    return load(config, environment())


def settings_for_people(config: Path | None) -> Settings:
    """The settings, for a command that a person waits for: of the log, only warnings show. Raises `ConfigError`."""
    from worker import telemetry

    settings = settings_of(config)
    log = settings.log.model_copy(update={"level": "warning", "format": "console"})
    telemetry.configure(settings.model_copy(update={"log": log}))
    return settings


def front_of(settings: Settings) -> Front:
    """Connected to a Redis that answers. Raises `ConfigError`, `RedisAway`."""
    from worker.redis_server import NotRunning
    from worker.wiring import build_front, redis_url

    try:
        url = redis_url(settings)
    except NotRunning as error:
        raise RedisAway(str(error.args[0])) from error
    front = build_front(settings, url)
    try:
        front.store.ping()
    except Transient as error:
        raise RedisAway(f"Redis can't be reached: {error}; check redis.url, and that the server runs") from error
    return front
