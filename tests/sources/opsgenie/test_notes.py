"""Reports as notes on alerts of OpsGenie and of JSM Operations."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.report import Report
from sources.opsgenie.notes import PENDING_SECONDS
from sources.opsgenie.source import JsmOps, OpsAlerts, OpsGenie
from sources.port import Receipt
from sources.render.plain import NOTE
from tests.support.alerts import alert
from tests.support.destination_contract import SOON, DestinationContract
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.inertness import assert_inert
from tests.support.opsgenie_api import (
    ACCOUNT_ID,
    API_KEY,
    API_TOKEN,
    EMAIL,
    JsmOpsApiFake,
    OpsGenieApiFake,
)
from tests.support.opsgenie_sources import WEBHOOK_TOKEN, Pauses, jsm_ops, opsgenie
from tests.support.reports import hostile, report

INVESTIGATION = "0123456789abcdef"
MARKER = f"rootcaused:v1:{INVESTIGATION}"
LATER = "fedcba9876543210"
OWNERS = {"opsgenie": "rootcaused", "jsm_ops": ACCOUNT_ID}


def later_report(**changes: Any) -> Report:
    return report(run=report().run.model_copy(update={"investigation": LATER}), **changes)


def publish_as_the_pipeline_does(source: OpsAlerts, written: Report | None = None) -> Receipt:
    previous = source.find(alert(), deadline=SOON)
    return source.publish(alert(), written or report(), previous=previous, deadline=SOON)


class OpsContract(DestinationContract):
    reads_back = True

    def written(self, server: HttpServer) -> list[str]:
        assert isinstance(server.answer, OpsGenieApiFake | JsmOpsApiFake)
        return [note["note"] for note in server.answer.notes.get("Q1", [])]

    def assert_inert(self, server: HttpServer) -> None:
        (content,) = self.written(server)
        assert_inert(content)
        assert "<img" not in content
        assert content.splitlines()[-1] == MARKER


class TestOpsGenie(OpsContract):
    secrets = (API_KEY, API_KEY[-6:], WEBHOOK_TOKEN)

    def make(self, url: str) -> OpsGenie:
        return opsgenie(url)

    def system(self) -> OpsGenieApiFake:
        return OpsGenieApiFake()


class TestOpsGenieThatTakesItsTime(TestOpsGenie):
    def system(self) -> OpsGenieApiFake:
        return OpsGenieApiFake(pending=2, settles_when_listed=True)


class TestJsmOps(OpsContract):
    secrets = (API_TOKEN, API_TOKEN[-6:], base64.b64encode(f"{EMAIL}:{API_TOKEN}".encode()).decode(), WEBHOOK_TOKEN)

    def make(self, url: str) -> JsmOps:
        return jsm_ops(url)

    def system(self) -> JsmOpsApiFake:
        return JsmOpsApiFake()


class TestJsmOpsThatOnlyAccepts(TestJsmOps):
    def system(self) -> JsmOpsApiFake:
        return JsmOpsApiFake(answers_at_once=False)


def note(content: str, owner: str, **changes: Any) -> dict[str, Any]:
    return {"id": "note-x", "note": content, "owner": owner, "createdAt": "2031-02-03T10:00:00.000Z", **changes}


@pytest.mark.parametrize("content", [f"as in {MARKER} above", "a note of ours without a marker", "", None, 7, {}])
def test_a_note_without_our_marker_on_a_line_is_not_ours(api, source, kind, content) -> None:
    api.notes["Q1"] = [note(content, OWNERS[kind.name])]
    assert source.find(alert(), deadline=SOON) is None


@pytest.mark.parametrize("owner", ["ann@example.org", "", None, 7, {}, "Rootcaused"])
def test_our_marker_in_a_note_of_somebody_else_is_not_ours(api, source, owner) -> None:
    api.notes["Q1"] = [note(MARKER, owner)]
    assert source.find(alert(), deadline=SOON) is None


def test_the_newest_of_our_notes_is_found_over_all_pages(api, source, kind) -> None:
    owner = OWNERS[kind.name]
    api.note_page = 2
    api.notes["Q1"] = [
        note("rootcaused:v1:old", owner, id="n1"),
        *(note("chatter", "ann", id=f"n{n}") for n in range(2, 6)),
        note("rootcaused:v1:new", owner, id="n6", createdAt="2031-02-03T11:00:00.000Z"),
        note("chatter", "ann", id="n7"),
    ]
    found = source.find(alert(), deadline=SOON)
    assert found.investigation == "new"
    assert found.id == ("n6" if kind.name == "jsm_ops" else "new")


def test_the_pages_of_notes_are_asked_for_with_the_parameters_they_name_and_no_others(api, server, source) -> None:
    api.note_page = 1
    api.notes["Q1"] = [note("chatter", "ann")] * 3
    source.find(alert(), deadline=SOON)
    asked = [request.query for request in server.requests if request.path.endswith("/notes")]
    assert len(asked) == 3
    assert all(len(values) == 1 for query in asked for values in query.values()), "no parameter twice"


def test_notes_whose_next_page_is_the_same_end_with_an_error(api, source) -> None:
    page = {"data": [note("chatter", "ann")], "paging": {"next": "https://x.example/notes?offset=1"}}
    api.before = lambda request: Reply(200, page) if request.path.endswith("/notes") else None
    with pytest.raises(Transient, match="was read already"):
        source.find(alert(), deadline=SOON)


@pytest.mark.parametrize("body", [b"<html>", {}, {"data": None}, {"values": {}}, "x"])
def test_unreadable_notes_are_not_no_notes(api, source, body) -> None:
    api.before = lambda request: Reply(200, body) if request.path.endswith("/notes") else None
    with pytest.raises(Transient):
        source.find(alert(), deadline=SOON)


def test_the_same_report_again_leaves_one_note(api, source) -> None:
    for _ in range(3):
        publish_as_the_pipeline_does(source)
    assert len(api.notes["Q1"]) == 1


def test_opsgenie_gets_a_second_note_that_says_what_it_replaces() -> None:
    api = OpsGenieApiFake()
    with HttpServer(api) as server:
        source = opsgenie(server.url)
        publish_as_the_pipeline_does(source)
        publish_as_the_pipeline_does(source, later_report(headline="it was DNS"))
        publish_as_the_pipeline_does(source, later_report(headline="it was DNS"))
    first, second = (one["note"] for one in api.notes["Q1"])
    assert first.splitlines()[-1] == MARKER
    assert second.startswith(f"Replaces the earlier report of investigation {INVESTIGATION}.\n\n")
    assert second.splitlines()[-1] == f"rootcaused:v1:{LATER}"


def test_jsm_ops_edits_the_note_in_place() -> None:
    api = JsmOpsApiFake()
    with HttpServer(api) as server:
        source = jsm_ops(server.url)
        first = publish_as_the_pipeline_does(source)
        second = publish_as_the_pipeline_does(source, later_report(headline="it was DNS"))
    assert first.id == second.id
    (kept,) = api.notes["Q1"]
    assert "it was DNS" in kept["note"]
    assert MARKER not in kept["note"]


def test_a_note_that_was_deleted_meanwhile_is_written_again() -> None:
    api = JsmOpsApiFake()
    with HttpServer(api) as server:
        source = jsm_ops(server.url)
        receipt = publish_as_the_pipeline_does(source)
        api.notes["Q1"].clear()
        source.publish(alert(), report(), previous=receipt, deadline=SOON)
    assert len(api.notes["Q1"]) == 1


def test_the_note_names_its_user_and_origin() -> None:
    with HttpServer(OpsGenieApiFake()) as server:
        opsgenie(server.url, user="rca bot").publish(alert(), report(), previous=None, deadline=SOON)
        (request,) = server.asked("POST")
    assert request.query == {"identifierType": ["id"]}
    body = request.json()
    assert (body["user"], body["source"], set(body)) == ("rca bot", "rootcaused", {"note", "user", "source"})


def test_our_user_is_asked_for_once_and_may_be_configured() -> None:
    with HttpServer(JsmOpsApiFake()) as server:
        source = jsm_ops(server.url)
        for _ in range(3):
            source.find(alert(), deadline=SOON)
        assert len(server.asked("GET", "/myself")) == 1
        jsm_ops(server.url, account_id=ACCOUNT_ID).find(alert(), deadline=SOON)
        assert len(server.asked("GET", "/myself")) == 1


def test_nothing_is_written_by_nobody() -> None:
    api = JsmOpsApiFake(knows_the_user=False)
    with HttpServer(api) as server, pytest.raises(Permanent, match="set account_id"):
        jsm_ops(server.url).publish(alert(), report(), previous=None, deadline=SOON)
    assert api.notes == {}


def waiting(pending: int, **options: Any) -> OpsGenieApiFake:
    return OpsGenieApiFake(pending=pending, **options)


def test_an_accepted_note_is_followed_until_it_is_there() -> None:
    api, pauses = waiting(2), Pauses()
    with HttpServer(api) as server:
        receipt = opsgenie(server.url, pauses).publish(alert(), report(), previous=None, deadline=SOON)
        assert len(server.asked("POST")) == 1
    assert receipt.investigation == INVESTIGATION
    assert pauses.slept == [1, 2, 4]


@pytest.mark.parametrize("fault", [Reply(500), Reply(200, b"<html>"), Reply(200, {"data": {}}), Reply(429), Reply(403)])
def test_a_fault_while_following_tells_nothing_about_the_note(fault: Reply) -> None:
    faults = [fault]
    api = OpsGenieApiFake(before=lambda r: faults.pop() if "/requests/" in r.path and faults else None)
    with HttpServer(api) as server:
        opsgenie(server.url).publish(alert(), report(), previous=None, deadline=SOON)
        assert len(server.asked("POST")) == 1


def test_an_outcome_that_stays_unknown_is_transient_and_never_posted_again() -> None:
    api, pauses = waiting(1_000), Pauses()
    with HttpServer(api) as server:
        source = opsgenie(server.url, pauses)
        for _ in range(3):
            with pytest.raises(Transient, match="not known yet"):
                publish_as_the_pipeline_does(source)
        assert len(server.asked("POST")) == 1
        assert pauses.slept[:6] == [1, 2, 4, 8, 8, 8]
        assert sum(pauses.slept) <= 180
        api.pending = 0
        publish_as_the_pipeline_does(source)
        assert len(server.asked("POST")) == 1
    assert len(api.notes["Q1"]) == 1


def test_a_note_that_appears_late_is_found_before_it_is_posted_again() -> None:
    api = waiting(1_000)
    with HttpServer(api) as server:
        with pytest.raises(Transient):
            publish_as_the_pipeline_does(opsgenie(server.url))
        api._carry_out(api.requests["request-1"])
        publish_as_the_pipeline_does(opsgenie(server.url))  # another worker, which knows of no request
        assert len(server.asked("POST")) == 1
    assert len(api.notes["Q1"]) == 1


def test_an_accepted_note_that_never_comes_is_posted_again_after_a_while() -> None:
    api, pauses = waiting(1_000), Pauses()
    with HttpServer(api) as server:
        source = opsgenie(server.url, pauses)
        with pytest.raises(Transient):
            publish_as_the_pipeline_does(source)
        pauses.sleep(PENDING_SECONDS)
        api.pending = 0
        api.requests.clear()
        publish_as_the_pipeline_does(source)
        assert len(server.asked("POST")) == 2
    assert len(api.notes["Q1"]) == 1


@pytest.mark.parametrize("build", [opsgenie, jsm_ops])
def test_a_note_that_was_accepted_and_then_refused_is_permanent_in_their_words(build) -> None:
    api = waiting(0, refusal="Alert does not exist") if build is opsgenie else JsmOpsApiFake(answers_at_once=False)
    api.refusal = "Alert does not exist"
    with HttpServer(api) as server:
        source = build(server.url)
        with pytest.raises(Permanent, match="Alert does not exist"):
            publish_as_the_pipeline_does(source)
        api.refusal = ""
        publish_as_the_pipeline_does(source)
    assert len(api.notes["Q1"]) == 1


def test_following_ends_with_the_deadline() -> None:
    pauses = Pauses()
    deadline = Deadline(10, clock=pauses.clock)
    with HttpServer(waiting(1_000)) as server, pytest.raises(Transient, match="not known yet"):
        opsgenie(server.url, pauses).publish(alert(), report(), previous=None, deadline=deadline)
    assert pauses.slept == [1, 2, 4]


@pytest.mark.parametrize("body", [{}, {"result": "ok"}, [], "x", b"<html>", {"requestId": ""}, {"data": {"id": ""}}])
def test_an_accepted_write_with_an_unreadable_reply_is_looked_for(server, source, api, body) -> None:
    lost = [Reply(202, body)]

    def reply(request: Request, answer: Reply) -> Reply:
        return lost.pop() if request.method == "POST" and lost else answer

    api.after = reply
    with pytest.raises(Transient):
        publish_as_the_pipeline_does(source)
    publish_as_the_pipeline_does(source)
    assert len(api.notes["Q1"]) == 1
    assert len(server.asked("POST")) == 1


def test_a_tag_is_put_on_when_configured_and_costs_nothing_when_it_fails() -> None:
    api = OpsGenieApiFake()
    with HttpServer(api) as server:
        source = opsgenie(server.url, tag="rootcaused")
        publish_as_the_pipeline_does(source)
        assert api.tagged == {"Q1": ["rootcaused"]}
        api.notes.clear()
        api.before = lambda request: Reply(500) if request.path.endswith("/tags") else None
        publish_as_the_pipeline_does(source)
    assert len(api.notes["Q1"]) == 1


def test_without_a_configured_tag_one_request_writes(server, source) -> None:
    publish_as_the_pipeline_does(source)
    assert len(server.asked("POST")) == 1


def of(letter: str, paragraphs: int, last: int) -> Report:
    return report(body="\n\n".join([*[letter * 45] * paragraphs, letter * last]))


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("letter", ["a", "é", "日", "𝄞"])
def test_a_note_is_cut_at_the_limit_exactly_as_the_server_counts(api, server, kind, letter: str, extra: int) -> None:
    limit, wide = 4_000, units(letter)
    source = kind.build(server.url, max_note_chars=limit)
    source.publish(alert(), of(letter, 10, 1), previous=None, deadline=SOON)
    missing = limit - units(api.notes["Q1"][0]["note"])
    whole, rest = divmod(missing, 45 * wide + 1)
    last, odd = divmod(rest, wide)
    body = of(letter, 10 + whole, 1 + last).model_copy(update={"headline": report().headline + "x" * (odd + extra + 1)})
    shorter = body.model_copy(update={"headline": body.headline[: len(body.headline) - 1]})
    api.notes.clear()
    source.publish(alert(), shorter, previous=None, deadline=SOON)
    content = api.notes["Q1"][0]["note"]
    assert (NOTE in content) is (extra == 1)
    assert units(content) <= limit
    assert extra == 1 or units(content) == limit + extra
    assert content.splitlines()[-1] == MARKER


def test_a_note_refused_as_too_long_is_halved_once(api, server, source) -> None:
    api.note_limit = 13_000
    source.publish(alert(), of("a", 600, 1), previous=None, deadline=SOON)
    assert len(server.asked("POST")) == 2
    (kept,) = api.notes["Q1"]
    assert len(kept["note"]) <= 12_500
    assert kept["note"].splitlines()[-1] == MARKER


def test_a_short_note_refused_as_too_long_is_not_sent_twice(api, server, source) -> None:
    api.note_limit = 100
    with pytest.raises(Permanent, match="too long"):
        source.publish(alert(), report(), previous=None, deadline=SOON)
    assert len(server.asked("POST")) == 1


@pytest.mark.parametrize("refusal", ["Note is too long", "Note exceeds the maximum size"])
def test_a_note_found_too_long_after_it_was_accepted_is_halved_once(refusal: str) -> None:
    api = OpsGenieApiFake(refusal=refusal)
    with HttpServer(api) as server, pytest.raises(Permanent, match=refusal):
        opsgenie(server.url).publish(alert(), of("a", 300, 1), previous=None, deadline=SOON)
    sizes = [len(request.json()["note"]) for request in server.asked("POST")]
    assert len(sizes) == 2
    assert sizes[1] <= 12_500 < sizes[0]


def test_the_note_is_plain_text(api, source) -> None:
    publish_as_the_pipeline_does(source)
    content = api.notes["Q1"][0]["note"]
    assert content.startswith("Likely cause: checkout answers 503")
    assert "**" not in content
    assert "```" not in content


def test_no_tag_in_hostile_text_becomes_html(api, source) -> None:
    source.publish(alert(), hostile(), previous=None, deadline=SOON)
    assert "<img" not in api.notes["Q1"][0]["note"]
    assert "</details" not in api.notes["Q1"][0]["note"]


def test_the_address_of_an_alert_is_where_people_see_it() -> None:
    first = opsgenie("https://api.eu.opsgenie.com")
    second = jsm_ops("https://acme.atlassian.net")
    assert first._dialect.link("a b") == "https://app.eu.opsgenie.com/alert/detail/a%20b/details"
    assert second._dialect.link("ab") == "https://acme.atlassian.net/jira/ops/alerts/ab"
    assert opsgenie("https://proxy.example.org")._dialect.link("ab") == ""
