"""Jira in memory behind a real server: both kinds, or Cloud alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sources.jira.source import Jira
from tests.support.http_server import HttpServer
from tests.support.jira_api import JiraApiFake, jira


@pytest.fixture(params=[True, False], ids=["cloud", "data center"])
def api(request: pytest.FixtureRequest) -> JiraApiFake:
    return JiraApiFake(cloud=request.param)


@pytest.fixture
def server(api: JiraApiFake) -> Iterator[HttpServer]:
    with HttpServer(api) as running:
        yield running


@pytest.fixture
def source(server: HttpServer, api: JiraApiFake) -> Jira:
    return jira(server.url, cloud=api.cloud)


@pytest.fixture
def cloud() -> JiraApiFake:
    return JiraApiFake()


@pytest.fixture
def cloud_server(cloud: JiraApiFake) -> Iterator[HttpServer]:
    with HttpServer(cloud) as running:
        yield running
