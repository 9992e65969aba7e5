"""Reports as notes on PagerDuty incidents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import Permanent, Transient
from agent.report import Report
from sources.configs import PagerDutyConfig
from sources.pagerduty.source import PagerDuty
from sources.render.plain import NOTE
from tests.support.alerts import alert
from tests.support.destination_contract import SOON, DestinationContract
from tests.support.http_server import HttpServer, Reply
from tests.support.inertness import assert_inert
from tests.support.pagerduty_api import TOKEN, PagerDutyApiFake
from tests.support.reports import report

MARKER = "rootcaused:v1:0123456789abcdef"


def source(url: str, **options) -> PagerDuty:
    config = {
        "token": TOKEN,
        "from_email": "bot@example.org",
        "url": url,
        "webhook_secrets": ("hook-secret",),
        **options,
    }
    return PagerDuty("pd", PagerDutyConfig(**config))


class TestContract(DestinationContract):
    secrets = (TOKEN, TOKEN[-4:], "hook-secret")
    reads_back = True

    def make(self, url: str) -> PagerDuty:
        return source(url)

    def system(self) -> PagerDutyApiFake:
        return PagerDutyApiFake()

    def written(self, server: HttpServer) -> list[str]:
        assert isinstance(server.answer, PagerDutyApiFake)
        return [note["content"] for note in server.answer.notes.get("Q1", [])]

    def assert_inert(self, server: HttpServer) -> None:
        (content,) = self.written(server)
        assert_inert(content)
        assert content.splitlines()[-1] == MARKER


@pytest.fixture
def api() -> PagerDutyApiFake:
    return PagerDutyApiFake()


@pytest.fixture
def server(api: PagerDutyApiFake) -> Iterator[HttpServer]:
    with HttpServer(api) as running:
        yield running


def note(content: str, author: str = "PBOT", **changes):
    return {"id": "PX", "user": {"id": author}, "content": content, "created_at": "2031-02-03T10:00:00Z", **changes}


def test_a_report_is_edited_in_place(server: HttpServer, api: PagerDutyApiFake) -> None:
    pagerduty = source(server.url)
    first = pagerduty.publish(alert(), report(), previous=None, deadline=SOON)
    second = pagerduty.publish(alert(), report(headline="it was DNS"), previous=first, deadline=SOON)
    assert first.id == second.id
    (kept,) = api.notes["Q1"]
    assert "it was DNS" in kept["content"]


def test_a_note_that_was_deleted_meanwhile_is_written_again(server: HttpServer, api: PagerDutyApiFake) -> None:
    pagerduty = source(server.url)
    receipt = pagerduty.publish(alert(), report(), previous=None, deadline=SOON)
    api.notes["Q1"].clear()
    pagerduty.publish(alert(), report(), previous=receipt, deadline=SOON)
    assert len(api.notes["Q1"]) == 1


@pytest.mark.parametrize("other", [
    note(MARKER, author="PHUMAN"),
    note(f"as in {MARKER} above"),
    note("a note of ours without a marker"),
    {"content": MARKER},
    {"content": None, "user": None},
    "rubbish",
])  # fmt: skip
def test_what_is_not_ours_by_author_and_marker_is_not_found(server: HttpServer, api: PagerDutyApiFake, other) -> None:
    api.notes["Q1"] = [other]
    assert source(server.url).find(alert(), deadline=SOON) is None


def test_the_newest_of_our_notes_is_found(server: HttpServer, api: PagerDutyApiFake) -> None:
    api.notes["Q1"] = [
        note("rootcaused:v1:new", id="PNEW", created_at="2031-02-03T11:00:00Z"),
        note("rootcaused:v1:old", id="POLD"),
    ]
    found = source(server.url).find(alert(), deadline=SOON)
    assert found is not None
    assert (found.id, found.investigation) == ("PNEW", "new")


def test_with_an_accounts_token_the_author_is_the_user_of_from_email(server: HttpServer, api: PagerDutyApiFake) -> None:
    api.account_token = True
    pagerduty = source(server.url, from_email="Bot@example.org".lower())
    receipt = pagerduty.publish(alert(), report(), previous=None, deadline=SOON)
    assert pagerduty.find(alert(), deadline=SOON) == receipt
    assert server.asked("POST")[0].headers["from"] == "bot@example.org"


def test_the_identity_is_asked_for_once(server: HttpServer) -> None:
    pagerduty = source(server.url)
    for _ in range(3):
        pagerduty.find(alert(), deadline=SOON)
    assert len(server.asked("GET", "/users/me")) == 1


def test_nothing_is_written_by_nobody(server: HttpServer, api: PagerDutyApiFake) -> None:
    api.account_token = True
    with pytest.raises(Permanent, match=r"set from_email .* \(stranger@example.org is none"):
        source(server.url, from_email="stranger@example.org").publish(alert(), report(), previous=None, deadline=SOON)
    assert api.notes == {}


def test_the_limit_of_notes_is_permanent_and_says_so(server: HttpServer, api: PagerDutyApiFake) -> None:
    api.notes["Q1"] = [note("x", author="PHUMAN")] * 2_000
    with pytest.raises(Permanent, match="Too many notes"):
        source(server.url).publish(alert(), report(), previous=None, deadline=SOON)


@pytest.mark.parametrize("body", [b"<html>", {}, {"notes": None}, [], {"note": {}}])
def test_unreadable_notes_are_not_no_notes(server: HttpServer, api: PagerDutyApiFake, body: object) -> None:
    api.before = lambda request: Reply(200, body) if request.path.endswith("/notes") else None
    with pytest.raises(Transient):
        source(server.url).find(alert(), deadline=SOON)


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("letter", ["a", "é", "日", "𝄞"])
def test_a_note_is_cut_at_the_limit_exactly(server: HttpServer, api: PagerDutyApiFake, letter: str, extra: int) -> None:
    def of(paragraphs: int, last: int) -> Report:
        return report(body="\n\n".join([*[letter * 90] * paragraphs, letter * last]))

    pagerduty = source(server.url, max_note_chars=4_000)
    pagerduty.publish(alert(), of(10, 1), previous=None, deadline=SOON)
    missing = 4_000 - len(api.notes["Q1"][0]["content"])
    whole, last = divmod(missing + extra + 1, 91)
    pagerduty.publish(alert(), of(10 + whole, last), previous=None, deadline=SOON)
    content = api.notes["Q1"][1]["content"]
    assert (NOTE in content) is (extra == 1)
    assert len(content) <= 4_000
    assert extra == 1 or len(content) == 4_000 + extra
    assert content.splitlines()[-1] == MARKER


def test_the_note_is_plain_text(server: HttpServer, api: PagerDutyApiFake) -> None:
    source(server.url).publish(alert(), report(), previous=None, deadline=SOON)
    content = api.notes["Q1"][0]["content"]
    assert content.startswith("Likely cause: checkout answers 503")
    assert "**" not in content
    assert "```" not in content


@given(st.text(min_size=1, max_size=40).filter(lambda text: text.strip(".")))
def test_any_id_stays_one_part_of_the_path(native: str) -> None:
    from sources.pagerduty.source import _incident

    assert _incident(native).count("/") == 2
    assert set(_incident(native)[11:]).isdisjoint("?#/ ")
