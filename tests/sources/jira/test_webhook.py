"""Jira's webhooks: signatures and events."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from agent.alert import Status
from sources.jira.source import Jira
from sources.port import Delivery, Malformed, Unauthorised
from tests.support.jira_api import JiraApiFake, jira
from tests.support.shared import needs_shared, shared_file

SECRETS = ("first-secret", "second-secret")


def source(**options: Any) -> Jira:
    return jira("https://acme.atlassian.net", **{"webhook_secrets": SECRETS, **options})


def signature(body: bytes, secret: str = SECRETS[0]) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def issue(category: str = "new", **changes: Any) -> dict[str, Any]:
    """As in version 2: a description that is a string."""
    api = JiraApiFake(cloud=False)
    native = api.add(statuscategory=category)
    return {"id": native, "key": "OPS-1", "fields": {**api.fields(api.issues[native]), **changes}}


def event(kind: str = "jira:issue_created", **changes: Any) -> dict[str, Any]:
    return {"timestamp": 1_927_886_400_000, "webhookEvent": kind, "issue": issue(), **changes}


def deliver(document: Any, to: Jira | None = None) -> Delivery:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    given = {"x-hub-signature": signature(body), "x-atlassian-webhook-identifier": "W1"}
    return (to or source()).receive(given, body)


BODY = json.dumps(event(issue=issue(summary="Ünïcode 🔥")), ensure_ascii=False, indent=3).encode() + b"\n "
GOOD, OTHER = signature(BODY), signature(BODY, SECRETS[1])


@pytest.mark.parametrize("header", [GOOD, OTHER, f" {GOOD} ", GOOD.upper().replace("SHA", "sha"), GOOD.upper()])
def test_a_signature_over_the_raw_bytes_by_either_secret_will_do(header: str) -> None:
    assert source().receive({"x-hub-signature": header}, BODY).alerts[0].title == "Ünïcode 🔥"


@pytest.mark.parametrize("header", [
    "", "sha256=", GOOD[7:], f"sha1={GOOD[7:]}", GOOD[:-1], f"sha256={'0' * 64}", "sha256=é☃", "\ud800", f"{GOOD}0",
])  # fmt: skip
def test_a_delivery_without_a_fitting_signature_is_refused(header: str) -> None:
    with pytest.raises(Unauthorised):
        source().receive({"x-hub-signature": header}, BODY)


def test_a_body_that_was_changed_or_not_signed_is_refused() -> None:
    with pytest.raises(Unauthorised):
        source().receive({"x-hub-signature": GOOD}, BODY + b" ")
    with pytest.raises(Unauthorised):
        source().receive({}, BODY)


def test_without_a_configured_secret_nothing_is_taken() -> None:
    with pytest.raises(Unauthorised):
        source(webhook_secrets=()).receive({"x-hub-signature": signature(b"{}", "")}, b"{}")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"webhookEvent": 1}', b"[" * 50_000, b"\xff"])
def test_a_signed_body_that_is_no_event_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        deliver(body)


def test_push_and_poll_give_the_same_alert() -> None:
    for cloud in (True, False):
        api = JiraApiFake(cloud=cloud)
        native = api.add()
        polled_form = api.shown(api.issues[native], list(api.fields(api.issues[native])))
        (pushed,) = deliver(event()).alerts
        (polled,) = source()._page([polled_form]).alerts
        assert pushed.model_dump(exclude={"raw"}) == polled.model_dump(exclude={"raw"})


def test_the_delivery_is_known_by_its_identifier() -> None:
    assert deliver(event()).delivery_id == "W1"
    assert deliver(event("comment_created")).delivery_id == "W1"


@pytest.mark.parametrize("kind", ["jira:issue_created", "jira:issue_updated"])
@pytest.mark.parametrize(("category", "status"), [
    ("new", Status.OPEN), ("indeterminate", Status.ACKNOWLEDGED), ("done", Status.RESOLVED),
])  # fmt: skip
def test_issue_events_are_alerts(kind: str, category: str, status: Status) -> None:
    (alert,) = deliver(event(kind, issue=issue(category))).alerts
    assert (alert.key, alert.status) == ("jira:10000", status)


@pytest.mark.parametrize(("kind", "words"), [
    ("jira:issue_deleted", "was deleted"), ("jira:version_released", "tells of no issue"), ("", "tells of no issue"),
    ("user_created", "tells of no issue"), ("x" * 500, "tells of no issue"),
])  # fmt: skip
def test_other_events_are_ignored_with_the_reason(kind: str, words: str) -> None:
    delivery = deliver(event(kind))
    assert (delivery.alerts, delivery.broken) == ((), ())
    assert words in delivery.ignored
    assert len(delivery.ignored) < 200


@pytest.mark.parametrize("kind", ["comment_created", "comment_updated", "comment_deleted"])
def test_comments_are_ignored_and_ours_is_named(kind: str) -> None:
    ours = deliver(event(kind, comment={"body": "report\nrootcaused:v1:abc"}))
    theirs = deliver(event(kind, comment={"body": "restarting"}))
    assert ours.ignored == "our own comment"
    assert "a comment" in theirs.ignored
    assert (ours.alerts, theirs.alerts) == ((), ())


@pytest.mark.parametrize("about", ["issue_commented", "issue_comment_edited", "issue_comment_deleted", None])
def test_the_change_of_an_issue_by_a_comment_does_not_start_us_again(about: str) -> None:
    ours = event(
        "jira:issue_updated", issue_event_type_name=about, comment={"body": "*report*\r\nrootcaused:v1:abc\r\n"}
    )
    assert deliver(ours).ignored == "our own comment"


def test_a_comment_made_while_reopening_is_a_change() -> None:
    both = event(
        "jira:issue_updated",
        issue_event_type_name="issue_commented",
        comment={"body": "again"},
        changelog={"items": [{"field": "status"}]},
    )
    assert len(deliver(both).alerts) == 1


@pytest.mark.parametrize("broken", [None, [], {}, "x", {"id": 3}, {"id": "3"}])
def test_an_event_with_an_unreadable_issue_is_quarantined(broken: Any) -> None:
    assert len(deliver(event(issue=broken)).broken) == 1


def test_the_projects_of_the_poll_hold_for_pushes() -> None:
    assert deliver(event(), source(projects="OTHER")).ignored == "the project is not among projects"
    assert len(deliver(event(), source(projects="ops")).alerts) == 1


@needs_shared
def test_the_recorded_issue_is_read() -> None:
    body = shared_file("specs/jira/webhooks/issue_created.json").read_bytes()
    (alert,) = deliver(body, source(projects="BUG")).alerts
    assert (alert.id, alert.title, alert.body) == ("10400", "New bug with hook", "Fix me please")
    assert (alert.status, alert.severity.value) == (Status.OPEN, "error")
    assert alert.url == "https://acme.atlassian.net/browse/BUG-15"


@needs_shared
def test_the_recorded_comment_is_ignored() -> None:
    body = shared_file("specs/jira/webhooks/comment_created.json").read_bytes()
    assert "a comment" in deliver(body).ignored
