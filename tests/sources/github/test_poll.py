"""Issues from GitHub: polls of several repositories."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import Any

import pytest

from agent.alert import Severity, Status
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from sources.github.paging import MAX_PAGES
from sources.port import Page
from tests.support.github_api import NOW, TOKEN, as_pull_request, issue, label
from tests.support.http_server import Reply, Request

SOON = Deadline.never()
DAY = timedelta(days=1)
SHOP = "acme/shop"


def ids(pages) -> list[str]:
    return [alert.id for page in pages for alert in page.alerts]


def many(count: int, before: timedelta = timedelta(0)) -> list[dict[str, Any]]:
    """Open issues, a second apart, oldest first."""
    return [issue(n + 1, age=before + timedelta(seconds=count - n + 1)) for n in range(count)]


def names(count: int) -> set[str]:
    return {f"acme/shop#{n + 1}" for n in range(count)}


def cursor(at: str = "2031-02-03T11:50:00Z", repository: str = SHOP) -> str:
    return json.dumps({repository: at})


def poll_all(github, start: str = "") -> tuple[list[Page], RootcausedError | None]:
    """What came, and what was raised after it."""
    pages: list[Page] = []
    try:
        pages.extend(github.poll(start, deadline=SOON))
    except RootcausedError as error:
        return pages, error
    return pages, None


@pytest.mark.parametrize("inclusive", [True, False], ids=["since includes its second", "it does not"])
@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 260])
def test_all_open_issues_are_seen_once(api, github, count, inclusive) -> None:
    api.since_inclusive = inclusive
    api.issues[SHOP] = many(count)
    seen = ids(github.poll("", deadline=SOON))
    assert len(seen) == count
    assert set(seen) == names(count)


@pytest.mark.parametrize("count", [100, 250])
@pytest.mark.parametrize("inclusive", [True, False])
def test_more_issues_of_one_second_than_fit_a_page_are_paged_on(api, github, count, inclusive) -> None:
    api.since_inclusive = inclusive
    same = [issue(n + 1, age=timedelta(minutes=9)) for n in range(count)]
    later = [issue(count + n + 1, age=timedelta(minutes=9) - timedelta(seconds=1)) for n in range(150)]
    api.issues[SHOP] = same + later
    assert set(ids(github.poll("", deadline=SOON))) == names(count + 150)


def test_an_issue_open_for_years_is_seen(api, github) -> None:
    api.issues[SHOP] = [issue(7, age=800 * DAY)]
    assert ids(github.poll(cursor(), deadline=SOON)) == ["acme/shop#7"]


def test_what_opened_and_closed_between_two_polls_is_seen_as_resolved(api, github) -> None:
    api.issues[SHOP] = [issue(7, state="closed", closed_at="2031-02-03T11:55:00Z")]
    (seen,) = [a for page in github.poll(cursor(), deadline=SOON) for a in page.alerts]
    assert (seen.id, seen.status) == ("acme/shop#7", Status.RESOLVED)
    assert seen.ends_at == NOW - timedelta(minutes=5)


def test_the_first_poll_looks_back_for_closed_ones_only_as_far_as_configured(api, server, source) -> None:
    api.issues[SHOP] = [issue(1, age=timedelta(hours=1), state="closed"), issue(2, age=DAY, state="closed")]
    assert ids(source(server.url, lookback_seconds=7_200).poll("", deadline=SOON)) == ["acme/shop#1"]


def test_only_issues_with_all_labels_are_asked_for(api, server, source) -> None:
    api.issues[SHOP] = [issue(1, labels=["Alert", "prod"]), issue(2, labels=["alert"]), issue(3, labels=[])]
    assert ids(source(server.url, labels=["alert", "prod"]).poll("", deadline=SOON)) == ["acme/shop#1"]
    first, recent = server.asked("GET", "/issues")
    assert first.query == {
        "state": ["open"],
        "labels": ["alert,prod"],
        "sort": ["updated"],
        "direction": ["asc"],
        "per_page": ["100"],
    }
    assert (recent.query["state"], recent.query["since"]) == (["all"], ["2031-02-03T10:50:00Z"])


def test_pull_requests_are_left_out(api, github) -> None:
    api.issues[SHOP] = [as_pull_request(found) for found in many(150)] + [issue(500, age=timedelta(0))]
    assert ids(github.poll("", deadline=SOON)) == ["acme/shop#500"]


def test_the_cursor_is_the_last_update_of_the_servers_data_less_an_overlap(api, server, github) -> None:
    api.issues[SHOP] = [issue(1, age=timedelta(minutes=5)), issue(2, age=timedelta(minutes=7))]
    pages = list(github.poll("", deadline=SOON))
    assert json.loads(pages[-1].cursor) == {SHOP: "2031-02-03T11:55:00Z"}
    assert {page.cursor for page in pages[:-1]} == {""}
    list(github.poll(pages[-1].cursor, deadline=SOON))
    assert server.asked("GET", "/issues")[-1].query["since"] == ["2031-02-03T11:45:00Z"]


def test_the_cursor_never_goes_back_and_without_issues_is_the_servers_time(api, github) -> None:
    assert json.loads(list(github.poll("", deadline=SOON))[-1].cursor) == {SHOP: "2031-02-03T12:00:00Z"}
    api.issues[SHOP] = [issue(1, age=DAY)]
    assert json.loads(list(github.poll(cursor(), deadline=SOON))[-1].cursor) == {SHOP: "2031-02-03T11:50:00Z"}


def test_without_a_date_header_the_window_starts_at_the_newest_issue(api, server, github) -> None:
    api.date = False
    api.issues[SHOP] = [issue(1)]
    api.after = lambda request, reply: Reply(reply.status, reply.body, {"Date": None})
    assert json.loads(list(github.poll("", deadline=SOON))[-1].cursor) == {SHOP: "2031-02-03T11:55:00Z"}
    assert server.asked("GET", "/issues")[-1].query["since"] == ["2031-02-03T10:45:00Z"]


@pytest.mark.parametrize("text", ["rubbish", "2031-02-03T11:50:00Z", "[]", '{"acme/shop": 3}', '{"acme/shop": "x"}'])
def test_an_unreadable_cursor_starts_afresh(api, github, text) -> None:
    api.issues[SHOP] = [issue(1)]
    pages = list(github.poll(text, deadline=SOON))
    assert ids(pages) == ["acme/shop#1"]
    assert json.loads(pages[-1].cursor) == {SHOP: "2031-02-03T11:55:00Z"}


def test_our_own_comment_changes_neither_key_nor_state(api, github) -> None:
    api.issues[SHOP] = [issue(1)]
    (before,) = [a for page in github.poll("", deadline=SOON) for a in page.alerts]
    api.comment(1, "<!-- rootcaused:v1:abc -->", api.me)
    (after,) = [a for page in github.poll("", deadline=SOON) for a in page.alerts]
    assert after.updated_at > before.updated_at
    ignored = {"updated_at", "raw"}
    assert after.model_dump(exclude=ignored) == before.model_dump(exclude=ignored)


@pytest.mark.parametrize("stale", [False, True])
def test_issues_that_change_while_we_page_push_none_past_us(api, github, stale) -> None:
    api.sorted_by_stale_times = stale
    api.issues[SHOP] = many(350, before=10 * DAY)  # so long ago that no window of recent changes makes up for it
    numbers = iter(range(1, 200, 3))

    def touch(request: Request, reply: Reply) -> Reply:
        for number in itertools.islice(numbers, 7):
            api.change(number, title="touched")
        if request.path.endswith("/issues") and reply.body:
            api.change(reply.body[-1]["number"], title="touched")
        return reply

    api.after = touch
    assert set(ids(github.poll("", deadline=SOON))) == names(350)


def test_an_issue_that_closes_while_we_read_comes_a_second_time_as_closed(api, github) -> None:
    api.issues[SHOP] = [issue(1)]
    closing = iter([1])

    def close(request: Request, reply: Reply) -> Reply:
        for number in closing:
            api.change(number, state="closed")
        return reply

    api.after = close
    seen = [a.status for page in github.poll("", deadline=SOON) for a in page.alerts]
    assert seen == [Status.OPEN, Status.RESOLVED]


def answers(*replies: Reply):
    left = list(replies)

    def answer(request: Request) -> Reply | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


NEXT = {"Link": '<https://api.github.com/repositories/1/issues?page=2>; rel="next"'}


@pytest.mark.parametrize("second", [Reply(200, [], NEXT), None], ids=["empty page with next", "repeated page"])
def test_a_list_that_goes_nowhere_ends_after_what_could_be_read(api, github, second) -> None:
    first = Reply(200, [issue(n + 1) for n in range(100)], NEXT)
    api.before = answers(first, first, second or first)
    pages, error = poll_all(github)
    assert isinstance(error, Transient)
    assert "nothing further comes" in str(error)
    assert len(ids(pages)) == 100
    assert "acme/shop" not in pages[-1].cursor


def test_a_list_without_an_end_stops_at_the_page_cap(api, server, github) -> None:
    ages = itertools.count(10_000_000, -1)
    fresh = itertools.count(1)
    api.before = lambda request: Reply(200, [issue(next(fresh), age=timedelta(seconds=next(ages)))], NEXT)
    _, error = poll_all(github)
    assert isinstance(error, Transient)
    assert f"over {MAX_PAGES} pages" in str(error)
    assert len(server.requests) == MAX_PAGES


def test_a_short_page_is_not_the_last_one_when_a_next_is_named(api, github) -> None:
    api.per_page_cap = 30
    api.issues[SHOP] = many(100)
    assert set(ids(github.poll("", deadline=SOON))) == names(100)


@pytest.mark.parametrize("body", [b"<html>login</html>", b"", {}, {"items": []}, None, b'[{"id"'])
def test_a_success_with_rubbish_is_a_failed_poll(api, github, body) -> None:
    api.before = lambda request: Reply(200, body if body is not None else b"null")
    _, error = poll_all(github)
    assert isinstance(error, Transient)


FORBIDDEN = {"message": "Resource not accessible by personal access token"}


@pytest.mark.parametrize(("reply", "kind", "said"), [
    (Reply(401, {"message": "Bad credentials"}), Permanent, "401: Bad credentials"),
    (Reply(403, FORBIDDEN), Permanent, "not accessible"),
    (Reply(403, FORBIDDEN, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}), Permanent, "not accessible"),
    (Reply(404, {"message": "Not Found"}), Permanent, "404: Not Found"),
    (Reply(410, {"message": "Issues are disabled for this repo"}), Permanent, "410: Issues are disabled"),
    (Reply(422, {"message": "Validation Failed", "errors": [{"field": "since", "code": "invalid"}]}), Permanent,
     "since invalid"),
    (Reply(500), Transient, "500"),
    (Reply(502, b"<html>"), Transient, "502"),
    (Reply(cut="before"), Transient, ""),
    (Reply(200, [], cut="body"), Transient, ""),
    (Reply(302, headers={"Location": "https://x.example/?token=1"}), Permanent, "redirected to https://x.example/"),
])  # fmt: skip
def test_a_poll_fails_by_who_must_act_and_without_a_secret(api, github, reply, kind, said) -> None:
    api.before = lambda request: reply
    _, error = poll_all(github)
    assert type(error).__mro__[1 if kind is not type(error) else 0] is kind
    assert said in str(error)
    assert TOKEN not in str(error)


RESET = {"X-RateLimit-Reset": str(int(NOW.timestamp()) + 90)}


@pytest.mark.parametrize(("reply", "wait"), [
    (Reply(403, {"message": "You have exceeded a secondary rate limit."}), 60),
    (Reply(403, {"message": "You have triggered an abuse detection mechanism"}), 60),
    (Reply(403, {"message": "API rate limit exceeded"}, {"X-RateLimit-Remaining": "0", **RESET}), 90),
    (Reply(403, {"message": "no"}, {"X-RateLimit-Remaining": "0", **RESET}), 90),
    (Reply(403, {"message": "slow down"}, {"Retry-After": "41", "X-RateLimit-Remaining": "0"}), 41),
    (Reply(429, {"message": "slow down"}, {"X-RateLimit-Remaining": "0", **RESET}), 90),
    (Reply(429, b""), 60),
    (Reply(403, {"message": "rate limit"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}), 60),
    (Reply(403, {"message": "rate limit"}, {"X-RateLimit-Remaining": "7", **RESET}), 60),
])  # fmt: skip
def test_a_rate_limit_is_waited_out_by_githubs_own_clock(api, server, time, github, reply, wait) -> None:
    dated = Reply(reply.status, reply.body, {"Date": "Mon, 03 Feb 2031 12:00:00 GMT", **reply.headers})
    api.before = lambda request: dated
    _, error = poll_all(github)
    assert isinstance(error, Transient)
    assert error.retry_after == wait
    assert len(server.requests) == 1
    api.before = lambda request: None
    time.seconds += wait - 10
    _, early = poll_all(github)
    assert isinstance(early, Transient)
    assert (early.retry_after, len(server.requests)) == (10, 1)
    time.seconds += 10
    assert poll_all(github)[1] is None


def test_a_limit_on_the_search_keeps_no_list_from_being_read(api, server, source) -> None:
    github = source(server.url, search="label:other")
    api.issues[SHOP] = [issue(1)]
    api.before = lambda request: Reply(429, headers={"Retry-After": "50"}) if "search" in request.path else None
    for _ in range(2):
        pages, error = poll_all(github)
        assert ids(pages) == ["acme/shop#1"]
        assert isinstance(error, Transient)
    assert len(server.asked("GET", "/search/issues")) == 1


TWO = {"repositories": ["acme/gone", SHOP]}


@pytest.mark.parametrize("first", [Reply(404, {"message": "Not Found"}), Reply(500), Reply(200, b"<html>")])
def test_a_repository_that_fails_costs_no_other_and_keeps_its_place(api, server, source, first) -> None:
    api.issues[SHOP] = [issue(1)]
    api.before = lambda request: first if "/acme/gone" in request.path else None
    pages, error = poll_all(source(server.url, **TWO), cursor("2031-02-01T00:00:00Z", "acme/gone"))
    assert ids(pages) == ["acme/shop#1"]
    assert "acme/gone" in str(error)
    assert json.loads(pages[-1].cursor) == {"acme/gone": "2031-02-01T00:00:00Z", SHOP: "2031-02-03T11:55:00Z"}


def test_several_faults_are_one_error_worth_another_try_if_one_is(api, server, source) -> None:
    api.before = lambda request: (
        Reply(404, {"message": "Not Found"})
        if "/acme/gone" in request.path
        else Reply(503, headers={"Retry-After": "9"})
    )
    _, error = poll_all(source(server.url, **TWO))
    assert isinstance(error, Transient)
    assert error.retry_after == 9
    assert "404" in str(error)
    assert "503" in str(error)
    api.before = lambda request: Reply(404, {"message": "Not Found"})
    assert isinstance(poll_all(source(server.url, **TWO))[1], Permanent)


def test_a_repository_that_moved_is_an_error_with_its_new_name(api, server, source) -> None:
    api.renamed = {"acme/gone": (33, "Acme/New-Shop")}
    _, error = poll_all(source(server.url, **TWO))
    assert isinstance(error, Permanent)
    assert "it is Acme/New-Shop now: change `repositories`" in str(error)
    assert server.asked("GET", "/repositories/33")


@pytest.mark.parametrize("location", [
    "https://evil.example/repositories/33", "http://127.0.0.1:1/repositories/33", "//evil.example/repositories/33",
    "HERE/../secrets", "HERE/repositories/x", "http://[", "HERE@evil.example/repositories/33",
])  # fmt: skip
def test_a_redirect_elsewhere_is_not_followed(api, server, github, location) -> None:
    api.before = lambda request: Reply(301, headers={"Location": location.replace("HERE", server.url)})
    _, error = poll_all(github)
    assert isinstance(error, Permanent)
    assert len(server.requests) == 1


@pytest.mark.parametrize("bad", [None, "text", 7, [], {}, {"number": None}, {"number": "7"}, {"number": 0}])
def test_one_broken_issue_costs_only_itself(api, github, bad) -> None:
    api.before = lambda request: Reply(200, [issue(1), bad, issue(2)])
    pages, error = poll_all(github)
    assert error is None
    assert ids(pages) == ["acme/shop#1", "acme/shop#2"]
    assert [b.reason for page in pages for b in page.broken]
    assert pages[-1].cursor


def test_any_optional_field_may_be_null_or_missing(api, github) -> None:
    bare = dict.fromkeys(issue(1), None) | {"id": 1, "number": 1}
    odd = {"id": 2, "number": 2, "labels": "x", "user": 3, "assignees": [None], "title": 7, "created_at": 9}
    api.before = lambda request: Reply(200, [bare, odd])
    first, second = [a for page in poll_all(github)[0] for a in page.alerts]
    assert (first.title, first.body, first.severity, first.starts_at) == (
        "(untitled alert)",
        "",
        Severity.UNKNOWN,
        None,
    )
    assert second.status is Status.OPEN


def test_the_fields_of_an_issue(api, github) -> None:
    body = "Firing:\n\n- alertname = PoolEmpty\n * namespace = shop\nsize = 5"
    wanted = ["alert", "service:checkout", "priority/p1", "team=payments"]
    api.issues[SHOP] = [issue(7, body=body, labels=wanted, milestone={"title": "Q1"})]
    (seen,) = [a for page in github.poll("", deadline=SOON) for a in page.alerts]
    assert seen.key == "gh:acme/shop#7"
    assert seen.title == "checkout 7 is slow"
    assert seen.body == body
    assert seen.url == "https://github.com/acme/shop/issues/7"
    assert (seen.severity, seen.service) == (Severity.CRITICAL, "checkout")
    assert seen.fingerprint == "I_acme/shop_7"
    assert seen.starts_at == NOW - timedelta(minutes=5)
    assert seen.labels == {
        "alertname": "PoolEmpty",
        "namespace": "shop",
        "repository": SHOP,
        "github_labels": "alert, service:checkout, priority/p1, team=payments",
        "author": "ann",
        "milestone": "Q1",
        "service": "checkout",
        "priority": "p1",
        "team": "payments",
    }


def test_the_highest_severity_of_the_labels_counts(api, server, source) -> None:
    api.issues[SHOP] = [issue(1, labels=["alert", "low", "sev2"]), issue(2, labels=["alert", "page"])]
    seen = {a.id: a.severity for p in source(server.url, severities={"Page": "critical"}).poll("", deadline=SOON)
            for a in p.alerts}  # fmt: skip
    assert seen == {"acme/shop#1": Severity.ERROR, "acme/shop#2": Severity.CRITICAL}


def test_what_the_configured_search_finds_is_polled_too(api, server, source) -> None:
    api.issues[SHOP] = [issue(1), issue(2, labels=["incident"]), issue(3, labels=["incident"], state="closed")]
    github = source(server.url, search="label:incident")
    assert ids(github.poll("", deadline=SOON)) == ["acme/shop#1", "acme/shop#2"]
    alone = source(server.url, labels=(), search="label:incident")
    assert ids(alone.poll("", deadline=SOON)) == ["acme/shop#2"]


def test_an_incomplete_search_is_told_after_what_it_found(api, server, source) -> None:
    api.incomplete = True
    api.issues[SHOP] = [issue(2, labels=["incident"])]
    pages, error = poll_all(source(server.url, search="label:incident"))
    assert ids(pages) == ["acme/shop#2"]
    assert "incomplete_results" in str(error)


def test_an_enterprise_server_is_asked_below_its_prefix(api, server, source) -> None:
    api.prefix = "/api/v3"
    api.issues[SHOP] = [issue(1)]
    api.renamed = {"acme/gone": (33, "acme/new")}
    github = source(f"{server.url}/api/v3", **TWO)
    pages, error = poll_all(github)
    assert ids(pages) == ["acme/shop#1"]
    assert "acme/new now" in str(error)
    assert all(request.path.startswith("/api/v3/") for request in server.requests)


def test_each_request_carries_what_github_asks_for(server, github) -> None:
    poll_all(github)
    for request in server.requests:
        assert request.headers["accept"] == "application/vnd.github+json"
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        assert request.headers["x-github-api-version"] == "2022-11-28"
        assert request.headers["user-agent"] == "rootcaused"


def test_labels_may_be_plain_strings(api, github) -> None:
    api.before = lambda request: Reply(200, [issue(1) | {"labels": ["alert", label("p1"), None, {"name": None}]}])
    (seen,) = [a for page in poll_all(github)[0] for a in page.alerts]
    assert seen.severity is Severity.CRITICAL
