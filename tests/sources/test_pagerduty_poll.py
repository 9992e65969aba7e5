"""Incidents from PagerDuty: polls, sweeps, single reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta

import pytest

from agent.alert import Severity, Status
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from sources.configs import PagerDutyConfig
from sources.pagerduty.client import PagerDutyApi
from sources.pagerduty.paging import LAST_OFFSET, Walk
from sources.pagerduty.source import MAX_DETAIL_READS, PagerDuty
from sources.port import Page
from tests.support.alerts import alert
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.pagerduty_api import NOW, TOKEN, PagerDutyApiFake, incident

SOON = Deadline.never()
DAY = timedelta(days=1)


@pytest.fixture
def api() -> PagerDutyApiFake:
    return PagerDutyApiFake()


@pytest.fixture
def server(api: PagerDutyApiFake) -> Iterator[HttpServer]:
    with HttpServer(api) as running:
        yield running


@pytest.fixture
def pagerduty(server: HttpServer) -> PagerDuty:
    return source(server.url)


def source(url: str, **options) -> PagerDuty:
    return PagerDuty("pd", config(url, **options), now=lambda: NOW)


def config(url: str, **options) -> PagerDutyConfig:
    return PagerDutyConfig(token=TOKEN, from_email="bot@example.org", url=url, **options)


def ids(pages) -> list[str]:
    return [alert.id for page in pages for alert in page.alerts]


def many(count: int, **changes):
    """Open incidents, a second apart, oldest first."""
    return [incident(f"Q{n:05d}", age=timedelta(seconds=count - n + 1), **changes) for n in range(count)]


def test_all_open_incidents_are_seen_once(api: PagerDutyApiFake, pagerduty: PagerDuty) -> None:
    api.incidents = many(260)
    assert sorted(ids(pagerduty.poll("", deadline=SOON))) == [f"Q{n:05d}" for n in range(260)]


def test_an_incident_open_for_months_is_seen(api: PagerDutyApiFake, pagerduty: PagerDuty) -> None:
    api.incidents = [incident("QOLD", age=400 * DAY, status="acknowledged")]
    assert ids(pagerduty.poll("2031-02-03T11:59:00Z", deadline=SOON)) == ["QOLD"]


def test_what_opened_and_closed_between_two_polls_is_seen_as_resolved(api, pagerduty) -> None:
    api.incidents = [incident("QSHORT", status="resolved", resolved_at="2031-02-03T11:59:00Z")]
    (seen,) = [a for page in pagerduty.poll("2031-02-03T11:54:30Z", deadline=SOON) for a in page.alerts]
    assert (seen.id, seen.status, seen.resolved) == ("QSHORT", Status.RESOLVED, True)


def test_the_first_poll_looks_back_for_closed_ones_only_as_far_as_configured(api, server) -> None:
    api.incidents = [
        incident("Q1H", age=timedelta(hours=1), status="resolved"),
        incident("Q9H", age=timedelta(hours=9), status="resolved"),
    ]
    assert ids(source(server.url, lookback_seconds=7_200).poll("", deadline=SOON)) == ["Q1H"]


def test_the_window_overlaps_the_last_poll_and_has_both_ends_in_utc(server, pagerduty) -> None:
    list(pagerduty.poll("2031-02-03T11:50:00Z", deadline=SOON))
    recent = server.asked("GET", "/incidents")[-1].query
    assert recent["since"] == ["2031-02-03T11:40:00Z"]
    assert recent["until"] == ["2031-02-03T13:00:00Z"]
    assert recent["statuses[]"] == ["triggered", "acknowledged", "resolved"]


def test_a_cursor_from_long_ago_is_kept_within_what_the_api_allows(server, pagerduty) -> None:
    list(pagerduty.poll("2029-01-01T00:00:00Z", deadline=SOON))
    assert server.asked("GET", "/incidents")[-1].query["since"][0] > "2030-08-01"


def test_the_cursor_is_the_servers_time_and_comes_with_the_last_page(api, pagerduty) -> None:
    api.incidents = many(120)
    cursors = [page.cursor for page in pagerduty.poll("", deadline=SOON)]
    assert cursors[-1] == "2031-02-03T12:00:00Z"
    assert set(cursors[:-1]) == {""}


@pytest.mark.parametrize("cursor", ["rubbish", "2031-13-45"])
def test_an_unreadable_cursor_starts_afresh(api, pagerduty, cursor) -> None:
    api.incidents = [incident("Q1")]
    pages = list(pagerduty.poll(cursor, deadline=SOON))
    assert ids(pages) == ["Q1"]
    assert pages[-1].cursor == "2031-02-03T12:00:00Z"


def test_without_a_date_header_the_cursor_comes_from_the_data(api, pagerduty) -> None:
    api.incidents = [incident("Q1")]
    api.after = lambda request, reply: Reply(reply.status, reply.body, {"Date": None})
    assert list(pagerduty.poll("", deadline=SOON))[-1].cursor == "2031-02-03T11:55:00Z"


def test_incidents_that_resolve_while_we_page_push_none_past_us(api, pagerduty) -> None:
    api.incidents = many(250)

    def resolve_three(request: Request, reply: Reply) -> Reply:
        if request.path == "/incidents" and request.query["offset"] == ["0"]:
            for gone in api.incidents[:3]:
                gone["status"] = "resolved"
        return reply

    api.after = resolve_three
    seen = ids(pagerduty.search("statuses=triggered", limit=1_000, deadline=SOON))
    assert sorted(seen) == [f"Q{n:05d}" for n in range(250)]


def test_an_incident_listed_twice_comes_once(api, pagerduty) -> None:
    api.incidents = [incident("Q1"), incident("Q1")]
    assert ids(pagerduty.poll("", deadline=SOON)) == ["Q1"]


def walk_all(server: HttpServer) -> list[str]:
    walk = Walk(PagerDutyApi(config(server.url)), SOON, last_offset=300)
    pages = walk.run({"statuses": ["triggered"], "date_range": "all"})
    return [str(found["id"]) for page in pages for found in page if isinstance(found, dict)]


def test_past_the_offset_limit_the_rest_is_read_by_creation_time(api, server) -> None:
    api.last_offset = 300
    api.incidents = many(900)
    seen = walk_all(server)
    assert len(seen) == len(set(seen)) == 900


def test_more_than_the_limit_of_one_moment_is_an_error_not_a_silent_stop(api, server) -> None:
    api.last_offset = 300
    api.incidents = [incident(f"Q{n:05d}", age=timedelta(hours=1)) for n in range(400)]
    with pytest.raises(Transient, match="can't be told apart"):
        walk_all(server)


def test_the_limit_is_the_vendors() -> None:
    assert LAST_OFFSET == 10_000


def pages_of(*pages: tuple[list, bool]):
    left = list(pages)

    def answer(request: Request) -> Reply | None:
        if request.path != "/incidents":
            return None
        incidents, more = left.pop(0) if len(left) > 1 else left[0]
        return Reply(200, {"incidents": incidents, "more": more, "limit": 100, "offset": 0})

    return answer


@pytest.mark.parametrize("second", [[], "same"], ids=["empty with more", "repeated"])
def test_a_list_that_goes_nowhere_ends_after_what_could_be_read(api, pagerduty, second) -> None:
    first = many(100)
    api.before = pages_of((first, True), (first if second == "same" else [], True))
    seen: list[Page] = []
    with pytest.raises(Transient, match="no further incidents come"):
        seen.extend(pagerduty.poll("", deadline=SOON))
    assert len(ids(seen)) == 100
    assert all(not page.cursor for page in seen)


@pytest.mark.parametrize("body", [b"<html>login</html>", b"", {}, [], {"incidents": None}, {"error": "x"}, b'{"inci'])
def test_a_success_with_rubbish_is_a_failed_poll(api, pagerduty, body) -> None:
    api.before = lambda request: Reply(200, body)
    with pytest.raises(Transient):
        list(pagerduty.poll("", deadline=SOON))


@pytest.mark.parametrize(("reply", "kind"), [
    (Reply(401, {"error": {"message": "no"}}), Permanent),
    (Reply(403), Permanent),
    (Reply(400, {"error": {"message": "Invalid", "code": 2001}}), Permanent),
    (Reply(500), Transient),
    (Reply(503, b"<html>"), Transient),
    (Reply(cut="before"), Transient),
    (Reply(200, {"incidents": []}, cut="body"), Transient),
    (Reply(302, headers={"Location": "https://x.example/?token=1"}), Permanent),
])  # fmt: skip
def test_a_poll_fails_by_who_must_act_and_without_a_secret(api, pagerduty, reply, kind) -> None:
    api.before = lambda request: reply
    with pytest.raises(kind) as caught:
        list(pagerduty.poll("", deadline=SOON))
    assert isinstance(caught.value, RootcausedError)
    assert TOKEN[-4:] not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "wait"), [({"ratelimit-reset": "41"}, 41.0), ({}, None), ({"Retry-After": "9"}, 9.0)]
)
def test_a_rate_limit_is_raised_at_once_with_the_time_to_wait(api, server, pagerduty, headers, wait) -> None:
    api.before = lambda request: Reply(429, {"error": {"code": 2020}}, headers)
    with pytest.raises(Transient) as caught:
        list(pagerduty.poll("", deadline=SOON))
    assert caught.value.retry_after == wait
    assert len(server.requests) == 1


def test_a_request_that_was_out_of_time_does_not_block_the_next(api, pagerduty) -> None:
    api.incidents = [incident("Q1")]
    with pytest.raises(Transient, match="no time left"):
        pagerduty.fetch("Q1", deadline=Deadline.after(-1))
    assert pagerduty.fetch("Q1", deadline=Deadline.never()).id == "Q1"


def test_an_endless_body_is_cut_off_by_the_deadline(api, server, pagerduty) -> None:
    api.before = lambda request: Reply(200, b"x" * 3_000_000)
    ticks = itertools.count()
    with pytest.raises(Transient, match="out of time"):
        list(pagerduty.poll("", deadline=Deadline(6, clock=lambda: float(next(ticks)))))


@pytest.mark.parametrize("bad", [None, "text", 7, [], {}, {"id": None}, {"id": 7}, {"id": ""}])
def test_one_broken_incident_costs_only_itself(api, pagerduty, bad) -> None:
    api.before = pages_of(([incident("Q1"), bad, incident("Q2")], False))
    pages = list(pagerduty.poll("", deadline=SOON))
    assert ids(pages) == ["Q1", "Q2"]
    assert [b.reason for page in pages for b in page.broken]
    assert pages[-1].cursor


def test_any_optional_field_may_be_null_or_missing(api, pagerduty) -> None:
    bare = dict.fromkeys(incident("Q1"), None) | {"id": "Q1", "status": "triggered"}
    api.before = pages_of(([bare, {"id": "Q2"}], False))
    first, second = [a for page in pagerduty.poll("", deadline=SOON) for a in page.alerts]
    assert (first.title, first.severity, first.starts_at) == ("(untitled alert)", Severity.UNKNOWN, None)
    assert second.status is Status.OPEN


def test_the_fields_of_an_incident(api, pagerduty) -> None:
    api.incidents = [incident("Q1", priority={"summary": "P1"}, teams=[{"id": "PT", "summary": "Payments"}])]
    (page, *_) = pagerduty.poll("", deadline=SOON)
    seen = page.alerts[0]
    assert seen.key == "pd:Q1"
    assert seen.title == "Q1 is down"
    assert seen.url == "https://acme.pagerduty.com/incidents/Q1"
    assert seen.severity is Severity.CRITICAL
    assert seen.service == "checkout"
    assert seen.fingerprint == "key-Q1"
    assert seen.starts_at == NOW - timedelta(minutes=5)
    assert seen.labels["team"] == "Payments"


@pytest.mark.parametrize(("changes", "severity"), [
    ({"priority": {"summary": "P2"}}, Severity.ERROR),
    ({"priority": {"summary": "SEV-3"}}, Severity.WARNING),
    ({"priority": {"summary": "Everest"}}, Severity.ERROR),
    ({"urgency": "low"}, Severity.WARNING),
    ({"urgency": None}, Severity.UNKNOWN),
])  # fmt: skip
def test_severity_is_the_priority_then_the_urgency(api, pagerduty, changes, severity) -> None:
    api.incidents = [incident("Q1", **changes)]
    (page, *_) = pagerduty.poll("", deadline=SOON)
    assert page.alerts[0].severity is severity


PROMETHEUS = (
    "Labels:\n - alertname = PoolEmpty\n - namespace = shop\n - pod = checkout-1\nAnnotations:\n - summary = x\n"
)


def test_the_alerts_inside_give_body_labels_and_severity(api, pagerduty) -> None:
    api.incidents = [incident("Q1")]
    api.alerts["Q1"] = [
        {"severity": "warning", "body": {"cef_details": {"details": {"cluster": "eu", "pool": {"size": 5}}}}},
        {"summary": "errors", "severity": "critical", "body": {"details": {"firing": PROMETHEUS, "num_firing": "1"}}},
    ]  # fmt: skip
    (page, *_) = pagerduty.poll("", deadline=SOON)
    seen = page.alerts[0]
    assert seen.severity is Severity.CRITICAL
    assert {"cluster": "eu", "pool.size": "5", "namespace": "shop", "pod": "checkout-1"}.items() <= seen.labels.items()
    assert "summary" not in seen.labels
    assert "pool.size: 5" in seen.body


@pytest.mark.parametrize("inside", [
    [None], ["x"], [{}], [{"body": None}], [{"body": {"details": "text"}}], [{"body": {"details": [1, {"a": 2}]}}],
    [{"body": {"cef_details": {"details": {"a": {"b": {"c": {"d": {"e": 1}}}}}}}}], [{"severity": 3}],
])  # fmt: skip
def test_whatever_a_monitor_sent_costs_nothing(api, pagerduty, inside) -> None:
    api.incidents = [incident("Q1")]
    api.alerts["Q1"] = inside
    assert ids(pagerduty.poll("", deadline=SOON)) == ["Q1"]


def test_alerts_inside_that_cannot_be_read_are_noted_and_cost_nothing(api, pagerduty) -> None:
    api.incidents = [incident("Q1")]
    api.before = lambda request: Reply(500) if request.path.endswith("/alerts") else None
    (page, *_) = pagerduty.poll("", deadline=SOON)
    assert "could not be read" in page.alerts[0].annotations["details"]


def test_the_alerts_inside_are_read_once_and_not_for_closed_incidents(api, server, pagerduty) -> None:
    api.incidents = [incident("Q1"), incident("Q2", status="resolved")]
    list(pagerduty.poll("", deadline=SOON))
    list(pagerduty.poll("2031-02-03T12:00:00Z", deadline=SOON))
    assert [request.path for request in server.asked("GET", "/alerts")] == ["/incidents/Q1/alerts"]


def test_one_poll_reads_the_alerts_of_a_bounded_number_of_incidents(api, server, pagerduty) -> None:
    api.incidents = many(MAX_DETAIL_READS + 5)
    assert len(ids(pagerduty.poll("", deadline=SOON))) == MAX_DETAIL_READS + 5
    assert len(server.asked("GET", "/alerts")) == MAX_DETAIL_READS


def test_the_configured_selection_is_asked_for(server) -> None:
    list(source(server.url, service_ids="PA", team_ids=["PT"], urgencies=["high"]).poll("", deadline=SOON))
    for request in server.asked("GET", "/incidents"):
        assert request.query["service_ids[]"] == ["PA"]
        assert request.query["team_ids[]"] == ["PT"]
        assert request.query["urgencies[]"] == ["high"]


def test_fetch_gives_the_incident_as_it_is_now(api, pagerduty) -> None:
    api.incidents = [incident("Q1", status="resolved")]
    api.alerts["Q1"] = [{"body": {"details": {"namespace": "shop"}}}]
    found = pagerduty.fetch("Q1", deadline=SOON)
    assert (found.key, found.status, found.labels["namespace"]) == ("pd:Q1", Status.RESOLVED, "shop")


def test_fetch_of_a_missing_incident_is_none(pagerduty) -> None:
    assert pagerduty.fetch("QGONE", deadline=SOON) is None


@pytest.mark.parametrize("reply", [Reply(500), Reply(200, {}), Reply(200, b"<html>"), Reply(cut="before")])
def test_fetch_that_fails_is_not_a_missing_incident(api, pagerduty, reply) -> None:
    api.before = lambda request: reply
    with pytest.raises(Transient):
        pagerduty.fetch("Q1", deadline=SOON)


def test_related_has_the_notes_of_others_and_the_alerts_inside(api, pagerduty) -> None:
    human = {"id": "PH", "summary": "Ann"}
    api.notes["Q1"] = [
        {"user": human, "content": "restarting now", "created_at": "2031-02-03T11:58:00Z"},
        {"user": {"id": "PBOT"}, "content": "our old report\nrootcaused:v1:x", "created_at": "2031-02-03T11:59:00Z"},
    ]
    api.alerts["Q1"] = [{"summary": "pool empty"}]
    told = pagerduty.related(alert(), deadline=SOON)
    assert "by Ann:\nrestarting now" in told
    assert "our old report" not in told
    assert "pool empty" in told


def test_related_is_empty_when_nobody_said_anything(pagerduty) -> None:
    assert pagerduty.related(alert(), deadline=SOON) == ""


def test_a_sweep_stops_at_its_limit(api, server, pagerduty) -> None:
    api.incidents = many(250)
    assert len(ids(pagerduty.search("", limit=120, deadline=SOON))) == 120
    assert len(server.asked("GET", "/incidents")) == 2


@pytest.mark.parametrize(("query", "asked"), [
    ("", {"statuses[]": ["triggered", "acknowledged"], "date_range": ["all"]}),
    ("statuses=resolved", {"statuses[]": ["resolved"], "date_range": ["all"]}),
    ("since=7d", {"since": ["2031-01-27T12:00:00Z"], "until": ["2031-02-03T12:00:00Z"]}),
    ("until=1d", {"since": ["2031-01-03T12:00:00Z"], "until": ["2031-02-02T12:00:00Z"]}),
    ("service_ids=PA,PB urgencies=high incident_key=a&b=c", {"service_ids[]": ["PA", "PB"], "incident_key": ["a&b=c"]}),
    ("since=2031-01-01T00:00:00Z", {"since": ["2031-01-01T00:00:00Z"]}),
])  # fmt: skip
def test_a_query_is_pairs(server, pagerduty, query, asked) -> None:
    list(pagerduty.search(query, limit=10, deadline=SOON))
    assert asked.items() <= server.requests[0].query.items()


@pytest.mark.parametrize("query", ["status=open", "urgent", "since=yesterday", "statuses=", "since=2031-99-99"])
def test_a_query_that_means_nothing_says_what_is_allowed(server, pagerduty, query) -> None:
    with pytest.raises(Permanent, match="pagerduty query"):
        list(pagerduty.search(query, limit=10, deadline=SOON))
    assert server.requests == []


@pytest.mark.parametrize(
    "url", ["http://api.pagerduty.example", "ftp://x", "api.pagerduty.com", "http://127.0.0.1.evil.example"]
)
def test_the_token_never_travels_in_clear(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        PagerDutyConfig(token="x", from_email="a@b", url=url)


@pytest.mark.parametrize("native", ["", ".", ".."])
def test_what_is_no_incident_id_is_never_asked_for(native: str) -> None:
    api = PagerDutyApiFake(incidents=[])
    with HttpServer(api) as server, pytest.raises(Permanent, match="not an incident id"):
        source(server.url).fetch(native, deadline=SOON)
    assert not server.requests
