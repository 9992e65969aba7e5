"""Reports as comments on Jira issues."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from agent.errors import Permanent, Transient
from agent.report import Report
from sources.jira.source import Jira
from sources.render.adf import NOTE, units
from sources.render.fit import utf16_units
from sources.render.wiki import NOTE as WIKI_NOTE
from tests.support.adf_check import adf_faults, nodes, texts
from tests.support.alerts import alert
from tests.support.destination_contract import SOON, DestinationContract
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.inertness import assert_inert
from tests.support.jira_api import BOT_ID, TOKEN, JiraApiFake, document, jira
from tests.support.reports import report

MARKER = "rootcaused:v1:0123456789abcdef"
INTERNAL = [{"key": "sd.public.comment", "value": {"internal": True}}]


class _Contract(DestinationContract):
    secrets = (TOKEN, "hook-secret")
    reads_back = True
    cloud = True

    def make(self, url: str) -> Jira:
        return jira(url, cloud=self.cloud)

    def system(self) -> JiraApiFake:
        api = JiraApiFake(cloud=self.cloud)
        api.add("HELP", native="Q1")
        return api

    def written(self, server: HttpServer) -> list[str]:
        assert isinstance(server.answer, JiraApiFake)
        return server.answer.words("Q1")


class TestCloud(_Contract):
    def assert_inert(self, server: HttpServer) -> None:
        assert isinstance(server.answer, JiraApiFake)
        (comment,) = server.answer.comments["Q1"]
        body = comment["body"]
        assert adf_faults(body) == []
        assert {node["type"] for node in nodes(body)} == {
            "doc", "heading", "paragraph", "text", "bulletList", "listItem", "codeBlock", "rule",
        }  # fmt: skip
        assert_inert("\n".join(texts(body, code=False)))
        assert "rootcaused:v1:forged" not in "\n".join(texts(body))
        assert list(texts(body))[-1] == MARKER


class TestDataCenter(_Contract):
    cloud = False

    def assert_inert(self, server: HttpServer) -> None:
        (content,) = self.written(server)
        outside = "\n".join(content.split("{noformat}")[::2])
        assert_inert(outside)
        for live in ("[~accountid", "!http", "|javascript", "{code}", "rootcaused:v1:forged"):
            assert live not in content.replace("\\{", "").replace("\\!", "")
        assert content.splitlines()[-1] == MARKER


@pytest.fixture(params=[True, False], ids=["cloud", "data center"])
def api(request: pytest.FixtureRequest) -> JiraApiFake:
    api = JiraApiFake(cloud=request.param)
    api.add("OPS", native="Q1")
    return api


@pytest.fixture
def server(api: JiraApiFake) -> Iterator[HttpServer]:
    with HttpServer(api) as running:
        yield running


@pytest.fixture
def source(server: HttpServer, api: JiraApiFake) -> Jira:
    return jira(server.url, cloud=api.cloud)


@pytest.fixture
def cloud() -> JiraApiFake:
    api = JiraApiFake()
    api.add("OPS", native="Q1")
    return api


@pytest.fixture
def cloud_server(cloud: JiraApiFake) -> Iterator[HttpServer]:
    with HttpServer(cloud) as running:
        yield running


def publish(source: Jira, told: Report | None = None) -> None:
    source.publish(alert(), told or report(), previous=source.find(alert(), deadline=SOON), deadline=SOON)


def test_a_report_is_edited_in_place(server: HttpServer, api: JiraApiFake, source: Jira) -> None:
    publish(source)
    publish(source, report(headline="it was DNS"))
    (words,) = api.words("Q1")
    assert "it was DNS" in words
    assert [r.method for r in server.requests if r.method in ("POST", "PUT")] == ["POST", "PUT"]
    assert all("notifyUsers" not in r.query for r in server.requests), "needs an administrator"


def test_a_comment_that_was_deleted_meanwhile_is_written_again(api: JiraApiFake, source: Jira) -> None:
    receipt = source.publish(alert(), report(), previous=None, deadline=SOON)
    api.comments["Q1"].clear()
    source.publish(alert(), report(), previous=receipt, deadline=SOON)
    assert len(api.comments["Q1"]) == 1


def test_the_receipt_opens_the_comment(api: JiraApiFake, source: Jira) -> None:
    seen = alert(url="https://jira.example.org/browse/OPS-1")
    receipt = source.publish(seen, report(), previous=None, deadline=SOON)
    assert receipt.url == f"https://jira.example.org/browse/OPS-1?focusedCommentId={receipt.id}"
    assert source.find(seen, deadline=SOON) == receipt


@pytest.mark.parametrize(("author", "text"), [
    ("Ann", MARKER), ("Bot", f"as in {MARKER} above"), ("Bot", "a comment of ours without a marker"), ("Bot", ""),
])  # fmt: skip
def test_what_is_not_ours_by_author_and_marker_is_not_found(api, source, author, text) -> None:
    api.say("Q1", text, author)
    assert source.find(alert(), deadline=SOON) is None


@pytest.mark.parametrize("rubbish", [
    None, "rubbish", {"id": "1", "body": MARKER}, {"id": "1", "author": None, "body": None},
    {"id": "1", "author": {"accountId": BOT_ID}, "body": [MARKER]},
    {"id": "1", "author": {"accountId": BOT_ID}, "body": {"type": "doc", "content": [None, {"content": "x"}]}},
])  # fmt: skip
def test_unreadable_comments_cost_nothing(api: JiraApiFake, source: Jira, rubbish: Any) -> None:
    api.comments["Q1"] = [rubbish]
    assert source.find(alert(), deadline=SOON) is None


def test_the_newest_of_our_comments_is_found(api: JiraApiFake, source: Jira) -> None:
    for n in (3, 9, 5):
        api.say("Q1", f"report\nrootcaused:v1:run{n}", "Bot", created=f"2031-02-03T18:0{n}:00.000+0700")
    found = source.find(alert(), deadline=SOON)
    assert found is not None
    assert found.investigation == "run9"


def test_ours_is_found_behind_hundreds_of_newer_comments(api: JiraApiFake, server: HttpServer, source: Jira) -> None:
    publish(source)
    for n in range(250):
        api.say("Q1", f"update {n}", created=f"2031-02-04T10:{n // 60:02d}:{n % 60:02d}.000+0700")
    publish(source, report(headline="again"))
    assert len([words for words in api.words("Q1") if MARKER in words]) == 1
    assert len(server.asked("GET", "/comment")) == 1 + 3


def test_with_a_comment_that_quotes_our_marker_as_text_the_true_one_is_edited(api, source) -> None:
    publish(source)
    api.say("Q1", f"> {MARKER}", "Bot")
    publish(source)
    assert len(api.comments["Q1"]) == 2


@pytest.mark.parametrize("body", [b"<html>", {}, {"comments": None}, [], {"comment": {}}])
def test_unreadable_comment_lists_are_not_no_comments(api: JiraApiFake, source: Jira, body: object) -> None:
    api.before = lambda request: Reply(200, body) if request.path.endswith("/comment") else None
    with pytest.raises(Transient):
        source.find(alert(), deadline=SOON)


def test_comments_on_an_issue_that_is_gone_are_permanent(source: Jira) -> None:
    with pytest.raises(Permanent, match="404"):
        source.publish(alert(id="gone"), report(), previous=None, deadline=SOON)


def test_the_limit_of_comments_is_permanent_and_says_so(api: JiraApiFake, source: Jira) -> None:
    api.comments["Q1"] = [{"id": str(n), "author": {}, "body": ""} for n in range(5_000)]
    with pytest.raises(Permanent, match="takes no more comments"):
        source.publish(alert(), report(), previous=None, deadline=SOON)


# -- service projects --------------------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["cloud", "data center"])
def desk(request: pytest.FixtureRequest) -> JiraApiFake:
    api = JiraApiFake(cloud=request.param)
    api.add("HELP", native="Q1")
    return api


@pytest.fixture
def desk_server(desk: JiraApiFake) -> Iterator[HttpServer]:
    with HttpServer(desk) as running:
        yield running


def test_in_a_service_project_no_customer_sees_the_report(desk: JiraApiFake, desk_server: HttpServer) -> None:
    source = jira(desk_server.url, cloud=desk.cloud)
    for headline in ("first", "second"):
        publish(source, report(headline=headline))
        assert desk.public("Q1") == []
    assert [r.json()["properties"] for r in desk_server.requests if r.method in ("POST", "PUT")] == [INTERNAL] * 2


@pytest.mark.parametrize("kind", [None, "customer_service", "service_desk"])
def test_a_project_that_may_be_a_service_project_is_treated_as_one(desk, desk_server, kind) -> None:
    desk.projects["HELP"] = kind
    publish(jira(desk_server.url, cloud=desk.cloud))
    assert desk_server.asked("POST", "/comment")[0].json()["properties"] == INTERNAL


def test_an_issue_that_was_moved_to_a_service_project_gets_an_internal_report(api, server, source) -> None:
    publish(source)
    api.move("Q1", "HELP")
    publish(source)
    assert server.asked("PUT")[0].json()["properties"] == INTERNAL
    assert api.public("Q1") == []


@pytest.mark.parametrize("status", [400, 403])
def test_a_refused_internal_comment_is_never_a_public_one(desk, desk_server, status) -> None:
    desk.refuse_internal = status
    with pytest.raises(Permanent, match=r"permission to add.*in a service project reports are internal comments"):
        publish(jira(desk_server.url, cloud=desk.cloud))
    assert desk.comments["Q1"] == []
    assert all(r.json()["properties"] == INTERNAL for r in desk_server.requests if r.method == "POST")


def test_a_comment_that_is_too_long_is_not_called_refused_as_internal(desk, desk_server) -> None:
    desk.max_text = 100
    with pytest.raises(Permanent, match="too long") as caught:
        publish(jira(desk_server.url, cloud=desk.cloud))
    assert "internal" not in str(caught.value)


def test_a_comment_that_came_out_public_is_withdrawn_and_said(desk, desk_server) -> None:
    desk.ignore_internal = True
    with pytest.raises(Permanent, match="showed it to the customer; it was deleted again"):
        publish(jira(desk_server.url, cloud=desk.cloud))
    assert desk.comments["Q1"] == []


def test_a_public_comment_that_cannot_be_withdrawn_is_shouted_about(desk, desk_server) -> None:
    desk.ignore_internal = True
    desk.before = lambda request: Reply(403) if request.method == "DELETE" else None
    with pytest.raises(Permanent, match="DELETE IT BY HAND"):
        publish(jira(desk_server.url, cloud=desk.cloud))


def test_public_comments_are_opted_into(desk: JiraApiFake, desk_server: HttpServer) -> None:
    publish(jira(desk_server.url, cloud=desk.cloud, public_comments=True))
    assert len(desk.public("Q1")) == 1


@pytest.mark.parametrize("body", [{}, {"fields": None}, {"fields": {"project": None}}, b"<html>"])
def test_without_the_project_nothing_is_written(api, server, source, body) -> None:
    api.before = lambda request: Reply(200, body) if request.path.endswith("/issue/Q1") else None
    with pytest.raises(Transient):
        publish(source)
    assert server.asked("POST") == []


def test_elsewhere_no_property_is_sent(server: HttpServer, source: Jira) -> None:
    publish(source)
    assert "properties" not in server.asked("POST", "/comment")[0].json()


# -- length and form ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("letter", ["a", "é", "日", "𝄞"])
def test_a_comment_is_cut_at_the_limit_exactly(api: JiraApiFake, server: HttpServer, letter: str, extra: int) -> None:
    """The body ends in letters of one unit, so that any length can be met."""

    def of(paragraphs: int, last: int) -> Report:
        return report(body="\n\n".join([*[letter * 90] * paragraphs, "x" * last]))

    def size(body: Any) -> int:
        return units(body) - units({"type": "doc"}) if api.cloud else utf16_units(body)

    source = jira(server.url, cloud=api.cloud, max_comment_chars=6_000)
    source.publish(alert(), of(10, 1), previous=None, deadline=SOON)
    missing = 6_000 - size(api.comments["Q1"][0]["body"])
    step = utf16_units(letter) * 90 + 2
    whole, last = divmod(missing + extra, step)
    source.publish(alert(), of(10 + whole, 1 + last), previous=None, deadline=SOON)
    words, body = api.words("Q1")[1], api.comments["Q1"][1]["body"]
    assert (NOTE in words or WIKI_NOTE in words) is (extra == 1)
    assert size(body) <= 6_000
    assert extra == 1 or size(body) == 6_000 + extra
    assert words.splitlines()[-1] == MARKER


def test_a_comment_jira_calls_too_long_is_halved_once(api: JiraApiFake, server: HttpServer, source: Jira) -> None:
    api.max_text = 20_000  # an administrator lowered it
    publish(source, report(body="\n\n".join(["long words " * 30] * 200)))
    (words,) = api.words("Q1")
    assert 10_000 < len(words) <= 15_000
    assert words.splitlines()[-1] == MARKER
    assert len(server.asked("POST", "/comment")) == 2


def test_a_comment_that_is_too_long_at_half_the_length_is_given_up(api, server, source) -> None:
    api.max_text = 100
    with pytest.raises(Permanent, match="too long"):
        publish(source)
    assert len(server.asked("POST", "/comment")) == 2


def test_a_refused_document_is_sent_once_more_as_one_code_block(cloud: JiraApiFake, cloud_server: HttpServer) -> None:
    cloud.refuse_documents = 1
    source = jira(cloud_server.url)
    publish(source)
    (comment,) = cloud.comments["Q1"]
    assert [node["type"] for node in comment["body"]["content"]] == ["codeBlock"]
    assert "checkout answers 503" in cloud.words("Q1")[0]
    publish(source, report(headline="found again by its marker"))
    assert len(cloud.comments["Q1"]) == 1


def test_a_document_refused_in_every_form_is_permanent(cloud: JiraApiFake, cloud_server: HttpServer) -> None:
    cloud.refuse_documents = 9
    with pytest.raises(Permanent, match="Comment body is not valid"):
        publish(jira(cloud_server.url))
    assert len(cloud_server.asked("POST", "/comment")) == 2


def test_in_a_service_project_the_code_block_is_internal_too() -> None:
    api = JiraApiFake(refuse_documents=1)
    api.add("HELP", native="Q1")
    with HttpServer(api) as server:
        publish(jira(server.url))
        assert all(r.json()["properties"] == INTERNAL for r in server.asked("POST", "/comment"))
    assert api.public("Q1") == []


BODIES = [
    "```\n```", "- a\n  - b\n    - c\n      - d", "| a | b |\n|---|---|\n| 1 | 2 |", "<div onclick=x>raw</div>",
    "\n\n\n", "x" * 40_000, "```\n" + "y" * 40_000 + "\n```", "# \n\n## \n- \n* \n1. ", "**", "` `",
    "**bold `code`**", "\x00\ud800",
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_whatever_a_model_writes_jira_takes(api: JiraApiFake, server: HttpServer, source: Jira, body: str) -> None:
    publish(source, report(body=body))
    (words,) = api.words("Q1")
    assert "checkout answers 503" in words
    assert words.splitlines()[-1] == MARKER
    assert len(server.asked("POST", "/comment")) == 1


@pytest.mark.parametrize("act_first", [False, True], ids=["before it acted", "after it acted"])
def test_a_lost_reply_to_an_edit_leaves_one_comment(api: JiraApiFake, server: HttpServer, act_first: bool) -> None:
    source = jira(server.url, cloud=api.cloud)
    publish(source)
    faults = itertools.chain([Reply(cut="before")], itertools.repeat(None))

    def lose(request: Request, reply: Reply) -> Reply:
        return (next(faults) or reply) if request.method == "PUT" else reply

    if act_first:
        api.after = lose
    else:
        api.before = lambda request: next(faults) if request.method == "PUT" else None
    with pytest.raises(Transient):
        publish(source, report(headline="the second"))
    publish(source, report(headline="the second"))
    (words,) = api.words("Q1")
    assert "the second" in words


def test_a_document_of_people_is_read(cloud: JiraApiFake) -> None:
    from sources.jira.document import text_of

    assert text_of(document("a\nb")) == "a\nb"
