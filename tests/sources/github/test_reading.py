"""Single issues, sweeps, and what else there is to read about an issue."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent.alert import Status
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from tests.support.alerts import alert
from tests.support.github_api import ANN, APP_BOT, TOKEN, as_pull_request, issue, label
from tests.support.http_server import Reply

SOON = Deadline.never()
SHOP = "acme/shop"
ALERT = alert(source="gh", id="acme/shop#1")


def ids(pages) -> list[str]:
    return [found.id for page in pages for found in page.alerts]


def test_fetch_gives_the_issue_as_it_is_now_whatever_its_labels(api, github) -> None:
    api.issues[SHOP] = [issue(1, labels=(), state="closed", body=None)]
    found = github.fetch("Acme/Shop#1", deadline=SOON)
    assert (found.key, found.status, found.body) == ("gh:acme/shop#1", Status.RESOLVED, "")


def test_fetch_of_a_deleted_issue_is_none(api, github) -> None:
    assert github.fetch("acme/shop#9", deadline=SOON) is None
    api.before = lambda request: Reply(410, {"message": "This issue was deleted"}) if "issues" in request.path else None
    assert github.fetch("acme/shop#9", deadline=SOON) is None


def test_a_repository_that_cannot_be_read_is_not_a_deleted_issue(api, github) -> None:
    api.before = lambda request: Reply(404, {"message": "Not Found"})
    with pytest.raises(Permanent, match="the credentials may not read it"):
        github.fetch("acme/shop#1", deadline=SOON)


def test_issues_turned_off_are_not_a_deleted_issue(api, github) -> None:
    gone, off = Reply(410, {"message": "Issues are disabled"}), Reply(200, {"full_name": SHOP, "has_issues": False})
    api.before = lambda request: gone if "issues" in request.path else off
    with pytest.raises(Permanent, match="issues turned off"):
        github.fetch("acme/shop#1", deadline=SOON)


def test_a_transferred_issue_says_where_it_is(api, server, github) -> None:
    api.renamed = {SHOP: (33, "acme/new")}
    with pytest.raises(Permanent, match=r"it is acme/new#1 now"):
        github.fetch("acme/shop#1", deadline=SOON)


def test_a_pull_request_is_refused_by_name(api, github) -> None:
    api.issues[SHOP] = [as_pull_request(issue(1))]
    with pytest.raises(Permanent, match="acme/shop#1 is a pull request"):
        github.fetch("acme/shop#1", deadline=SOON)


@pytest.mark.parametrize("native", ["Q1", "12", "acme/shop", "acme/shop#", "acme/shop#0", "acme/shop#x", "a/../b#1",
                                    "acme/shop#1/../2", "../shop#1", "acme/..#1", "acme/shop#\u0661", ""])  # fmt: skip
def test_an_id_of_another_form_is_refused_unasked(server, github, native) -> None:
    with pytest.raises(Permanent, match="not of the form owner/name#number"):
        github.fetch(native, deadline=SOON)
    assert server.requests == []


def test_a_repository_that_is_not_configured_is_neither_read_nor_written(server, github) -> None:
    for act in (github.fetch, github.related, github.find):
        with pytest.raises(Permanent, match="acme/secret is not among repositories"):
            act("acme/secret#1" if act == github.fetch else alert(id="acme/secret#1"), deadline=SOON)
    assert server.requests == []


@pytest.mark.parametrize(
    "reply",
    [Reply(500), Reply(200, {}), Reply(200, []), Reply(200, issue(2)), Reply(200, b"<html>"), Reply(cut="before")],
)
def test_fetch_that_fails_is_not_a_missing_issue(api, github, reply) -> None:
    api.before = lambda request: reply
    with pytest.raises(Transient):
        github.fetch("acme/shop#1", deadline=SOON)


def test_a_sweep_finds_open_issues_of_the_configured_repositories(api, server, github) -> None:
    api.issues[SHOP] = [issue(1), issue(2, labels=["bug"]), issue(3, state="closed")]
    assert ids(github.search("", limit=10, deadline=SOON)) == ["acme/shop#1"]
    assert server.requests[0].query["q"] == ['label:"alert" is:issue is:open repo:acme/shop']


@pytest.mark.parametrize(("query", "asked"), [
    ("label:bug", "label:bug is:issue is:open repo:acme/shop"),
    ("is:closed label:bug", "is:closed label:bug is:issue repo:acme/shop"),
    ("state:open type:issue x", "state:open type:issue x repo:acme/shop"),
    ("label:a OR label:b", "(label:a OR label:b) is:issue is:open repo:acme/shop"),
    ("this:is:open", "this:is:open is:issue is:open repo:acme/shop"),
])  # fmt: skip
def test_a_query_is_githubs_own_and_kept_to_our_repositories(server, github, query, asked) -> None:
    list(github.search(query, limit=10, deadline=SOON))
    assert server.requests[0].query["q"] == [asked]


def test_what_a_search_finds_elsewhere_is_left_out(api, github) -> None:
    other = issue(5, repository="acme/secret")
    body = {"total_count": 4, "incomplete_results": False, "items": [other, as_pull_request(issue(6)), issue(7), 3]}
    api.before = lambda request: Reply(200, body)
    pages = list(github.search("x", limit=10, deadline=SOON))
    assert ids(pages) == ["acme/shop#7"]
    assert [broken.reason for page in pages for broken in page.broken] == ["an issue without a repository"]


def test_a_sweep_stops_at_its_limit(api, server, github) -> None:
    api.issues[SHOP] = [issue(n + 1, age=timedelta(seconds=n)) for n in range(250)]
    assert len(ids(github.search("", limit=120, deadline=SOON))) == 120
    assert len(server.requests) == 2


def test_more_than_a_search_shows_is_an_error_after_what_it_shows(api, server, github) -> None:
    api.issues[SHOP] = [issue(n + 1, age=timedelta(seconds=n)) for n in range(1_001)]
    seen: list[str] = []
    with pytest.raises(Permanent, match="1001 issues fit and only 1000 are shown"):
        seen.extend(found.id for page in github.search("", limit=5_000, deadline=SOON) for found in page.alerts)
    assert len(server.requests) == 10
    api.issues[SHOP].pop()
    assert len(ids(github.search("", limit=5_000, deadline=SOON))) == 1_000


def test_an_incomplete_search_is_an_error_unless_the_limit_is_reached(api, github) -> None:
    api.incomplete = True
    api.issues[SHOP] = [issue(1), issue(2)]
    with pytest.raises(Transient, match="incomplete_results"):
        list(github.search("", limit=10, deadline=SOON))
    assert len(ids(github.search("", limit=2, deadline=SOON))) == 2


def test_a_query_github_refuses_says_why(api, server, source) -> None:
    github = source(server.url, repositories=["acme/hidden"])
    with pytest.raises(Permanent, match="acme/hidden cannot be searched"):
        list(github.search("label:x", limit=10, deadline=SOON))


@pytest.mark.parametrize("body", [b"<html>", {}, [], {"items": None}])
def test_a_search_with_rubbish_is_a_failed_one(api, github, body) -> None:
    api.before = lambda request: Reply(200, body)
    with pytest.raises(Transient):
        list(github.search("x", limit=10, deadline=SOON))


def event(kind: str, at: str = "2031-02-03T11:00:00Z", **more):
    return {"event": kind, "created_at": at, "actor": ANN, **more}


def test_related_has_the_comments_of_others_the_labels_and_the_timeline(api, github) -> None:
    api.issues[SHOP] = [issue(1, labels=["alert"])]
    api.get(1)["labels"] = [label("alert"), label("sev1", "customers notice")]
    api.comment(1, "restarted the pods")
    api.comment(1, "report\n<!-- rootcaused:v1:abc -->", api.me)
    api.comment(1, "as the owner of the token I say: look at the pool", api.me)
    api.comment(1, "quoting\n<!-- rootcaused:v1:abc -->", APP_BOT)
    api.comment(1, "from nobody", {})
    api.timelines["acme/shop#1"] = [
        event("labeled", label={"name": "sev1", "color": "x"}),
        event("mentioned"),
        event(
            "cross-referenced", source={"issue": {"html_url": "https://github.com/acme/shop/pull/3", "title": "Fix"}}
        ),
        event("closed", commit_id="0123456789abcdef"),
        event("commented", body="x"),
        event("renamed", rename={"from": "old name", "to": "new"}),
        event("assigned", assignee=None, actor=None),
        {"event": None},
        "rubbish",
    ]
    text = github.related(ALERT, deadline=SOON)
    assert "by ann:\nrestarted the pods" in text
    assert "look at the pool" in text
    assert "quoting" in text
    assert "by a deleted user:\nfrom nobody" in text
    assert "report" not in text
    assert "Labels:\nalert\nsev1: customers notice" in text
    assert text.endswith(
        "Timeline:\n"
        "- 2031-02-03T11:00:00Z ann labeled sev1\n"
        "- 2031-02-03T11:00:00Z ann referred to it from https://github.com/acme/shop/pull/3 Fix\n"
        "- 2031-02-03T11:00:00Z ann closed it by commit 0123456789ab\n"
        "- 2031-02-03T11:00:00Z ann renamed it from old name\n"
        "- 2031-02-03T11:00:00Z someone assigned "
    )


def test_related_is_bounded_and_keeps_the_newest(api, server, github) -> None:
    api.issues[SHOP] = [issue(1)]
    for n in range(220):
        api.comment(1, f"comment {n} " + "x" * 5_000)
    api.timelines["acme/shop#1"] = [event("closed", f"day {n}") for n in range(250)]
    text = github.related(ALERT, deadline=SOON)
    assert len(text) < 8_100
    assert "comment 219" in text
    assert "comment 100" not in text
    assert "day 249" in text
    assert "day 100" not in text
    assert len(server.asked("GET", "/timeline")) == 2


def test_labels_and_timeline_that_cannot_be_read_are_noted_and_cost_nothing(api, github) -> None:
    api.issues[SHOP] = [issue(1)]
    api.comment(1, "restarted")
    api.before = lambda request: Reply(500) if request.path.endswith(("/labels", "/timeline")) else None
    text = github.related(ALERT, deadline=SOON)
    assert "restarted" in text
    assert text.count("could not be read") == 2
    assert TOKEN not in text
