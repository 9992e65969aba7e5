"""Single alerts and their details, sweeps, what is said of an alert, and refusals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agent.alert import Severity, Status
from agent.errors import Permanent, Transient
from sources.opsgenie.details import MAX_READS
from tests.support.http_server import HttpServer, Reply
from tests.support.opsgenie_api import ops_alert
from tests.support.opsgenie_sources import (
    KINDS,
    SOON,
    Pauses,
    ids,
    jsm_ops,
    lists,
    many,
    only,
    opsgenie,
    pages_of,
    queries,
)

DAY = timedelta(days=1)


def test_any_optional_field_may_be_null_or_missing(api, source, kind) -> None:
    bare = dict.fromkeys(ops_alert("A1"), None) | {"id": "A1"}
    api.before = lambda request: (
        pages_of(kind, ([bare, {"id": "A2"}], False))(request) or Reply(200, {"data": {"id": "A1"}})
    )
    first, second = [a for page in source.poll("", deadline=SOON) for a in page.alerts]
    assert (first.title, first.severity, first.starts_at) == ("(untitled alert)", Severity.UNKNOWN, None)
    assert second.status is Status.OPEN


def test_the_details_are_read_alert_by_alert(api, source) -> None:
    api.alerts = [ops_alert("A1")]
    seen = only(source.poll("", deadline=SOON))
    assert seen.body == "the whole story\n\nnamespace: shop"
    assert seen.labels["namespace"] == "shop"
    assert seen.service == "checkout"


def test_details_that_cannot_be_read_leave_what_the_list_said(api, server, source, kind) -> None:
    api.alerts = many(3)
    api.before = lambda request: Reply(404) if request.path.startswith(f"{kind.alerts}/") else None
    seen = [alert for page in source.poll("", deadline=SOON) for alert in page.alerts]
    assert [alert.title for alert in seen] == ["A00000 is down", "A00001 is down", "A00002 is down"]
    assert "could not be read in full" in seen[0].annotations["details"]
    assert len(server.requests) - len(lists(server, kind)) == 1, "after one fault the rest is left for the next poll"


def test_the_details_are_read_once_and_not_for_closed_alerts(api, server, source, kind) -> None:
    api.alerts = [ops_alert("A1"), ops_alert("A2", status="closed")]
    list(source.poll("", deadline=SOON))
    again = only(page for page in source.poll("2031-02-03T12:15:00Z", deadline=SOON))
    assert again.body.startswith("the whole story")
    assert [r.path for r in server.requests if r.path != kind.alerts] == [f"{kind.alerts}/A1"]


def test_one_poll_reads_a_bounded_number_of_details_the_new_alerts_first(api, server, source, kind) -> None:
    api.alerts = [ops_alert(f"OLD{n:03d}", age=9 * DAY + timedelta(seconds=n)) for n in range(MAX_READS)]
    api.alerts += [ops_alert("NEW1"), ops_alert("NEW2")]
    assert len(ids(source.poll("", deadline=SOON))) == MAX_READS + 2
    read = [request.path.rpartition("/")[2] for request in server.requests if request.path != kind.alerts]
    assert len(read) == MAX_READS
    assert read[:2] == ["NEW1", "NEW2"]


def test_a_list_that_has_the_details_is_not_asked_again(api, server, source, kind) -> None:
    api.before = pages_of(kind, ([ops_alert("A1")], False))
    assert only(source.poll("", deadline=SOON)).body.startswith("the whole story")
    assert {request.path for request in server.requests} == {kind.alerts}


def test_fetch_gives_the_alert_as_it_is_now(api, source) -> None:
    api.alerts = [ops_alert("A1", status="closed")]
    found = source.fetch("A1", deadline=SOON)
    assert (found.key, found.status, found.labels["namespace"]) == ("ops:A1", Status.RESOLVED, "shop")


def test_fetch_of_a_missing_alert_is_none(source) -> None:
    assert source.fetch("AGONE", deadline=SOON) is None


@pytest.mark.parametrize("reply", [
    Reply(500), Reply(200, {}), Reply(200, {"data": None}), Reply(200, b"<html>"), Reply(200, []), Reply(cut="before"),
])  # fmt: skip
def test_fetch_that_fails_is_not_a_missing_alert(api, source, reply) -> None:
    api.before = lambda request: reply
    with pytest.raises(Transient):
        source.fetch("A1", deadline=SOON)


@pytest.mark.parametrize("native", ["a/../b", "a?b=1", "a#b", "ä ö", "%2e"])
def test_any_id_stays_one_part_of_the_path(server, source, kind, native) -> None:
    source.fetch(native, deadline=SOON)
    assert server.requests[0].path.count("/") == kind.alerts.count("/") + 1


@pytest.mark.parametrize("native", [".", ".."])
def test_an_id_that_would_lead_elsewhere_is_not_asked_for(api, server, source, kind, native) -> None:
    with pytest.raises(Permanent, match="is not an id"):
        source.fetch(native, deadline=SOON)
    assert server.requests == []
    api.before = pages_of(kind, ([ops_alert(native)], False))
    assert ids(source.poll("", deadline=SOON)) == []


def test_related_has_the_notes_of_others(api, source) -> None:
    api.alerts = [ops_alert("A1")]
    api.notes["A1"] = [
        {"note": "restarting now", "owner": "ann@example.org", "createdAt": "2031-02-03T11:58:00Z"},
        {"note": "our report\nrootcaused:v1:x", "owner": "rootcaused", "createdAt": "2031-02-03T11:59:00Z"},
    ]
    told = source.related(source.fetch("A1", deadline=SOON), deadline=SOON)
    assert told == "Note of 2031-02-03T11:58:00Z, by ann@example.org:\nrestarting now"


def test_related_has_the_text_that_the_poll_did_not_read(api, source) -> None:
    api.alerts = [ops_alert("A1")]
    alert = source.fetch("A1", deadline=SOON).model_copy(update={"body": ""})
    assert "the whole story" in source.related(alert, deadline=SOON)


def test_related_is_empty_when_nobody_said_anything(api, source) -> None:
    api.alerts = [ops_alert("A1")]
    assert source.related(source.fetch("A1", deadline=SOON), deadline=SOON) == ""


def test_a_sweep_stops_at_its_limit(api, server, source, kind) -> None:
    api.alerts = many(250, description="", details={}, entity="")
    assert len(ids(source.search("", limit=120, deadline=SOON))) == 120
    assert len(lists(server, kind)) == 2


@pytest.mark.parametrize(("query", "asked"), [
    ("", "status:open"),
    ("status:closed AND tag:infra", "(status:closed AND tag:infra)"),
    ("tag:a OR tag:b", "(tag:a OR tag:b)"),
])  # fmt: skip
def test_a_sweep_asks_in_the_systems_own_language(server, source, kind, query, asked) -> None:
    list(source.search(query, limit=10, deadline=SOON))
    assert queries(server, kind) == [asked]


def test_a_query_the_system_cannot_read_is_refused_in_its_own_words(source) -> None:
    with pytest.raises(Permanent, match="Search query is not valid"):
        list(source.search("what is wrong", limit=10, deadline=SOON))


def answering(status: int, words: str) -> HttpServer:
    return HttpServer(lambda request: Reply(status, {"message": words}))


@pytest.mark.parametrize(("words", "told"), [
    ("Unauthorized; scope does not match", r"token is good .* read:ops-alert:jira-service-management"),
    ("Unauthorized", "email or api_token is wrong"),
])  # fmt: skip
def test_a_401_about_scopes_is_told_from_a_wrong_token(words: str, told: str) -> None:
    with answering(401, words) as server, pytest.raises(Permanent, match=told):
        list(jsm_ops(server.url).poll("", deadline=SOON))


@pytest.mark.parametrize(("status", "told"), [(401, "of another region"), (402, "plan"), (403, "may not do")])
def test_what_opsgenie_refuses_says_what_to_mend(status: int, told: str) -> None:
    with answering(status, "no") as server, pytest.raises(Permanent, match=told):
        list(opsgenie(server.url).poll("", deadline=SOON))


def test_a_plan_without_alerts_is_named() -> None:
    with answering(402, "no") as server, pytest.raises(Permanent, match="not part of the site's"):
        list(jsm_ops(server.url).poll("", deadline=SOON))


def test_the_cloud_id_is_asked_of_the_site_once_and_without_credentials() -> None:
    api = KINDS[1].api()
    with HttpServer(api) as server:
        source = jsm_ops(server.url, cloud_id="")
        api.alerts = [ops_alert("A1")]
        assert ids(source.poll("", deadline=SOON)) == ["A1"]
        asked = server.asked("GET", "/_edge/tenant_info")
    assert len(asked) == 1
    assert "authorization" not in asked[0].headers


@pytest.mark.parametrize("body", [{}, [], {"cloudId": 7}, {"cloudId": "../../x"}, {"cloudId": ""}])
def test_a_site_that_names_no_cloud_id_says_what_to_set(body: Any) -> None:
    with HttpServer(lambda request: Reply(200, body)) as server, pytest.raises(Permanent, match="set cloud_id"):
        list(jsm_ops(server.url, cloud_id="").poll("", deadline=SOON))


def test_a_check_tells_an_empty_account_from_one_we_cannot_see(api, source) -> None:
    assert "lack access" in source.check(deadline=SOON)
    api.alerts = [ops_alert("A1", status="closed")]
    assert source.check(deadline=SOON) == ""


def test_a_poll_takes_no_pause_of_its_own(api, server, kind) -> None:
    pauses = Pauses()
    list(kind.build(server.url, pauses).poll("", deadline=SOON))
    assert pauses.slept == []
