"""GitHub's webhooks: signatures and events."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from agent.alert import Alert, Status
from sources.github.config import GitHubConfig
from sources.github.issues import read
from sources.github.source import GitHub
from sources.port import Malformed, Unauthorised
from tests.support.github_api import ANN, APP_BOT, as_pull_request, issue
from tests.support.shared import needs_shared, shared_file

SECRETS = ("first-secret", "second-secret")
BOT = {"login": "alertbot[bot]", "id": 5, "type": "Bot"}


def config(**options: Any) -> GitHubConfig:
    fields = {"token": "t", "repositories": ["acme/shop"], "labels": ["alert"], "webhook_secrets": SECRETS}
    return GitHubConfig(**{**fields, **options})


def signature(body: bytes, secret: str = SECRETS[0]) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def payload(action: str = "opened", item: Any = None, **changes: Any) -> dict[str, Any]:
    repository = {"full_name": "Acme/Shop"}
    return {"action": action, "issue": item or issue(1), "repository": repository, "sender": ANN, **changes}


def deliver(document: Any, event: str = "issues", **options: Any):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    headers = {"x-hub-signature-256": signature(body), "x-github-event": event, "x-github-delivery": "D-1"}
    return GitHub("gh", config(**options)).receive(headers, body)


BODY = json.dumps(payload(item=issue(1, title="Ünïcode 🔥")), ensure_ascii=False, indent=3).encode() + b"\n "
GOOD, OTHER = signature(BODY), signature(BODY, SECRETS[1])


@pytest.mark.parametrize("header", [GOOD, OTHER, f" {GOOD} ", GOOD.upper()])
def test_a_signature_by_any_secret_over_the_raw_bytes_will_do(header: str) -> None:
    headers = {"x-hub-signature-256": header, "x-github-event": "issues"}
    assert GitHub("gh", config()).receive(headers, BODY).alerts[0].title == "Ünïcode 🔥"


@pytest.mark.parametrize("header", [
    "", "sha256=", GOOD[7:], GOOD.replace("sha256", "sha1"), GOOD[:-1], "sha256=" + "0" * 64, "sha256=é☃", "\ud800",
    f"{GOOD},{GOOD}",
])  # fmt: skip
def test_a_delivery_without_a_fitting_signature_is_refused(header: str) -> None:
    with pytest.raises(Unauthorised):
        GitHub("gh", config()).receive({"x-hub-signature-256": header, "x-github-event": "issues"}, BODY)


@pytest.mark.parametrize("headers", [{}, {"x-hub-signature": "sha1=x"}])
def test_a_delivery_without_the_header_or_with_a_changed_body_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Unauthorised):
        GitHub("gh", config()).receive(headers, BODY)
    with pytest.raises(Unauthorised):
        GitHub("gh", config()).receive({"x-hub-signature-256": GOOD}, BODY + b" ")


def test_without_a_configured_secret_nothing_is_taken() -> None:
    with pytest.raises(Unauthorised):
        GitHub("gh", config(webhook_secrets=())).receive({"x-hub-signature-256": signature(b"{}", "")}, b"{}")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"[" * 50_000, b"\xff", b"payload=%7B%7D"])
def test_a_signed_body_that_is_no_payload_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        deliver(body)


def test_a_form_says_what_to_set() -> None:
    with pytest.raises(Malformed, match="content type to application/json"):
        deliver(b"payload=%7B%22action%22%3A1%7D")


@pytest.mark.parametrize(("action", "state", "status"), [
    ("opened", "open", Status.OPEN), ("reopened", "open", Status.OPEN), ("labeled", "open", Status.OPEN),
    ("edited", "open", Status.OPEN), ("closed", "closed", Status.RESOLVED), ("labeled", "closed", Status.RESOLVED),
])  # fmt: skip
def test_issue_events_are_alerts(action: str, state: str, status: Status) -> None:
    delivery = deliver(payload(action, issue(1, state=state)))
    assert delivery.delivery_id == "D-1"
    assert [(alert.key, alert.status) for alert in delivery.alerts] == [("gh:acme/shop#1", status)]


def test_push_and_poll_give_the_same_alert() -> None:
    (pushed,) = deliver(payload()).alerts
    polled = read("gh", "acme/shop", issue(1), config())
    assert isinstance(polled, Alert)
    assert pushed == polled


@pytest.mark.parametrize("action", ["unlabeled", "assigned", "deleted", "transferred", "pinned", "", None, 3])
def test_other_actions_are_ignored_with_the_reason(action: Any) -> None:
    delivery = deliver(payload(action))
    assert (delivery.alerts, delivery.broken) == ((), ())
    assert "tells of no alert" in delivery.ignored


@pytest.mark.parametrize(("event", "reason"), [
    ("ping", "a ping"), ("push", "'push' tells of no issue"), ("pull_request", "tells of no issue"),
    ("installation_repositories", "tells of no issue"), ("", "tells of no issue"), ("x" * 200, "tells of no issue"),
])  # fmt: skip
def test_other_events_are_ignored_with_the_reason(event: str, reason: str) -> None:
    delivery = deliver({"zen": "x"}, event)
    assert reason in delivery.ignored
    assert len(delivery.ignored) < 120


@pytest.mark.parametrize(("body", "sender", "reason"), [
    ("report\n<!-- rootcaused:v1:abc -->", APP_BOT, "our own comment"),
    ("deployed", BOT, "a bot's comment"),
    ("restarting", ANN, "a comment; comments are read"),
    (None, ANN, "a comment; comments are read"),
])  # fmt: skip
def test_comments_are_ignored_ours_above_all(body: Any, sender: Any, reason: str) -> None:
    delivery = deliver(payload("created", comment={"body": body}, sender=sender), "issue_comment")
    assert delivery.alerts == ()
    assert reason in delivery.ignored


def test_a_bot_may_open_an_issue_but_its_edits_are_left_to_the_poll() -> None:
    assert deliver(payload("opened", sender=BOT)).alerts
    assert "a bot's edit" in deliver(payload("edited", sender=BOT)).ignored


@pytest.mark.parametrize(("document", "options", "reason"), [
    (payload(repository={"full_name": "acme/other"}), {}, "not among repositories"),
    (payload(repository=None), {}, "not among repositories"),
    (payload(repository={"full_name": 3}), {}, "not among repositories"),
    (payload(item=issue(1, labels=["bug"])), {}, "not have all of labels"),
    (payload(), {"labels": ["alert", "prod"]}, "not have all of labels"),
    (payload(), {"labels": (), "search": "label:x"}, "the next poll finds it"),
    (payload(item=as_pull_request(issue(1))), {}, "a pull request"),
])  # fmt: skip
def test_the_selection_of_the_poll_holds_for_pushes(document: Any, options: dict[str, Any], reason: str) -> None:
    delivery = deliver(document, **options)
    assert delivery.alerts == ()
    assert reason in delivery.ignored


@pytest.mark.parametrize("item", [None, [], "x", {"number": "1", "labels": [{"name": "alert"}]}])
def test_an_event_with_an_unreadable_issue_is_quarantined(item: Any) -> None:
    document = payload()
    document["issue"] = item
    delivery = deliver(document)
    assert (len(delivery.broken), delivery.alerts) == (1, ())


RECORDED: dict[str, Any] = {"repositories": ["Codertocat/Hello-World"], "labels": ["bug"]}


@needs_shared
@pytest.mark.parametrize("name", ["opened", "reopened", "labeled", "edited", "opened.with-organization"])
def test_recorded_issue_events_are_read(name: str) -> None:
    (alert,) = deliver(shared_file(f"specs/github/webhooks/issues.{name}.json").read_bytes(), **RECORDED).alerts
    assert alert.id == "codertocat/hello-world#1"
    assert alert.title == "Spelling error in the README file"
    assert alert.url == "https://github.com/Codertocat/Hello-World/issues/1"
    assert alert.starts_at is not None


@needs_shared
@pytest.mark.parametrize("name", ["created", "created.with-installation", "edited"])
def test_recorded_comments_are_ignored(name: str) -> None:
    body = shared_file(f"specs/github/webhooks/issue_comment.{name}.json").read_bytes()
    assert "a comment" in deliver(body, "issue_comment", **RECORDED).ignored
