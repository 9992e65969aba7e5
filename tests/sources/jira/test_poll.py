"""Issues from Jira, Cloud and Data Center: polls, sweeps, single reads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agent.alert import Status
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from sources.jira.source import Jira
from tests.support.alerts import alert
from tests.support.http_server import HttpServer, Reply
from tests.support.jira_api import NOW, TOKEN, JiraApiFake, jira
from tests.support.jira_polls import asked, ids, many, on_search, searches

SOON = Deadline.never()
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def test_all_open_issues_are_seen_once(api: JiraApiFake, source: Jira) -> None:
    added = many(api, 260)
    assert ids(source.poll("", deadline=SOON)) == added


def test_an_issue_open_for_months_is_seen(api: JiraApiFake, source: Jira) -> None:
    old = api.add(age=400 * DAY, statuscategory="indeterminate")
    (seen,) = [a for page in source.poll("2031-02-03T11:59:00Z", deadline=SOON) for a in page.alerts]
    assert (seen.id, seen.status) == (old, Status.ACKNOWLEDGED)


def test_what_opened_and_closed_between_two_polls_is_seen_as_resolved(api: JiraApiFake, source: Jira) -> None:
    short = api.add(statuscategory="done")
    (seen,) = [a for page in source.poll("2031-02-03T11:50:00Z", deadline=SOON) for a in page.alerts]
    assert (seen.id, seen.status) == (short, Status.RESOLVED)


def test_the_first_poll_looks_back_for_closed_ones_only_as_far_as_configured(api, server) -> None:
    recent = api.add(age=timedelta(hours=1), statuscategory="done")
    api.add(age=timedelta(hours=9), statuscategory="done")
    assert ids(jira(server.url, cloud=api.cloud, lookback_seconds=7_200).poll("", deadline=SOON)) == [recent]


def test_issues_of_other_projects_are_not_ours(api: JiraApiFake, source: Jira) -> None:
    ours = api.add("OPS")
    api.add("WEB")
    assert ids(source.poll("", deadline=SOON)) == [ours]


def test_the_window_overlaps_the_last_poll_in_epoch_milliseconds_without_an_end(server, source) -> None:
    list(source.poll("2031-02-03T11:50:00Z", deadline=SOON))
    (jql,) = asked(server)
    assert f"updated >= {int((NOW - 25 * MINUTE).timestamp())}000)" in jql
    assert "<" not in jql
    assert jql.endswith("ORDER BY created ASC, key ASC")


def test_the_persons_jql_is_wrapped_and_its_order_dropped(api: JiraApiFake, server: HttpServer) -> None:
    wanted = api.add(summary="down")
    source = jira(server.url, cloud=api.cloud, projects=(), jql="summary ~ down OR summary ~ up ORDER BY updated DESC")
    assert ids(source.poll("", deadline=SOON)) == [wanted]
    assert asked(server)[0].startswith("(summary ~ down OR summary ~ up) AND (statusCategory != Done OR updated >= -")


def test_once_an_hour_the_overlap_is_a_day(api: JiraApiFake, server: HttpServer, source: Jira) -> None:
    cursor, windows = "2031-02-03T11:59:00Z", []
    for _ in range(3):
        cursor = list(source.poll(cursor, deadline=SOON))[-1].cursor
        windows.append(int(asked(server)[-1].split("updated >= ")[1].split(")")[0]))
        api.now += MINUTE
    assert cursor == "2031-02-03T12:02:00Z"
    minutes = [(window - windows[0]) / 60_000 for window in windows]
    assert minutes == [0, 1 - (24 * 60 - 15), 2]


def test_what_the_index_shows_hours_late_is_seen_within_the_hour(api: JiraApiFake, source: Jira) -> None:
    api.lag = timedelta(hours=2)
    cursor, seen = list(source.poll("", deadline=SOON))[-1].cursor, list[str]()
    late = api.add(statuscategory="done", age=timedelta(0))
    for _ in range(19):
        api.now += 10 * MINUTE
        pages = list(source.poll(cursor, deadline=SOON))
        seen, cursor = seen + ids(pages), pages[-1].cursor
    assert late in seen


def test_the_cursor_is_the_servers_time_and_comes_with_the_last_page(api: JiraApiFake, source: Jira) -> None:
    many(api, 120)
    cursors = [page.cursor for page in source.poll("", deadline=SOON)]
    assert cursors[-1] == "2031-02-03T12:00:00Z"
    assert set(cursors[:-1]) == {""}


@pytest.mark.parametrize("cursor", ["rubbish", "2031-13-45", " deep"])
def test_an_unreadable_cursor_starts_afresh(api: JiraApiFake, source: Jira, cursor: str) -> None:
    added = api.add()
    pages = list(source.poll(cursor, deadline=SOON))
    assert ids(pages) == [added]
    assert pages[-1].cursor == "2031-02-03T12:00:00Z"


def test_without_a_date_header_the_cursor_comes_from_the_data(api: JiraApiFake, source: Jira) -> None:
    api.add()
    api.after = lambda request, reply: Reply(reply.status, reply.body, {"Date": None})
    assert list(source.poll("", deadline=SOON))[-1].cursor == "2031-02-03T11:55:00Z"


def test_a_moved_issue_keeps_its_identity(api: JiraApiFake, server: HttpServer) -> None:
    source = jira(server.url, cloud=api.cloud, projects=("OPS", "WEB"))
    native = api.add()
    first = [a for page in source.poll("", deadline=SOON) for a in page.alerts]
    api.move(native, "WEB")
    second = [a for page in source.poll("", deadline=SOON) for a in page.alerts]
    assert [first[0].key] == [second[0].key] == [f"jira:{native}"]
    assert (first[0].labels["key"], second[0].labels["key"]) == ("OPS-1", "WEB-1")


def test_the_deployment_is_asked_for_once(server: HttpServer, source: Jira) -> None:
    for _ in range(3):
        list(source.poll("", deadline=SOON))
    assert len(server.asked("GET", "/serverInfo")) == 1
    assert len(server.asked("GET", "/myself")) == 1


def test_a_configured_deployment_is_not_asked_for(api: JiraApiFake, server: HttpServer) -> None:
    kind = "cloud" if api.cloud else "data_center"
    list(jira(server.url, cloud=api.cloud, deployment=kind).poll("", deadline=SOON))
    assert server.asked("GET", "/serverInfo") == []


def test_the_wrong_deployment_is_an_error_that_names_the_other(api: JiraApiFake, server: HttpServer) -> None:
    wrong, right = ("data_center", "cloud") if api.cloud else ("cloud", "data_center")
    api.before = lambda request: (
        Reply(200, {"accountId": "x", "queries": [{}]}) if request.path.endswith(("/myself", "/parse")) else None
    )
    with pytest.raises(Permanent, match=f"deployment should be {right}"):
        list(jira(server.url, cloud=api.cloud, deployment=wrong).poll("", deadline=SOON))


def test_jql_that_jira_refuses_is_permanent_in_jiras_words(api: JiraApiFake, server: HttpServer) -> None:
    with pytest.raises(Permanent, match="Field 'universe' does not exist"):
        list(jira(server.url, cloud=api.cloud, jql="universe = 42").poll("", deadline=SOON))
    assert len(searches(server)) == (0 if api.cloud else 1)


def test_jql_is_validated_once_and_without_its_order(cloud: JiraApiFake, cloud_server: HttpServer) -> None:
    source = jira(cloud_server.url, jql="summary ~ down ORDER BY rank")
    for _ in range(2):
        list(source.poll("", deadline=SOON))
    (request,) = cloud_server.asked("POST", "/jql/parse")
    assert request.json() == {"queries": ["summary ~ down"]}


@pytest.mark.parametrize("reply", [
    Reply(200, b"<html>login</html>", {"Content-Type": "text/html"}), Reply(200, b""), Reply(204), Reply(200, {}),
    Reply(200, []), Reply(200, {"issues": None, "total": 0}), Reply(200, {"errorMessages": ["x"]}),
    Reply(200, b'{"issues": ['), Reply(200, {"issues": {}, "total": 0}), Reply(200, {"issues": []}, cut="body"),
])  # fmt: skip
def test_a_success_with_rubbish_is_a_failed_poll(api: JiraApiFake, source: Jira, reply: Reply) -> None:
    api.before = on_search(lambda: reply)
    with pytest.raises(Transient):
        list(source.poll("", deadline=SOON))


@pytest.mark.parametrize(("reply", "kind"), [
    (Reply(400, {"errorMessages": ["bad jql"]}), Permanent),
    (Reply(401, {"errorMessages": ["no"]}), Permanent),
    (Reply(403), Permanent),
    (Reply(404, {"errorMessages": ["no"]}), Permanent),
    (Reply(410, {"errorMessages": ["removed"]}), Permanent),
    (Reply(429), Transient),
    (Reply(500), Transient),
    (Reply(503, b"<html>"), Transient),
    (Reply(cut="before"), Transient),
    (Reply(302, headers={"Location": "https://x.example/login?os_destination=1"}), Permanent),
])  # fmt: skip
@pytest.mark.parametrize("where", ["/serverInfo", "/myself", "/search"])
def test_a_poll_fails_by_who_must_act_and_without_a_secret(api, source, reply, kind, where) -> None:
    api.before = lambda request: reply if where in request.path else None
    with pytest.raises(kind) as caught:
        list(source.poll("", deadline=SOON))
    assert isinstance(caught.value, RootcausedError)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(("status", "headers", "wait"), [
    (429, {"Retry-After": "41", "RateLimit-Reason": "jira-burst-based"}, 41.0),
    (503, {"Retry-After": "7", "RateLimit-Reason": "jira-burst-based"}, 7.0),
    (429, {"X-RateLimit-Reset": "2031-02-03T12:02Z", "RateLimit-Reason": "jira-burst-based"}, 120.0),
    (429, {"Retry-After": "Mon, 03 Feb 2031 12:00:30 GMT", "RateLimit-Reason": "jira-burst-based"}, 86_400.0),
    (429, {"RateLimit-Reason": "jira-burst-based"}, None),
])  # fmt: skip
def test_a_rate_limit_is_raised_at_once_with_its_reason_and_the_time_to_wait(
    api: JiraApiFake, server: HttpServer, source: Jira, status: int, headers: dict[str, str], wait: float | None
) -> None:
    api.before = on_search(lambda: Reply(status, {"errorMessages": ["Rate limit exceeded."]}, headers))
    with pytest.raises(Transient, match="jira-burst-based") as caught:
        list(source.poll("", deadline=SOON))
    assert caught.value.retry_after == wait
    assert len(searches(server)) == 1


@pytest.mark.parametrize("reason", ["AUTHENTICATED_FAILED", "AUTHENTICATION_DENIED", "OUT, AUTHENTICATED_FAILED"])
def test_refused_credentials_are_not_an_empty_list(api: JiraApiFake, source: Jira, reason: str) -> None:
    api.before = on_search(
        lambda: Reply(200, {"issues": [], "total": 0, "isLast": True}, {"X-Seraph-LoginReason": reason})
    )
    with pytest.raises(Permanent, match="refused the credentials"):
        list(source.poll("", deadline=SOON))


def test_a_login_that_needs_a_captcha_says_so(api: JiraApiFake, source: Jira) -> None:
    reply = Reply(403, b"<html>", {"X-Authentication-Denied-Reason": "CAPTCHA_CHALLENGE; login-url=x"})
    api.before = lambda request: reply if "/myself" in request.path else None
    with pytest.raises(Permanent, match=r"403 \(CAPTCHA_CHALLENGE"):
        list(source.poll("", deadline=SOON))


def test_a_visitor_is_nobody(api: JiraApiFake, server: HttpServer) -> None:
    login = {"api_token": "wrong"} if api.cloud else {"personal_access_token": "wrong"}
    with pytest.raises(Permanent, match=r"401.*must be authenticated"):
        list(jira(server.url, cloud=api.cloud, **login).poll("", deadline=SOON))
    assert searches(server) == []


@pytest.mark.parametrize("bad", [
    None, "text", 7, [], {}, {"id": None}, {"id": 7}, {"id": ""}, {"id": "9"}, {"id": "9", "fields": []},
])  # fmt: skip
def test_one_broken_issue_costs_only_itself(api: JiraApiFake, source: Jira, bad: Any) -> None:
    good: list[Any] = [{"id": native, "key": native, "fields": {}} for native in ("1", "2")]
    api.before = on_search(lambda: Reply(200, {"issues": [good[0], bad, good[1]], "total": 3}))
    pages = list(source.poll("", deadline=SOON))
    assert ids(pages) == ["1", "2"]
    assert [b.reason for page in pages for b in page.broken]
    assert pages[-1].cursor


@pytest.mark.parametrize("by", ["id", "key"])
def test_fetch_takes_the_id_and_the_key(api: JiraApiFake, source: Jira, by: str) -> None:
    native = api.add(statuscategory="done")
    found = source.fetch(api.issues[native][by], deadline=SOON)
    assert found is not None
    assert (found.key, found.status) == (f"jira:{native}", Status.RESOLVED)


def test_fetch_of_a_missing_issue_is_none(source: Jira) -> None:
    assert source.fetch("OPS-404", deadline=SOON) is None


@pytest.mark.parametrize("reply", [Reply(500), Reply(200, {}), Reply(200, b"<html>"), Reply(cut="before")])
def test_fetch_that_fails_is_not_a_missing_issue(api: JiraApiFake, source: Jira, reply: Reply) -> None:
    api.before = lambda request: reply if "/issue/" in request.path else None
    with pytest.raises(Transient):
        source.fetch("1", deadline=SOON)


def test_any_id_stays_one_part_of_the_path(server: HttpServer, source: Jira) -> None:
    source.fetch("../../admin?x=1#y", deadline=SOON)
    assert server.requests[-1].path.endswith("/issue/..%2F..%2Fadmin%3Fx%3D1%23y")


def test_related_has_what_others_said_linked_and_changed(api: JiraApiFake, source: Jira) -> None:
    other = {"key": "OPS-7", "fields": {"summary": "the release", "status": {"name": "Done"}}}
    link = {"type": {"inward": "is caused by", "outward": "causes"}, "inwardIssue": other}
    native = api.add(fields={"issuelinks": [link], "subtasks": [other], "parent": other})
    api.say(native, "restarting now")
    api.say(native, "our old report\nrootcaused:v1:x", "Bot")
    api.say(native, "quoted: look\nrootcaused:v1:x", "Eve")
    item = {"field": "status", "fromString": "To Do", "toString": "In Progress"}
    api.changelog[native] = [
        {"author": {"displayName": "Ann"}, "created": f"2031-02-03T18:{n:02d}:00.000+0700", "items": [item]}
        for n in range(40)
    ]
    told = source.related(alert(id=native), deadline=SOON)
    assert "by Ann:\nrestarting now" in told
    assert "our old report" not in told
    assert "quoted: look" in told, "another's comment with our marker is not ours"
    assert "- is caused by OPS-7 (Done): the release" in told
    assert "- 2031-02-03 11:39 UTC by Ann: status: To Do -> In Progress" in told
    assert told.count("To Do -> In Progress") == 20


def test_related_is_empty_when_nobody_said_anything(api: JiraApiFake, source: Jira) -> None:
    assert source.related(alert(id=api.add()), deadline=SOON) == ""


def test_a_sweep_stops_at_its_limit_and_keeps_the_persons_order(api, server, source) -> None:
    added = many(api, 250)
    found = ids(source.search("project = OPS ORDER BY created DESC", limit=120, deadline=SOON))
    assert found == added[:-121:-1]
    assert len(searches(server)) == 2


def test_a_sweep_without_a_condition_is_over_what_is_ours_and_open(api: JiraApiFake, source: Jira) -> None:
    ours = api.add()
    api.add("WEB")
    api.add(statuscategory="done")
    assert ids(source.search("", limit=10, deadline=SOON)) == [ours]


@pytest.mark.parametrize("query", ['summary ~ "x', "summary ~ x)", "(summary ~ x"])
def test_a_query_that_is_not_closed_is_refused_before_it_is_sent(server, source, query) -> None:
    with pytest.raises(Permanent, match="jira query"):
        list(source.search(query, limit=10, deadline=SOON))
    assert server.requests == []
