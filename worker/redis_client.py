"""The connection to Redis, with its errors converted at the border."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import redis
from redis.client import Pipeline
from redis.sentinel import Sentinel

from agent.errors import Transient
from worker.settings import RedisSettings

HEALTH_CHECK_SECONDS = 30
OUTAGES = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
)


@contextmanager
def _border() -> Iterator[None]:
    """An outage is `Transient`; a wrong type or a script error is a bug and passes through."""
    try:
        yield
    except OUTAGES as error:
        raise Transient(f"redis: {type(error).__name__}: {_without_address(error)}") from error
    except redis.ResponseError as error:
        # Inside a script the server reports "full" as a plain script error.
        if "OOM command not allowed" in str(error) or "maxmemory" in str(error):
            raise Transient("redis: out of memory (maxmemory reached)") from error
        raise


def _without_address(error: Exception) -> str:
    """The message without anything that looks like credentials in an address."""
    return re.sub(r"//[^@/\s]*@", "//", str(error))[:200]


class Client(redis.Redis):
    """redis-py's client; raises `Transient` where the server is away, full or a replica."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        with _border():
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # half typed

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Pipeline:
        return _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


class _Pipeline(Pipeline):
    def execute(self, raise_on_error: bool = True) -> list[Any]:
        with _border():
            return super().execute(raise_on_error)


def connect(url: str, settings: RedisSettings) -> Client:
    """A client for redis://, rediss://, unix:// (also redis+socket://) or sentinel://host:port,host:port/db.

    Nothing is sent until the first command. Time-outs are finite and dead connections are found by health checks.
    """
    options: dict[str, Any] = {
        "socket_timeout": settings.timeout_seconds,
        "socket_connect_timeout": min(5.0, settings.timeout_seconds),
        "health_check_interval": HEALTH_CHECK_SECONDS,
        "decode_responses": True,
    }
    if url.startswith("sentinel://"):
        return _by_sentinel(url, settings, options)
    return cast(Client, Client.from_url(url.replace("redis+socket://", "unix://"), **options))


def _by_sentinel(url: str, settings: RedisSettings, options: dict[str, Any]) -> Client:
    """`sentinel://:password@host:26379,host2:26379/0`; the password is the data server's."""
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    password = credentials.partition(":")[2] or None
    members = [(host.rpartition(":")[0], int(host.rpartition(":")[2])) for host in hosts.split(",")]
    asked = {"password": sentinel_password(settings), "socket_timeout": options["socket_timeout"]}
    sentinel = Sentinel(members, sentinel_kwargs=asked)
    database = int(parts.path.strip("/") or 0)
    return cast(
        Client,
        sentinel.master_for(settings.sentinel_master, redis_class=Client, password=password, db=database, **options),
    )


def sentinel_password(settings: RedisSettings) -> str | None:
    """What the sentinels themselves ask for, which need not be the data server's."""
    return settings.sentinel_password.get_secret_value() if settings.sentinel_password else None
