"""PagerDuty's webhooks v3: signatures and events."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from agent.alert import Alert, Status
from sources.configs import PagerDutyConfig
from sources.pagerduty.incidents import read
from sources.pagerduty.source import PagerDuty
from sources.port import Malformed, Unauthorised
from tests.support.pagerduty_api import incident
from tests.support.shared import needs_shared, shared_file

SECRETS = ("first-secret", "second-secret")


def source(**options) -> PagerDuty:
    config = {"token": "t", "from_email": "bot@example.org", "webhook_secrets": SECRETS, **options}
    return PagerDuty("pd", PagerDutyConfig(**config))


def signature(body: bytes, secret: str = SECRETS[0]) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def event(kind: str = "incident.triggered", data: Any = None, **changes) -> dict[str, Any]:
    data = incident("Q1") if data is None else data
    return {
        "event": {"id": "01EVENT", "event_type": kind, "occurred_at": "2031-02-03T12:00:00Z", "data": data, **changes}
    }


def deliver(document: Any, pagerduty: PagerDuty | None = None, webhook_id: str = "W1"):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    given = {"x-pagerduty-signature": f"v1={signature(body)}", "x-webhook-id": webhook_id}
    return (pagerduty or source()).receive(given, body)


BODY = json.dumps(event(data=incident("Q1", title="Ünïcode 🔥")), ensure_ascii=False, indent=3).encode() + b"\n "
GOOD, OTHER = signature(BODY), signature(BODY, SECRETS[1])


@pytest.mark.parametrize("header", [
    f"v1={GOOD}", f"v1={OTHER}", f"v1={'0' * 64},v1={GOOD}", f"v1={GOOD},v1={'0' * 64}", f"v2=x,v1={GOOD}",
    f" v1={GOOD} , v1=bad", f"v1={GOOD.upper()}",
])  # fmt: skip
def test_any_fitting_signature_over_the_raw_bytes_will_do(header: str) -> None:
    delivery = source().receive({"x-pagerduty-signature": header}, BODY)
    assert delivery.alerts[0].title == "Ünïcode 🔥"


@pytest.mark.parametrize("header", [
    "", "v1=", GOOD, f"v2={GOOD}", f"v1={GOOD[:-1]}", f"v1={'0' * 64}", "v1=é☃", f"v1={GOOD};v1={GOOD}", "\ud800",
])  # fmt: skip
def test_a_delivery_without_a_fitting_signature_is_refused(header: str) -> None:
    with pytest.raises(Unauthorised):
        source().receive({"x-pagerduty-signature": header}, BODY)


def test_a_body_that_was_changed_is_refused() -> None:
    with pytest.raises(Unauthorised):
        source().receive({"x-pagerduty-signature": f"v1={GOOD}"}, BODY + b" ")


def test_a_delivery_without_the_header_is_refused() -> None:
    with pytest.raises(Unauthorised):
        source().receive({}, BODY)


def test_without_a_configured_secret_nothing_is_taken() -> None:
    body = b"{}"
    with pytest.raises(Unauthorised):
        source(webhook_secrets=()).receive({"x-pagerduty-signature": f"v1={signature(body, '')}"}, body)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"event": 1}', b'{"event": {}}', b"[" * 50_000, b"\xff"])
def test_a_signed_body_that_is_no_event_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        deliver(body)


def test_push_and_poll_give_the_same_key() -> None:
    pushed = deliver(event(data={**incident("Q1"), "number": 1})).alerts[0]
    polled = read("pd", incident("Q1"))
    assert isinstance(polled, Alert)
    assert (pushed.key, pushed.fingerprint, pushed.starts_at) == (polled.key, polled.fingerprint, polled.starts_at)


def test_the_delivery_is_known_by_its_webhook_id_else_by_the_event() -> None:
    assert deliver(event()).delivery_id == "W1"
    assert deliver(event(), webhook_id="").delivery_id == "01EVENT"


@pytest.mark.parametrize(("kind", "status"), [
    ("incident.triggered", Status.OPEN), ("incident.reopened", Status.OPEN), ("incident.escalated", Status.OPEN),
    ("incident.priority_updated", Status.OPEN), ("incident.resolved", Status.RESOLVED),
])  # fmt: skip
def test_incident_events_are_alerts(kind: str, status: Status) -> None:
    (alert,) = deliver(event(kind)).alerts
    assert (alert.id, alert.status) == ("Q1", status)


@pytest.mark.parametrize(
    "kind", ["pagey.ping", "service.updated", "incident.responder.added", "incident.unheard_of", ""]
)
def test_other_events_are_ignored_with_the_reason(kind: str) -> None:
    delivery = deliver(event(kind, data={"type": "ping"}))
    assert (delivery.alerts, delivery.broken) == ((), ())
    assert "tells of no incident" in delivery.ignored


def test_our_own_note_is_ignored_and_so_is_anybodys() -> None:
    ours = deliver(event("incident.annotated", {"content": "report\nrootcaused:v1:abc"}))
    theirs = deliver(event("incident.annotated", {"content": "restarting"}))
    assert ours.ignored == "our own note"
    assert "a note" in theirs.ignored
    assert (ours.alerts, theirs.alerts) == ((), ())


@pytest.mark.parametrize("data", [None, [], {}, "x", {"id": 3}])
def test_an_event_with_unreadable_data_is_quarantined(data: Any) -> None:
    document = event()
    document["event"]["data"] = data
    assert len(deliver(document).broken) == 1


@pytest.mark.parametrize("options", [{"service_ids": "POTHER"}, {"team_ids": "PT"}, {"urgencies": ["low"]}])
def test_the_selection_of_the_poll_holds_for_pushes(options: dict[str, Any]) -> None:
    delivery = deliver(event(), source(**options))
    assert delivery.alerts == ()
    assert "not among" in delivery.ignored or "no team" in delivery.ignored


@needs_shared
@pytest.mark.parametrize(("name", "native"), [
    ("v3.incident.triggered", "PFQZPSY"), ("v3.incident.priority_updated", "PGR0VU2"),
])  # fmt: skip
def test_recorded_incident_events_are_read(name: str, native: str) -> None:
    (alert,) = deliver(shared_file(f"specs/pagerduty/webhooks/{name}.json").read_bytes()).alerts
    assert alert.id == native
    assert alert.service
    assert alert.url.startswith("https://acme.pagerduty.com/incidents/")


@needs_shared
@pytest.mark.parametrize("name", ["v3.incident.annotated", "v3.service.updated"])
def test_other_recorded_events_are_ignored(name: str) -> None:
    assert deliver(shared_file(f"specs/pagerduty/webhooks/{name}.json").read_bytes()).ignored
