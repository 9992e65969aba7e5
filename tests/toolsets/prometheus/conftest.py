"""One stand-in server a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.prom_server import ApiServer, api_server


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server() as api:
        yield api
