"""Webhooks of OpsGenie and of JSM Operations: the shared secret and the actions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.alert import Severity, Status
from sources.opsgenie.source import OpsAlerts
from sources.port import Delivery, Malformed, Unauthorised
from tests.support.opsgenie_api import NOW, ops_alert
from tests.support.opsgenie_sources import SOON, WEBHOOK_TOKEN, Kind, only, opsgenie
from tests.support.shared import needs_shared, shared_file

MILLISECONDS = int(NOW.timestamp() * 1_000)


def event(action: str = "Create", **changes: Any) -> dict[str, Any]:
    alert = {
        "alertId": "A1",
        "message": "A1 is down",
        "tags": ["vip"],
        "tinyId": "7",
        "source": "prometheus",
        "entity": "checkout",
        "alias": "alias-A1",
        "createdAt": MILLISECONDS,
        "updatedAt": MILLISECONDS * 1_000_000 + 110,
        "insertedAt": MILLISECONDS * 1_000_000 + 110,
        "username": "ann@example.org",
        "teams": [],
        "priority": 3,
        **changes,
    }
    return {"action": action, "alert": alert, "source": {"name": "web", "type": "API"}, "integrationName": "Webhook"}


@pytest.fixture
def source(kind: Kind) -> OpsAlerts:
    """A delivery is read without a word to the system."""
    return kind.build("http://127.0.0.1:9")


def deliver(
    source: OpsAlerts, document: Any, token: str = WEBHOOK_TOKEN, header: str = "x-rootcaused-token"
) -> Delivery:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return source.receive({header: token}, body)


def test_the_shared_secret_lets_a_delivery_in(source) -> None:
    assert [alert.id for alert in deliver(source, event()).alerts] == ["A1"]


@pytest.mark.parametrize(
    "token", ["", "wrong", WEBHOOK_TOKEN[:-1], WEBHOOK_TOKEN + " ", WEBHOOK_TOKEN.upper(), "é", "\ud800"]
)
def test_a_delivery_with_another_secret_is_refused(source, token) -> None:
    with pytest.raises(Unauthorised):
        deliver(source, event(), token)


def test_a_delivery_without_the_header_is_refused(source) -> None:
    with pytest.raises(Unauthorised):
        source.receive({"x-other": WEBHOOK_TOKEN}, json.dumps(event()).encode())


@pytest.mark.parametrize("token", ["", "x"])
def test_without_a_configured_secret_nothing_is_taken(kind, token) -> None:
    with pytest.raises(Unauthorised):
        deliver(kind.build("http://127.0.0.1:9", webhook_token=None), event(), token)


def test_the_header_may_be_configured(kind) -> None:
    source = kind.build("http://127.0.0.1:9", webhook_header="X-Ops-Key")
    assert deliver(source, event(), header="x-ops-key").alerts
    with pytest.raises(Unauthorised):
        deliver(source, event())


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"action": 1}', b"[" * 50_000, b"\xff", b'"x"'])
def test_a_body_that_is_no_action_is_malformed(source, body: bytes) -> None:
    with pytest.raises(Malformed):
        deliver(source, body)


def test_push_and_poll_give_the_same_alert(api, server, kind) -> None:
    source = kind.build(server.url)
    api.alerts = [ops_alert("A1", createdAt="2031-02-03T12:00:00.000Z", priority="P3")]
    polled = only(source.poll("", deadline=SOON))
    (pushed,) = deliver(source, event()).alerts
    for name in ("key", "fingerprint", "starts_at", "title", "severity", "status", "service", "url"):
        assert getattr(pushed, name) == getattr(polled, name), name


@pytest.mark.parametrize(("action", "status"), [
    ("Create", Status.OPEN), ("Acknowledge", Status.ACKNOWLEDGED), ("UnAcknowledge", Status.OPEN),
    ("Close", Status.RESOLVED), ("close", Status.RESOLVED),
])  # fmt: skip
def test_the_action_says_what_state_the_alert_is_in(source, action: str, status: Status) -> None:
    (alert,) = deliver(source, event(action)).alerts
    assert (alert.id, alert.status) == ("A1", status)
    assert (alert.ends_at is not None) is (status is Status.RESOLVED)


@pytest.mark.parametrize(
    "action", ["AddTags", "EscalateNext", "Delete", "Snooze", "UpdatePriority", "AssignOwnership", "", "☃"]
)
def test_other_actions_are_ignored_with_the_reason(source, action: str) -> None:
    delivery = deliver(source, event(action))
    assert (delivery.alerts, delivery.broken) == ((), ())
    assert "tells of no new state" in delivery.ignored


def test_our_own_note_is_ignored_and_so_is_anybodys(source) -> None:
    ours = deliver(source, event("AddNote", note="report\nrootcaused:v1:abc"))
    theirs = deliver(source, event("AddNote", note="restarting"))
    assert ours.ignored == "our own note"
    assert "a note" in theirs.ignored
    assert (ours.alerts, theirs.alerts) == ((), ())


@pytest.mark.parametrize("alert", [None, [], {}, "x", {"alertId": 3}, {"alertId": None}, {"alertId": "."}])
def test_an_action_with_an_unreadable_alert_is_quarantined(source, alert: Any) -> None:
    assert len(deliver(source, {**event(), "alert": alert}).broken) == 1


def test_the_same_bytes_are_the_same_delivery(source) -> None:
    first, again, other = (deliver(source, event(message=message)) for message in ("a", "a", "b"))
    assert first.delivery_id == again.delivery_id != other.delivery_id
    assert deliver(source, event("AddTags")).delivery_id


@pytest.mark.parametrize("created", [
    MILLISECONDS, float(MILLISECONDS), str(MILLISECONDS), MILLISECONDS // 1_000, MILLISECONDS * 1_000,
    MILLISECONDS * 1_000_000, str(MILLISECONDS * 1_000_000), "2031-02-03T12:00:00Z", "2031-02-03T13:00:00.000+01:00",
])  # fmt: skip
def test_a_time_is_read_in_whatever_unit_it_comes(source, created: Any) -> None:
    (alert,) = deliver(source, event(createdAt=created)).alerts
    assert alert.starts_at == NOW


@pytest.mark.parametrize("created", [
    None, True, "", "soon", -1, 0, [], {}, 10**400, "9" * 400, "٣", float("inf"), float("nan"), 1e308,
])  # fmt: skip
def test_an_impossible_time_costs_only_the_time(source, created: Any) -> None:
    (alert,) = deliver(source, event(createdAt=created)).alerts
    assert alert.id == "A1"


@pytest.mark.parametrize(("priority", "severity"), [
    ("P1", Severity.CRITICAL), ("P2", Severity.ERROR), ("P3", Severity.WARNING), ("P4", Severity.INFO),
    ("P5", Severity.INFO), (1, Severity.CRITICAL), (3, Severity.WARNING), ("2", Severity.ERROR),
    ("p1", Severity.CRITICAL), (None, Severity.UNKNOWN), (9, Severity.UNKNOWN), ("", Severity.UNKNOWN),
    ([], Severity.UNKNOWN), (True, Severity.UNKNOWN),
])  # fmt: skip
def test_the_severity_is_the_priority(source, priority: Any, severity: Severity) -> None:
    (alert,) = deliver(source, event(priority=priority)).alerts
    assert alert.severity is severity


def test_labels_come_from_details_and_tags(source) -> None:
    details = {"namespace": "shop", "env": "from the monitor", "log": "x" * 300, "pool": {"size": 5}}
    changes: dict[str, Any] = {"tags": ["vip", "env:prod", "tier=gold", "https://x.example/y", 7], "details": details}
    (alert,) = deliver(source, event(**changes, teams=[{"name": "Payments"}, {"id": "T2"}, "T3"])).alerts
    wanted = {
        "namespace": "shop",
        "env": "from the monitor",
        "tier": "gold",
        "team": "Payments, T2, T3",
        "priority": "P3",
    }
    assert wanted.items() <= alert.labels.items()
    assert alert.labels["tags"] == "vip, https://x.example/y, 7"
    assert "log" not in alert.labels
    assert "log: xxx" in alert.body


@pytest.mark.parametrize(("changes", "service"), [
    ({"entity": "db-1", "details": {"service": "checkout"}}, "db-1"),
    ({"entity": "", "details": {"service": "checkout"}}, "checkout"),
    ({"entity": " ", "details": {"app": "shop"}, "tags": ["service:pay"]}, "shop"),
    ({"entity": None, "tags": ["service:pay"]}, "pay"),
    ({"entity": None, "extraProperties": {"component": "mail"}}, "mail"),
    ({"entity": None}, ""),
])  # fmt: skip
def test_the_service_is_the_entity_else_what_details_or_tags_name(source, changes, service: str) -> None:
    assert deliver(source, event(**changes)).alerts[0].service == service


@needs_shared
def test_the_recorded_create_is_read() -> None:
    source = opsgenie("https://api.opsgenie.com")
    (alert,) = deliver(source, shared_file("specs/opsgenie/webhooks/create.json").read_bytes()).alerts
    assert alert.key == "ops:ec03dad6-62c8-4c94-b38b-d88f398e900f"
    assert (alert.severity, alert.service, alert.fingerprint) == (Severity.WARNING, "Server", "alert-alias")
    assert alert.starts_at is not None
    assert alert.updated_at is not None
    assert alert.starts_at.isoformat() == "2017-08-14T11:25:56.288000+00:00"
    assert alert.updated_at == alert.starts_at


@needs_shared
def test_the_recorded_note_is_ignored(source) -> None:
    assert deliver(source, shared_file("specs/opsgenie/webhooks/addnote.json").read_bytes()).ignored
