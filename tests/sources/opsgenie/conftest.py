"""Both sources, each against its own stand-in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sources.opsgenie.source import OpsAlerts
from tests.support.http_server import HttpServer
from tests.support.opsgenie_sources import KINDS, Kind


@pytest.fixture(params=KINDS, ids=repr)
def kind(request) -> Kind:
    chosen: Kind = request.param
    return chosen


@pytest.fixture
def api(kind: Kind):
    return kind.api()


@pytest.fixture
def server(api) -> Iterator[HttpServer]:
    with HttpServer(api) as running:
        yield running


@pytest.fixture
def source(kind: Kind, server: HttpServer) -> OpsAlerts:
    return kind.build(server.url)
