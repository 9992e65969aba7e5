"""What every test gets: no network but loopback, and a Redis server of its own where it asks for one."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support.redis_process import RedisProcess

# The default suite gives the same verdict each time; a search for new faults (ROOTCAUSED_EXAMPLES) is random.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
if not os.environ.get("ROOTCAUSED_EXAMPLES"):
    hypothesis.settings.load_profile("repeatable")

LOCAL_NAMES = ("localhost", "", None)


def _local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if host in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def _refuse_foreign_addresses(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook sees every connect and look-up of this process, whichever library makes it."""
    if event in ("socket.connect", "socket.sendto"):
        address = args[1]
        if isinstance(address, tuple) and not _local(address[0]):
            raise RuntimeError(f"a test tried to reach {address[0]}")
    elif event == "socket.getaddrinfo" and not _local(args[0]):
        raise RuntimeError(f"a test tried to look up {args[0]!r}")


sys.addaudithook(_refuse_foreign_addresses)


@pytest.fixture(scope="session")
def redis_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A real redis-server on a unix socket, one a test process."""
    with RedisProcess(Path(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
def redis_url(redis_process: RedisProcess) -> str:
    """The address of an empty database."""
    redis_process.flush()
    return redis_process.url
