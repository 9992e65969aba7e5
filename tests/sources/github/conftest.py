"""A GitHub in memory behind real HTTP, and a source that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sources.github.config import GitHubConfig
from sources.github.source import GitHub
from tests.support.github_api import NOW, REPOSITORY, TOKEN, GitHubApiFake
from tests.support.http_server import HttpServer


@pytest.fixture
def api() -> GitHubApiFake:
    return GitHubApiFake()


@pytest.fixture(scope="session")
def running() -> Iterator[HttpServer]:
    with HttpServer(GitHubApiFake()) as server:
        yield server


@pytest.fixture
def server(running: HttpServer, api: GitHubApiFake) -> HttpServer:
    """One server for all tests, as starting one takes longer than most of them."""
    running.answer, running.requests = api, []
    return running


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def source(time: Time) -> Callable[..., GitHub]:
    def build(url: str, **options: Any) -> GitHub:
        fields = {"repositories": [REPOSITORY], "labels": ["alert"], "url": url, **options}
        if "app_id" not in fields:
            fields["token"] = TOKEN
        return GitHub("gh", GitHubConfig(**fields), clock=time, wall=NOW.timestamp, sleep=time.sleep)

    return build


@pytest.fixture
def github(server: HttpServer, source: Callable[..., GitHub]) -> GitHub:
    return source(server.url)
