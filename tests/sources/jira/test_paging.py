"""A search is read whole: page tokens on Cloud, offsets on Data Center."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from sources.jira.client import JiraApi
from sources.jira.config import JiraConfig
from sources.jira.paging import Walk
from sources.jira.source import Jira
from sources.port import Page
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.jira_api import EMAIL, TOKEN, JiraApiFake, jira
from tests.support.jira_polls import ids, many, on_search, searches

SOON = Deadline.never()


@pytest.mark.scale
def test_five_thousand_issues_are_read_whole_in_fifty_calls(cloud: JiraApiFake, cloud_server: HttpServer) -> None:
    added = many(cloud, 5_000)
    assert ids(jira(cloud_server.url).poll("", deadline=SOON)) == added
    assert len(searches(cloud_server)) == 50
    assert len(cloud_server.requests) == 52  # which Jira, who are we


def test_pages_overlap_by_ten_where_they_are_read_by_offset(server: HttpServer, api: JiraApiFake, source: Jira) -> None:
    added = many(api, 900)
    assert ids(source.poll("", deadline=SOON)) == added
    assert len(searches(server)) == (9 if api.cloud else 10)


@pytest.mark.parametrize("gone", [3, 60])
def test_issues_that_are_closed_while_we_page_push_none_past_us(api: JiraApiFake, source: Jira, gone: int) -> None:
    added = many(api, 250)
    pages = 0

    def close_some(request: Request, reply: Reply) -> Reply:
        nonlocal pages
        if "/search" in request.path:
            pages += 1
            if pages == 1:
                for native in added[:gone]:
                    api.change(native, statuscategory="done")
        return reply

    api.after = close_some
    seen = ids(source.search('project = "OPS" AND statusCategory != Done', limit=1_000, deadline=SOON))
    assert sorted(seen) == added


def test_a_list_that_keeps_shrinking_ends_with_an_error(cloud: JiraApiFake) -> None:
    api = JiraApiFake(cloud=False)
    page = iter(range(10_000_000))
    api.before = on_search(
        lambda: Reply(200, {"total": 900, "issues": [{"id": str(next(page)), "fields": {}} for _ in range(100)]})
    )
    with HttpServer(api) as server, pytest.raises(Transient, match="faster than it can be read"):
        list(jira(server.url, cloud=False).poll("", deadline=SOON))
    assert len(searches(server)) < 20


def token_pages(*pages: tuple[list[str], str | None]) -> Callable[[], Reply]:
    left = list(pages)

    def reply() -> Reply:
        natives, token = left.pop(0) if len(left) > 1 else left[0]
        issues = [{"id": native, "key": f"OPS-{native}", "fields": {"summary": native}} for native in natives]
        return Reply(200, {"issues": issues, **({"nextPageToken": token} if token else {})})

    return reply


@pytest.mark.parametrize("pages", [
    [(["1"], "a"), (["2"], "a")],
    [(["1"], "a"), (["2"], "b"), (["3"], "a")],
    [(["1"], "a"), ([], "b"), ([], "c")],
    [(["1"], "a"), (["1"], "b"), (["1"], "c")],
], ids=["same token", "tokens in a ring", "empty pages", "same page"])  # fmt: skip
def test_token_paging_that_goes_nowhere_ends_after_what_could_be_read(cloud, cloud_server, pages) -> None:
    cloud.before = on_search(token_pages(*pages))
    seen: list[Page] = []
    with pytest.raises(Transient, match="jira search"):
        seen.extend(jira(cloud_server.url).poll("", deadline=SOON))
    assert ids(seen) == list(dict.fromkeys(native for natives, _ in pages for native in natives))
    assert all(not page.cursor for page in seen)
    assert len(searches(cloud_server)) == len(pages)


def test_one_empty_page_with_a_token_is_gone_past(cloud: JiraApiFake, cloud_server: HttpServer) -> None:
    cloud.before = on_search(token_pages((["1"], "a"), ([], "b"), (["2"], None)))
    pages = list(jira(cloud_server.url).poll("", deadline=SOON))
    assert ids(pages) == ["1", "2"]
    assert pages[-1].cursor


def test_the_last_page_is_the_last_even_with_a_token(cloud: JiraApiFake, cloud_server: HttpServer) -> None:
    cloud.before = on_search(lambda: Reply(200, {"issues": [], "isLast": True, "nextPageToken": "x"}))
    assert list(jira(cloud_server.url).poll("", deadline=SOON))[-1].cursor


def test_the_number_of_pages_is_bounded(cloud: JiraApiFake, cloud_server: HttpServer) -> None:
    counter = iter(range(10_000))

    def endless() -> Reply:
        native = str(next(counter))
        return Reply(200, {"issues": [{"id": native, "fields": {}}], "nextPageToken": native})

    cloud.before = on_search(endless)
    config = JiraConfig(url=cloud_server.url, projects="OPS", email=EMAIL, api_token=TOKEN)
    with pytest.raises(Transient, match="over 20 pages"):
        list(Walk(JiraApi(config), ["summary"], SOON, max_pages=20).run("project = OPS"))
    assert len(searches(cloud_server)) == 20


@pytest.mark.parametrize("times", [1, 2])
def test_an_expired_token_starts_the_walk_again_once(cloud: JiraApiFake, cloud_server: HttpServer, times: int) -> None:
    added = many(cloud, 150)
    left = [Reply(400, {"errorMessages": ["The provided next page token is invalid or expired."]})] * times

    def expire(request: Request) -> Reply | None:
        return left.pop() if left and request.path.endswith("/jql") and "nextPageToken" in request.json() else None

    cloud.before = expire
    seen: list[Page] = []
    if times == 1:
        seen.extend(jira(cloud_server.url).poll("", deadline=SOON))
        assert ids(seen) == added
    else:
        with pytest.raises(Permanent, match="token is invalid or expired"):
            seen.extend(jira(cloud_server.url).poll("", deadline=SOON))
        assert ids(seen) == added[:100]


@pytest.mark.parametrize("status", [404, 410])
def test_a_search_that_was_removed_says_what_to_check(api: JiraApiFake, source: Jira, status: int) -> None:
    api.before = on_search(lambda: Reply(status))
    with pytest.raises(Permanent, match="check url, and whether deployment should be"):
        list(source.poll("", deadline=SOON))
