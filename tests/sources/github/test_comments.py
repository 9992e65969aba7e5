"""Reports as comments on GitHub issues."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agent.errors import Permanent, Transient
from agent.report import Report
from sources.github.comments import marked
from sources.github.config import GitHubConfig
from sources.github.source import GitHub
from sources.port import Receipt
from sources.render.markdown import NOTE
from tests.support.alerts import alert
from tests.support.destination_contract import SOON, DestinationContract
from tests.support.github_api import ANN, APP_BOT, TOKEN, GitHubApiFake, issue
from tests.support.http_server import HttpServer, Reply
from tests.support.inertness import LIVE, assert_inert
from tests.support.reports import report

MARKER = "<!-- rootcaused:v1:0123456789abcdef -->"
SHOP, KEY = "acme/shop", "acme/shop#1"
ISSUE = alert(source="gh", id=KEY)


def without_code(body: str) -> str:
    """What GitHub reads mentions, references and links from."""
    body = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", body)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", body)


def system() -> GitHubApiFake:
    return GitHubApiFake(issues={SHOP: [issue(1), issue(2)]})


class TestContract(DestinationContract):
    secrets = (TOKEN, TOKEN[-8:], "hook-secret")
    reads_back = True
    subject = ISSUE

    def make(self, url: str) -> GitHub:
        config = {"token": TOKEN, "url": url, "repositories": [SHOP], "labels": ["alert"]}
        return GitHub("gh", GitHubConfig(**config, webhook_secrets="hook-secret"), sleep=lambda seconds: None)

    def system(self) -> GitHubApiFake:
        return system()

    def written(self, server: HttpServer) -> list[str]:
        assert isinstance(server.answer, GitHubApiFake)
        return [comment["body"] for comment in server.answer.comments.get(KEY, [])]

    def assert_inert(self, server: HttpServer) -> None:
        (body,) = self.written(server)
        assert_inert(without_code(body))
        for live in ("a slash command", "a control character", "a change of direction", "a tag character"):
            assert not LIVE[live].search(body), live
        assert body.splitlines()[-1] == MARKER
        assert marked({"body": body}) == "0123456789abcdef"
        prose = without_code(body)
        assert prose.count("<details>") == prose.count("</details>") == 1
        assert set(re.findall(r"<(?!!--)[^ >]*", prose)) <= {"<details", "<summary", "</summary", "</details"}
        assert not re.search(r"!\[", prose)


@pytest.fixture
def api() -> GitHubApiFake:
    return system()


def test_a_report_is_edited_in_place(api, server, github) -> None:
    first = github.publish(ISSUE, report(), previous=None, deadline=SOON)
    second = github.publish(ISSUE, report(headline="it was DNS"), previous=first, deadline=SOON)
    assert first == second
    assert first.url == f"https://github.com/acme/shop/issues/1#issuecomment-{first.id}"
    (kept,) = api.comments[KEY]
    assert "it was DNS" in kept["body"]
    assert [r.path for r in server.asked("PATCH")] == [f"/repos/acme/shop/issues/comments/{first.id}"]


def test_a_comment_that_was_deleted_meanwhile_is_written_again(api, github) -> None:
    receipt = github.publish(ISSUE, report(), previous=None, deadline=SOON)
    api.comments[KEY].clear()
    github.publish(ISSUE, report(), previous=receipt, deadline=SOON)
    assert len(api.comments[KEY]) == 1


@pytest.mark.parametrize(("body", "author"), [
    (MARKER, ANN), (MARKER, APP_BOT), (f"> {MARKER}", None), (f"as in {MARKER} above", None),
    ("rootcaused:v1:0123456789abcdef", None), ("a comment of ours without a marker", None),
])  # fmt: skip
def test_what_is_not_ours_by_author_and_marker_is_not_found(api, github, body, author) -> None:
    api.comment(1, body, author or api.me)
    assert github.find(ISSUE, deadline=SOON) is None


@pytest.mark.parametrize("odd", [{"id": 1}, {"id": 1, "user": None, "body": MARKER}, {"body": None}, "rubbish", None])
def test_odd_comments_are_passed_over(api, github, odd) -> None:
    api.comments[KEY] = [odd]
    assert github.find(ISSUE, deadline=SOON) is None


def test_a_user_with_our_name_but_another_id_is_not_us(api, github) -> None:
    api.comment(1, MARKER, {**api.me, "id": 999})
    assert github.find(ISSUE, deadline=SOON) is None


def test_the_newest_of_our_comments_is_found_on_whatever_page(api, server, github) -> None:
    api.comment(1, "<!-- rootcaused:v1:old -->", api.me)
    for n in range(205):
        api.comment(1, f"chatter {n}")
    newest = api.comment(1, "report\r\n\r\n<!-- rootcaused:v1:new -->\r\n", api.me)
    api.comment(1, "the last word")
    found = github.find(ISSUE, deadline=SOON)
    assert (found.id, found.investigation) == (str(newest["id"]), "new")
    assert len(server.asked("GET", "/comments")) == 3


def test_the_next_page_is_asked_of_our_own_server_whatever_the_link_says(api, server, github) -> None:
    link = {"Link": '<https://evil.example/steal?page=2&per_page=100>; rel="next", <x>; rel="last"'}
    api.before = lambda request: Reply(200, [{"id": 1}], link) if request.query.get("per_page") == ["100"] and (
        "page" not in request.query) and request.path.endswith("/comments") else None  # fmt: skip
    assert github.find(ISSUE, deadline=SOON) is None
    assert [request.query for request in server.asked("GET", "/comments")] == [
        {"per_page": ["100"]},
        {"page": ["2"], "per_page": ["100"]},
    ]


@pytest.mark.parametrize("second", [[], "same"])
def test_comments_that_go_nowhere_are_an_error(api, github, second) -> None:
    first = [{"id": n, "body": "x"} for n in range(100)]
    link = {"Link": '<https://api.github.com/x?page=2>; rel="next"'}

    def answer(request):
        if not request.path.endswith("/comments"):
            return None
        return Reply(200, first if second == "same" or "page" not in request.query else second, link)

    api.before = answer
    with pytest.raises(Transient, match="nothing further comes"):
        github.find(ISSUE, deadline=SOON)


def test_the_identity_is_asked_for_once(server, github) -> None:
    for _ in range(3):
        github.find(ISSUE, deadline=SOON)
    assert len(server.asked("GET", "/user")) == 1


@pytest.mark.parametrize(("reply", "kind"), [
    (Reply(403, {"message": "Resource not accessible by integration"}), Permanent), (Reply(200, {}), Transient),
    (Reply(200, b"<html>"), Transient), (Reply(200, {"id": "x", "login": "y"}), Transient), (Reply(500), Transient),
])  # fmt: skip
def test_nothing_is_written_by_nobody(api, server, github, reply, kind) -> None:
    api.before = lambda request: reply if request.path == "/user" else None
    with pytest.raises(kind):
        github.publish(ISSUE, report(), previous=None, deadline=SOON)
    assert server.asked("POST") == []


@pytest.mark.parametrize("body", [b"<html>", {}, {"message": "x"}, None])
def test_unreadable_comments_are_not_no_comments(api, github, body) -> None:
    api.before = lambda request: Reply(200, body) if request.path.endswith("/comments") else None
    with pytest.raises(Transient):
        github.find(ISSUE, deadline=SOON)


@pytest.mark.parametrize(("reply", "said"), [
    (Reply(410, {"message": "Issue was deleted"}), "410: Issue was deleted"),
    (Reply(404, {"message": "Not Found"}), "404"),
    (Reply(403, {"message": "Resource not accessible by personal access token"}, {"X-RateLimit-Remaining": "0"}),
     "not accessible"),
    (Reply(422, {"message": "Validation Failed", "errors": [{"field": "data", "code": "unprocessable"}]}),
     "Validation Failed: data unprocessable"),
])  # fmt: skip
def test_a_refusal_is_permanent_and_in_githubs_words(api, server, github, reply, said) -> None:
    api.before = lambda request: reply if request.method == "POST" else None
    with pytest.raises(Permanent, match=re.escape(said)):
        github.publish(ISSUE, report(), previous=None, deadline=SOON)
    assert len(server.asked("POST")) == 1


def test_a_locked_issue_is_permanent(api, github) -> None:
    api.get(1)["locked"] = True
    with pytest.raises(Permanent, match="issue is locked"):
        github.publish(ISSUE, report(), previous=None, deadline=SOON)


@pytest.mark.parametrize("status", [403, 429])
def test_a_secondary_limit_on_a_write_is_transient_and_nothing_more_is_sent(api, server, time, github, status) -> None:
    said = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
    api.before = lambda request: Reply(status, said) if request.method == "POST" else None
    for left in (60, 50):
        with pytest.raises(Transient) as caught:
            github.publish(ISSUE, report(), previous=None, deadline=SOON)
        assert caught.value.retry_after == left
        time.seconds += 10
    assert len(server.asked("POST")) == 1


def test_an_unreadable_answer_to_a_write_is_transient(api, github) -> None:
    api.after = lambda request, reply: Reply(201, b"<html>") if request.method == "POST" else reply
    with pytest.raises(Transient):
        github.publish(ISSUE, report(), previous=None, deadline=SOON)
    api.after = lambda request, reply: reply
    found = github.find(ISSUE, deadline=SOON)
    github.publish(ISSUE, report(), previous=found, deadline=SOON)
    assert len(api.comments[KEY]) == 1


def long_report(letter: str = "é", paragraphs: int = 60) -> Report:
    return report(body="\n\n".join([letter * 90] * paragraphs))


@pytest.mark.parametrize("edit", [False, True])
def test_a_report_that_is_refused_as_too_long_is_halved_once(api, server, source, edit) -> None:
    github = source(server.url, max_comment_chars=6_000)
    previous = github.publish(ISSUE, report(), previous=None, deadline=SOON) if edit else None
    api.longest = 3_500
    github.publish(ISSUE, long_report(), previous=previous, deadline=SOON)
    (kept,) = api.comments[KEY]
    assert len(kept["body"]) <= 3_000
    assert NOTE in kept["body"]
    assert kept["body"].splitlines()[-1] == MARKER


def test_a_report_that_is_too_long_even_when_halved_is_permanent(api, server, source) -> None:
    api.longest = 100
    with pytest.raises(Permanent, match="too long"):
        source(server.url, max_comment_chars=6_000).publish(ISSUE, long_report(), previous=None, deadline=SOON)
    assert len(server.asked("POST")) == 2


def test_a_refusal_for_another_reason_is_not_tried_again_shorter(api, server, source) -> None:
    api.before = lambda request: Reply(422, {"message": "Validation Failed"}) if request.method == "POST" else None
    with pytest.raises(Permanent, match="Validation Failed"):
        source(server.url, max_comment_chars=6_000).publish(ISSUE, long_report(), previous=None, deadline=SOON)
    assert len(server.asked("POST")) == 1


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("letter", ["a", "é", "日", "𝄞"])
def test_a_comment_is_cut_at_the_limit_exactly(api, server, source, letter: str, extra: int) -> None:
    def of(paragraphs: int, last: int) -> Report:
        return report(body="\n\n".join([*[letter * 90] * paragraphs, letter * last]))

    github = source(server.url, max_comment_chars=4_000)
    github.publish(ISSUE, of(2, 1), previous=None, deadline=SOON)
    missing = 4_000 - len(api.comments[KEY][0]["body"])
    whole, last = divmod(missing + extra + 1, 92)
    if last == 0:
        whole, last = whole - 1, 92
    github.publish(ISSUE, of(2 + whole, last), previous=None, deadline=SOON)
    body = api.comments[KEY][1]["body"]
    assert (NOTE in body) is (extra == 1)
    assert len(body) <= 4_000
    assert extra == 1 or len(body) == 4_000 + extra
    assert body.splitlines()[-1] == MARKER
    assert body.count("<details>") == body.count("</details>") == 1


def test_the_default_limit_leaves_room_below_githubs(api, github) -> None:
    github.publish(ISSUE, long_report("𝄞", 2_000), previous=None, deadline=SOON)
    (kept,) = api.comments[KEY]
    assert 50_000 < len(kept["body"]) <= 60_000


def test_the_comment_is_githubs_markdown_with_the_rest_folded_away(api, github) -> None:
    github.publish(ISSUE, report(), previous=None, deadline=SOON)
    body = api.comments[KEY][0]["body"]
    above, _, below = body.partition("<details>")
    assert above.startswith("### Likely cause: checkout answers 503")
    assert len(above) < 1_000
    assert "```text\nPoolTimeout" in below


def test_writes_are_a_second_apart(api, server, time, github) -> None:
    began = time.seconds
    for number in (1, 2, 1):
        github.publish(alert(id=f"acme/shop#{number}"), report(), previous=None, deadline=SOON)
    assert time.seconds == began + 2


@pytest.mark.parametrize("previous_id", ["1/../../../pulls", "?x=1", "#"])
def test_a_receipts_id_stays_one_part_of_the_path(server, github, previous_id: Any) -> None:
    github.publish(ISSUE, report(), previous=Receipt(id=previous_id), deadline=SOON)
    assert server.asked("PATCH")[0].path.startswith("/repos/acme/shop/issues/comments/")
    assert server.asked("PATCH")[0].path.count("/") == 6
