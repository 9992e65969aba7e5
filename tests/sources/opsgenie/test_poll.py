"""Polls of OpsGenie and of JSM Operations: nothing lost, nothing twice, and an end to every list."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest

from agent.alert import Status
from agent.errors import Permanent, RootcausedError, Transient
from sources.opsgenie.client import OpsApi
from sources.opsgenie.config import OpsGenieConfig
from sources.opsgenie.paging import Walk
from sources.opsgenie.v2 import OpsGenieDialect
from sources.port import Page
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.opsgenie_api import API_KEY, API_TOKEN, NOW, OpsGenieApiFake, ops_alert
from tests.support.opsgenie_sources import KINDS, SOON, ids, lists, many, only, pages_of, queries

DAY = timedelta(days=1)
CURSOR = "2031-02-03T11:59:00Z"


def test_all_open_alerts_are_seen_once(api, source) -> None:
    api.alerts = many(260)
    assert sorted(ids(source.poll("", deadline=SOON))) == [f"A{n:05d}" for n in range(260)]


def test_an_alert_open_for_months_is_seen(api, source) -> None:
    api.alerts = [ops_alert("AOLD", age=400 * DAY)]
    assert ids(source.poll(CURSOR, deadline=SOON)) == ["AOLD"]


def test_what_opened_and_closed_between_two_polls_is_seen_as_resolved(api, source) -> None:
    api.alerts = [ops_alert("ASHORT", status="closed", report={"closeTime": 60_000})]
    seen = only(source.poll("2031-02-03T11:54:30Z", deadline=SOON))
    assert (seen.id, seen.status, seen.resolved) == ("ASHORT", Status.RESOLVED, True)
    assert seen.ends_at == NOW - timedelta(minutes=4)


def test_the_first_poll_looks_back_for_closed_ones_only_as_far_as_configured(api, server, kind) -> None:
    api.alerts = [
        ops_alert("A1H", age=timedelta(hours=1), status="closed"),
        ops_alert("A9H", age=timedelta(hours=9), status="closed"),
    ]
    assert ids(kind.build(server.url, lookback_seconds=7_200).poll("", deadline=SOON)) == ["A1H"]


def test_the_window_overlaps_the_last_poll(server, source, kind) -> None:
    list(source.poll("2031-02-03T11:50:00Z", deadline=SOON))
    since = int((NOW - timedelta(minutes=20)).timestamp() * 1000)
    assert queries(server, kind) == [f"createdAt >= {since}", "status:open"]
    assert lists(server, kind)[0].query["sort"] == ["createdAt"]
    assert lists(server, kind)[0].query["order"] == ["asc"]


def test_the_operators_query_holds_for_both_lists_and_no_or_reaches_out_of_it(api, server, kind) -> None:
    api.alerts = [
        ops_alert("A1", tags=["infra"]),
        ops_alert("A2", tags=["infra"], status="closed", age=9 * DAY),
        ops_alert("A3"),
    ]
    found = ids(kind.build(server.url, query="priority:P9 OR tag:infra").poll(CURSOR, deadline=SOON))
    assert found == ["A1"]
    assert "(priority:P9 OR tag:infra) AND createdAt >= " in queries(server, kind)[0]
    assert queries(server, kind)[1] == "status:open AND (priority:P9 OR tag:infra)"


def test_the_cursor_is_the_newest_alert_and_comes_with_the_last_page(api, source) -> None:
    api.alerts = many(120)
    cursors = [page.cursor for page in source.poll("", deadline=SOON)]
    assert cursors[-1] == "2031-02-03T11:59:58Z"
    assert set(cursors[:-1]) == {""}


def test_with_nothing_new_the_cursor_stays(source) -> None:
    assert list(source.poll("2031-02-03T11:50:00Z", deadline=SOON))[-1].cursor == "2031-02-03T11:50:00Z"


def test_a_first_poll_that_finds_nothing_starts_at_the_servers_time(source) -> None:
    assert list(source.poll("", deadline=SOON))[-1].cursor == "2031-02-03T12:00:00Z"


def test_a_creation_time_in_the_future_does_not_carry_the_cursor_past_the_servers_time(api, source) -> None:
    api.alerts = [ops_alert("A1", age=-DAY)]
    assert list(source.poll(CURSOR, deadline=SOON))[-1].cursor == "2031-02-03T12:00:00Z"


@pytest.mark.parametrize("cursor", ["rubbish", "2031-13-45"])
def test_an_unreadable_cursor_starts_afresh(api, source, cursor) -> None:
    api.alerts = [ops_alert("A1")]
    pages = list(source.poll(cursor, deadline=SOON))
    assert ids(pages) == ["A1"]
    assert pages[-1].cursor == "2031-02-03T11:55:00Z"


def test_without_a_date_header_the_cursor_comes_from_the_data(api, source) -> None:
    api.alerts = [ops_alert("A1")]
    api.after = lambda request, reply: Reply(reply.status, reply.body, {"Date": None})
    assert list(source.poll("", deadline=SOON))[-1].cursor == "2031-02-03T11:55:00Z"


def test_alerts_that_arrive_between_pages_push_none_past_us(api, source, kind) -> None:
    api.alerts = many(250)

    def three_arrive(request: Request, reply: Reply) -> Reply:
        if request.path == kind.alerts and len(api.alerts) == 250:
            api.alerts.extend(ops_alert(f"B{n}", age=timedelta(0)) for n in range(3))
        return reply

    api.after = three_arrive
    seen = ids(source.search("status:open", limit=1_000, deadline=SOON))
    assert sorted(seen) == [*(f"A{n:05d}" for n in range(250)), "B0", "B1", "B2"]


def test_alerts_that_close_while_we_page_push_none_past_us(api, source, kind) -> None:
    api.alerts = many(250)
    before = lambda: [one for one in api.alerts if one["status"] == "open"]  # noqa: E731

    def close_ninety(request: Request, reply: Reply) -> Reply:
        if request.path == kind.alerts:
            for gone in before()[:90]:
                gone["status"] = "closed"
        return reply

    api.after = close_ninety
    seen = ids(source.search("status:open", limit=1_000, deadline=SOON))
    still_open = {one["id"] for one in before()}
    assert len(seen) == len(set(seen))
    assert still_open <= set(seen)


def test_an_alert_listed_twice_comes_once(api, source) -> None:
    api.alerts = [ops_alert("A1"), ops_alert("A1")]
    assert ids(source.poll("", deadline=SOON)) == ["A1"]


def test_more_than_a_page_of_one_millisecond_is_read_by_offset(api, source) -> None:
    api.alerts = [ops_alert(f"A{n:05d}", age=timedelta(hours=1)) for n in range(350)] + many(20)
    seen = ids(source.search("", limit=1_000, deadline=SOON))
    assert len(seen) == len(set(seen)) == 350  # of the first twenty there are two each


def test_exactly_a_page_of_one_millisecond_is_the_end(api, source) -> None:
    api.alerts = [ops_alert(f"A{n:05d}", age=timedelta(hours=1)) for n in range(100)]
    assert len(ids(source.search("", limit=1_000, deadline=SOON))) == 100


def walk_of(server: HttpServer, last_offset: int = 20_000, **options: Any) -> Walk:
    config = OpsGenieConfig.model_validate({"api_key": API_KEY, "url": server.url})
    dialect = OpsGenieDialect(config, last_offset=last_offset)
    return Walk(OpsApi(dialect), dialect, SOON, **options)


def test_the_walk_stops_before_the_offset_limit() -> None:
    alerts = [ops_alert(f"A{n:05d}", age=timedelta(hours=1)) for n in range(400)]
    with HttpServer(OpsGenieApiFake(alerts=alerts)) as server, pytest.raises(Transient, match="can't tell apart"):
        list(walk_of(server, last_offset=300).run(""))


def test_a_server_that_sorts_the_other_way_is_read_whole_all_the_same(api, server, source, kind) -> None:
    api.alerts = many(250)

    def backwards(request: Request) -> Reply | None:
        if request.path == kind.alerts:
            request.query["order"] = ["desc"]
        return None

    api.before = backwards
    assert len(ids(source.search("", limit=1_000, deadline=SOON))) == 250


@pytest.mark.parametrize("second", [[], "same"], ids=["empty with a next link", "repeated"])
def test_a_list_that_goes_nowhere_ends_after_what_could_be_read(api, source, kind, second) -> None:
    first = many(100)
    api.before = pages_of(kind, (first, True), (first if second == "same" else [], True))
    seen: list[Page] = []
    with pytest.raises(Transient, match="no further alerts come"):
        seen.extend(source.poll(CURSOR, deadline=SOON))
    assert len(ids(seen)) == 100
    assert all(not page.cursor for page in seen)


def test_an_endless_list_ends() -> None:
    numbers = itertools.count()

    def one_more(request: Request) -> Reply | None:
        page = [ops_alert(f"A{number}", age=timedelta(seconds=10_000 - number)) for number in [next(numbers)]]
        return pages_of(KINDS[0], (page, True))(request)

    with HttpServer(OpsGenieApiFake(before=one_more)) as server, pytest.raises(Transient, match="over 5 pages"):
        list(walk_of(server, max_pages=5).run(""))


def test_a_next_page_on_another_host_is_never_asked_for(api, server, source, kind) -> None:
    page = many(100)
    api.before = pages_of(kind, (page, True), (page[-1:], False))
    assert len(ids(source.search("", limit=1_000, deadline=SOON))) == 100
    assert [request.query["offset"] for request in lists(server, kind)] == [["0"], ["0"]]


@pytest.mark.parametrize("name", ["data", "values"])
def test_either_envelope_is_read(api, source, kind, name) -> None:
    api.before = lambda request: Reply(200, {name: [ops_alert("A1")]}) if request.path == kind.alerts else None
    assert ids(source.poll("", deadline=SOON)) == ["A1"]


@pytest.mark.parametrize("body", [b"<html>login</html>", b"", {}, {"data": None}, {"error": "x"}, b'{"data', "x", 7])
def test_a_success_with_rubbish_is_a_failed_poll(api, source, kind, body) -> None:
    api.before = lambda request: Reply(200, body)
    with pytest.raises(Transient):
        list(source.poll("", deadline=SOON))


@pytest.mark.parametrize(("reply", "problem"), [
    (Reply(401, {"message": "no"}), Permanent),
    (Reply(402, {"message": "no"}), Permanent),
    (Reply(403), Permanent),
    (Reply(400, {"message": "Invalid"}), Permanent),
    (Reply(422, {"message": "Invalid"}), Permanent),
    (Reply(500), Transient),
    (Reply(503, b"<html>"), Transient),
    (Reply(cut="before"), Transient),
    (Reply(200, {"data": []}, cut="body"), Transient),
    (Reply(302, headers={"Location": "https://x.example/?token=1"}), Permanent),
    (Reply(500, {"message": f"{API_KEY} {API_TOKEN}"}), Transient),
    (Reply(401, {"message": f"{API_KEY} {API_TOKEN}"}), Permanent),
])  # fmt: skip
def test_a_poll_fails_by_who_must_act_and_without_a_secret(api, source, kind, reply, problem) -> None:
    sent = API_KEY if kind.name == "opsgenie" else API_TOKEN
    api.before = lambda request: reply
    with pytest.raises(problem) as caught:
        list(source.poll("", deadline=SOON))
    assert isinstance(caught.value, RootcausedError)
    assert sent not in f"{caught.value}{caught.value!r}{source!r}"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"X-RateLimit-Period-In-Sec": "41", "X-RateLimit-State": "THROTTLED"}, 41.0), ({"Retry-After": "9"}, 9.0)],
)
def test_a_rate_limit_is_raised_at_once_with_the_time_to_wait(api, server, source, headers, wait) -> None:
    api.before = lambda request: Reply(429, {"message": "You are making too many requests!"}, headers)
    with pytest.raises(Transient) as caught:
        list(source.poll("", deadline=SOON))
    assert caught.value.retry_after == wait
    assert len(server.requests) == 1


def test_a_read_is_tried_again_after_a_passing_fault(api, source) -> None:
    api.alerts = [ops_alert("A1")]
    faults = [Reply(503), Reply(cut="before")]
    api.before = lambda request: faults.pop() if faults else None
    assert ids(source.poll("", deadline=SOON)) == ["A1"]


@pytest.mark.parametrize("bad", [None, "text", 7, [], {}, {"id": None}, {"id": 7}, {"id": ""}])
def test_one_broken_alert_costs_only_itself(api, source, kind, bad) -> None:
    api.before = pages_of(kind, ([ops_alert("A1"), bad, ops_alert("A2")], False))
    pages = list(source.poll("", deadline=SOON))
    assert ids(pages) == ["A1", "A2"]
    assert [b.reason for page in pages for b in page.broken]
    assert pages[-1].cursor
