"""What tests of polls ask of the stand-in for Jira."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from sources.port import Page
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.jira_api import JiraApiFake


def ids(pages: Iterable[Page]) -> list[str]:
    return [found.id for page in pages for found in page.alerts]


def searches(server: HttpServer) -> list[Request]:
    return [request for request in server.requests if "/search" in request.path]


def asked(server: HttpServer) -> list[str]:
    """The JQL of every search."""
    return [r.json()["jql"] if r.method == "POST" else r.query["jql"][0] for r in searches(server)]


def many(api: JiraApiFake, count: int, **changes: Any) -> list[str]:
    return [api.add(age=timedelta(seconds=count - n + 1), **changes) for n in range(count)]


def on_search(reply: Callable[[], Reply]) -> Callable[[Request], Reply | None]:
    return lambda request: reply() if "/search" in request.path else None
