"""Alerts from Alertmanager: API v2 and webhook v4."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.alert import Alert, Severity, Status
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from sources.alertmanager.alerts import fingerprint_of, identity, read
from sources.alertmanager.source import Alertmanager, split_matchers
from sources.configs import AlertmanagerConfig
from sources.port import Broken, Malformed, Unauthorised
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.shared import needs_shared, shared_file

SOON = Deadline.never()
TOKEN = "hook-token-123456"
CAPTURED = "specs/alertmanager/captured"


def item(name: str = "HighErrorRate", **changes: Any) -> dict[str, Any]:
    """As the API lists it."""
    labels = {"alertname": name, "severity": "critical", "job": "payments-api"}
    return {
        "annotations": {"summary": "5xx ratio 12%"},
        "endsAt": "2031-02-03T12:05:00.000Z",
        "fingerprint": fingerprint_of(labels),
        "receivers": [{"name": "rootcaused"}],
        "startsAt": "2031-02-03T12:00:00.123Z",
        "status": {"inhibitedBy": [], "silencedBy": [], "state": "active"},
        "updatedAt": "2031-02-03T12:00:01.000Z",
        "generatorURL": "http://prometheus.example.org/graph?g0.expr=up",
        "labels": labels,
        **changes,
    }


def pushed(**changes: Any) -> dict[str, Any]:
    """The same alert as a webhook sends it."""
    item_ = {
        **item(),
        "status": "firing",
        "endsAt": "0001-01-01T00:00:00Z",
        "startsAt": "2031-02-03T12:00:00.123456789Z",
    }
    for name in ("receivers", "updatedAt"):
        del item_[name]
    return {**item_, **changes}


def group(*alerts: Any, **changes: Any) -> bytes:
    return json.dumps({"version": "4", "status": "firing", "alerts": alerts, "truncatedAlerts": 0, **changes}).encode()


class Member:
    """An Alertmanager: lists `alerts`, and says when it was started."""

    def __init__(self, *alerts: Any, started: str = "2031-01-01T00:00:00.000Z") -> None:
        self.alerts, self.started = alerts, started

    def __call__(self, request: Request) -> Reply:
        if request.path.endswith("/api/v2/status"):
            return Reply(200, {"uptime": self.started})
        return Reply(200, list(self.alerts))


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer(Member(item())) as running:
        yield running


@pytest.fixture
def second() -> Iterator[HttpServer]:
    with HttpServer(Member(item())) as running:
        yield running


def source(url: str = "http://127.0.0.1:9", **options: Any) -> Alertmanager:
    return Alertmanager("am", AlertmanagerConfig(url=url, webhook_token=TOKEN, **options), sleep=lambda seconds: None)


def polled(alertmanager: Alertmanager) -> list[Alert]:
    return [alert for page in alertmanager.poll("", deadline=SOON) for alert in page.alerts]


def deliver(body: bytes, header: str = f"Bearer {TOKEN}"):
    return source().receive({"authorization": header}, body)


def test_a_listed_alert_is_read(server: HttpServer) -> None:
    (alert,) = polled(source(server.url))
    assert alert.id == f"{item()['fingerprint']}-20310203T120000.123Z"
    assert alert.title == "HighErrorRate: 5xx ratio 12%"
    assert alert.service == "payments-api"
    assert alert.severity is Severity.CRITICAL
    assert alert.url == "http://prometheus.example.org/graph?g0.expr=up"
    assert (alert.status, alert.ends_at) == (Status.OPEN, None)
    assert alert.starts_at == datetime(2031, 2, 3, 12, 0, 0, 123_000, tzinfo=UTC)


def test_only_what_fires_and_is_not_silenced_is_asked_for(server: HttpServer) -> None:
    polled(source(f"{server.url}/alertmanager/", matchers=['severity="critical"', 'team=~"a=b|c"'], receiver="ops"))
    (request,) = server.requests
    assert request.path == "/alertmanager/api/v2/alerts"
    assert request.query == {
        "active": ["true"],
        "silenced": ["false"],
        "inhibited": ["false"],
        "unprocessed": ["true"],
        "filter": ['severity="critical"', 'team=~"a=b|c"'],
        "receiver": ["ops"],
    }


def test_the_cursor_comes_with_the_last_page(server: HttpServer) -> None:
    server.answer = Member(*(item(f"A{n}") for n in range(250)))
    pages = list(source(server.url).poll("", deadline=SOON))
    assert [len(page.alerts) for page in pages] == [100, 100, 50, 0]
    assert [bool(page.cursor) for page in pages] == [False, False, False, True]


def test_push_and_poll_give_the_same_key_whatever_the_precision(server: HttpServer) -> None:
    (listed,) = polled(source(server.url))
    (alert,) = deliver(group(pushed())).alerts
    assert alert.key == listed.key
    assert alert.fingerprint == listed.fingerprint


def test_a_new_episode_is_a_new_alert_of_the_same_fingerprint() -> None:
    first, again = deliver(group(pushed(), pushed(startsAt="2031-02-03T13:00:00Z"))).alerts
    assert first.fingerprint == again.fingerprint
    assert first.key != again.key


@given(st.datetimes(timezones=st.just(UTC)))
def test_milliseconds_name_an_episode(at: datetime) -> None:
    cut = at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert identity("f", at) == identity("f", cut)


@pytest.mark.parametrize("starts", [
    "2031-02-03T20:00:00.123456789+08:00", "2031-02-03T12:00:00.123Z", "2031-02-03t12:00:00.1234z",
])  # fmt: skip
def test_a_start_in_any_zone_is_the_same_start(starts: str) -> None:
    assert deliver(group(pushed(startsAt=starts))).alerts[0].id.endswith("-20310203T120000.123Z")


@pytest.mark.parametrize("starts", [None, "", "soon", 1_927_972_800, "0001-01-01T00:00:00Z"])
def test_an_unreadable_start_costs_the_time_not_the_alert(starts: object) -> None:
    (alert,) = deliver(group(pushed(startsAt=starts))).alerts
    assert alert.starts_at is None
    assert "startsAt" in alert.annotations["rootcaused_warning"]


def test_each_alert_of_a_group_has_its_own_status() -> None:
    ended = pushed(status="resolved", endsAt="2031-02-03T12:01:00Z")
    first, other = deliver(group(ended, pushed(startsAt="2031-02-03T12:02:00Z"))).alerts
    assert (first.status, first.ends_at) == (Status.RESOLVED, datetime(2031, 2, 3, 12, 1, tzinfo=UTC))
    assert (other.status, other.ends_at) == (Status.OPEN, None)


@pytest.mark.parametrize("ends", ["2031-02-03T11:00:00Z", "2031-02-03T12:00:00.123Z", "0001-01-01T00:00:00Z", None])
def test_an_alert_never_ends_before_it_starts(ends: object) -> None:
    (alert,) = deliver(group(pushed(status="resolved", endsAt=ends))).alerts
    assert alert.ends_at is None or alert.ends_at >= alert.starts_at


@pytest.mark.parametrize("bad", [
    None, "text", 3, [], {}, {"labels": None}, {"labels": []}, {"labels": {}}, {"labels": {"a": {"b": 1}}},
    {"labels": {"alertname": "A"}, "annotations": ["x"]},
])  # fmt: skip
def test_one_broken_alert_costs_only_itself(server: HttpServer, bad: object) -> None:
    delivery = deliver(group(pushed(), bad, pushed(startsAt="2031-02-03T13:00:00Z")))
    assert (len(delivery.alerts), len(delivery.broken)) == (2, 1)
    server.answer = Member(item(), bad)
    pages = list(source(server.url).poll("", deadline=SOON))
    assert sum(len(page.alerts) for page in pages) == 1
    assert sum(len(page.broken) for page in pages) == 1


@pytest.mark.parametrize("bare", [
    {"labels": {"alertname": "A"}},
    {"labels": {"alertname": "A"}, "annotations": None, "generatorURL": "", "fingerprint": None, "status": None},
    {"labels": {"job": "x", "note": "a=b"}, "annotations": {"summary": None}, "startsAt": "2031-02-03T12:00:00Z"},
    {"labels": {"alertname": "A", "replicas": 3, "ok": True, "gone": None}, "generatorURL": 7},
])  # fmt: skip
def test_what_is_optional_may_be_missing_null_or_a_number(bare: dict[str, Any]) -> None:
    (alert,) = deliver(group(bare)).alerts
    assert alert.severity is Severity.UNKNOWN
    assert alert.title


NAMES = st.sampled_from(["labels", "annotations", "startsAt", "status", "fingerprint", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_no_json_at_all_can_stop_the_reading(value: object) -> None:
    assert isinstance(read("am", value), Alert | Broken)


@pytest.mark.parametrize(("word", "severity"), [
    ("critical", Severity.CRITICAL), ("PAGE", Severity.CRITICAL), ("error", Severity.ERROR), (" high ", Severity.ERROR),
    ("warning", Severity.WARNING), ("info", Severity.INFO), ("none", Severity.INFO), ("purple", Severity.UNKNOWN),
    ("", Severity.UNKNOWN),
])  # fmt: skip
def test_severity_words(word: str, severity: Severity) -> None:
    (alert,) = deliver(group(pushed(labels={"alertname": "A", "severity": word}))).alerts
    assert alert.severity is severity


@pytest.mark.parametrize(
    "header", ["", "Bearer", f"Bearer {TOKEN}x", f"bearer {TOKEN}", TOKEN, f"Basic {TOKEN}", "Bearer é☃"]
)
def test_a_webhook_without_the_token_is_refused(header: str) -> None:
    with pytest.raises(Unauthorised):
        deliver(group(pushed()), header)


def test_without_a_configured_token_nothing_is_taken() -> None:
    bare = Alertmanager("am", AlertmanagerConfig(url="http://127.0.0.1:9", write_to="x"))
    with pytest.raises(Unauthorised):
        bare.receive({"authorization": "Bearer "}, group(pushed()))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"alerts": null}', b'{"alerts": {}}', b"[" * 50_000])
def test_a_body_that_is_no_group_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        deliver(body)


def test_alerts_that_were_left_out_are_flagged() -> None:
    delivery = deliver(group(pushed(), truncatedAlerts=7))
    assert len(delivery.alerts) == 1
    assert "7 alerts of this group were left out" in delivery.broken[0].reason


def test_an_empty_group_is_ignored() -> None:
    assert deliver(group()).ignored == "a group without alerts"


def test_any_healthy_member_is_enough_and_views_are_united(server: HttpServer, second: HttpServer) -> None:
    second.answer = Member(item(), item("Other"))
    both = source(server.url, members=[second.url])
    assert len(polled(both)) == 2
    server.answer = lambda request: Reply(500)
    assert len(polled(both)) == 2


def test_the_fresher_view_of_an_alert_counts(server: HttpServer, second: HttpServer) -> None:
    second.answer = Member(item(updatedAt="2031-02-03T12:00:09.000Z", annotations={"summary": "fresher"}))
    for urls in ((server.url, second.url), (second.url, server.url)):
        (alert,) = polled(source(urls[0], members=[urls[1]]))
        assert alert.annotations["summary"] == "fresher"


@pytest.mark.parametrize(("reply", "kind"), [
    (Reply(503, b"limit reached"), Transient), (Reply(cut="before"), Transient), (Reply(401), Permanent),
    (Reply(302, headers={"Location": "/login"}), Permanent), (Reply(404), Permanent),
    (Reply(200, b"<html>login</html>"), Transient), (Reply(200, {"status": "success"}), Transient),
    (Reply(200, b""), Transient),
])  # fmt: skip
def test_when_no_member_answers_the_poll_fails(server: HttpServer, reply: Reply, kind: type[Exception]) -> None:
    server.answer = lambda request: reply
    with pytest.raises(kind):
        polled(source(server.url))


def test_one_member_that_may_come_back_makes_it_transient(server: HttpServer, second: HttpServer) -> None:
    server.answer = lambda request: Reply(401)
    second.answer = lambda request: Reply(503)
    with pytest.raises(Transient):
        polled(source(server.url, members=[second.url]))


def test_credentials_are_sent_and_never_shown(server: HttpServer) -> None:
    server.answer = lambda request: Reply(400, request.headers["authorization"].encode())
    with pytest.raises(Permanent) as caught:
        polled(source(server.url, bearer_token="am-secret-token"))
    assert server.requests[0].headers["authorization"] == "Bearer am-secret-token"
    assert "am-secret-token" not in str(caught.value)


def test_fetch_finds_an_alert_also_when_it_is_silenced(server: HttpServer) -> None:
    suppressed = item(status={"state": "suppressed", "silencedBy": ["x"], "inhibitedBy": []})
    server.answer = Member(suppressed)
    found = source(server.url).fetch(f"{item()['fingerprint']}-20310203T120000.123Z", deadline=SOON)
    assert found is not None
    assert found.annotations["rootcaused_warning"] == "silenced or inhibited"
    assert "silenced" not in server.requests[0].query


def test_fetch_of_an_alert_that_is_no_longer_listed_is_none(server: HttpServer) -> None:
    server.answer = Member()
    assert source(server.url).fetch("gone-20310203T120000.123Z", deadline=SOON) is None


def test_fetch_just_after_a_restart_proves_nothing(server: HttpServer) -> None:
    server.answer = Member(started="2031-02-03T11:59:30.000Z")  # the server's clock says 12:00
    with pytest.raises(Transient, match="restarted just now"):
        source(server.url).fetch("gone-20310203T120000.123Z", deadline=SOON)


def test_fetch_without_a_status_page_goes_by_the_list(server: HttpServer) -> None:
    server.answer = lambda request: Reply(404) if request.path.endswith("/status") else Reply(200, [])
    assert source(server.url).fetch("gone-20310203T120000.123Z", deadline=SOON) is None


def test_related_lists_what_fires_in_the_same_place(server: HttpServer) -> None:
    near = item("Near", labels={"alertname": "Near", "namespace": "shop"}, fingerprint="1")
    far = item("Far", labels={"alertname": "Far", "namespace": "other"}, fingerprint="2")
    lead = item("Lead", labels={"alertname": "Lead", "namespace": "shop"}, fingerprint="3")
    server.answer = Member(near, far, lead)
    alert = next(a for a in polled(source(server.url)) if a.labels["alertname"] == "Lead")
    told = source(server.url).related(alert, deadline=SOON)
    assert "Near" in told
    assert "same namespace" in told
    assert "Far" not in told
    assert "Lead" not in told


def test_a_sweep_adds_its_matchers_and_stops_at_its_limit(server: HttpServer) -> None:
    server.answer = Member(*(item(f"A{n}") for n in range(150)))
    pages = source(server.url, matchers=['a="1"']).search('{b="x,y",c!~"z"}', limit=120, deadline=SOON)
    assert sum(len(page.alerts) for page in pages) == 120
    assert server.requests[0].query["filter"] == ['a="1"', 'b="x,y"', 'c!~"z"']


@pytest.mark.parametrize("text", ["bad===", "severity=critical", 'a="b', "=", 'a="b" or c="d"', 'a="b"c'])
def test_a_matcher_alertmanager_would_silently_ignore_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a matcher"):
        AlertmanagerConfig(url="http://h", matchers=[text])
    with pytest.raises(Permanent, match="alertmanager query"):
        split_matchers(text)


@given(st.lists(st.text(alphabet='abc,{}=" \\', max_size=6), max_size=4))
def test_commas_and_quotes_inside_values_do_not_split(values: list[str]) -> None:
    quoted = ['n="' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values]
    assert split_matchers(",".join(quoted)) == tuple(quoted)


@pytest.mark.parametrize("options", [
    {"username": "u"}, {"password": "p"}, {"username": "u", "password": "p", "bearer_token": "b"}, {"key_file": "k"},
    {"url": "alertmanager:9093"}, {"unknown": 1},
])  # fmt: skip
def test_a_configuration_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        AlertmanagerConfig(**{"url": "http://h", **options})


def _recorded(name: str) -> Any:
    return json.loads(shared_file(f"{CAPTURED}/{name}").read_text())


@needs_shared
@pytest.mark.parametrize("name", ["get_alerts.json", "get_alerts.from_prometheus.json", "get_alerts.unprocessed.json"])
def test_our_fingerprint_is_alertmanagers(name: str) -> None:
    for recorded in _recorded(name):
        assert fingerprint_of(recorded["labels"]) == recorded["fingerprint"]


@needs_shared
@pytest.mark.parametrize(("listed", "hook"), [
    ("get_alerts.json", "webhook.firing.single.json"),
    ("get_alerts.json", "webhook.mixed_resolved_and_firing.json"),
    ("get_alerts.json", "webhook.firing.critical_inhibits_warning.json"),
    ("get_alerts.json", "webhook.firing.truncated_max_alerts_1.json"),
    ("get_alerts.from_prometheus.json", "webhook.from_prometheus.firing.json"),
    ("get_alerts.from_prometheus.json", "webhook.from_prometheus.resolved.json"),
])  # fmt: skip
def test_recorded_pushes_and_polls_give_the_same_keys(server: HttpServer, listed: str, hook: str) -> None:
    server.answer = Member(*_recorded(listed))
    keys = {alert.key for alert in polled(source(server.url))}
    delivery = deliver(shared_file(f"{CAPTURED}/{hook}").read_bytes())
    assert delivery.alerts
    assert {alert.key for alert in delivery.alerts} <= keys


@pytest.mark.parametrize(("labels", "service"), [
    ({"job": "payments", "service": "pay"}, "pay"),
    ({"job": "payments"}, "payments"),
    ({"job": "kube-state-metrics", "deployment": "cart"}, "cart"),
    ({"service": "prom-kube-state-metrics", "job": "kube-state-metrics", "container": "app"}, "app"),
    ({"job": "node-exporter"}, "node-exporter"),
    ({"alertname": "A"}, ""),
])  # fmt: skip
def test_the_service_is_who_the_alert_is_about(labels: dict[str, str], service: str) -> None:
    assert deliver(group(pushed(labels=labels))).alerts[0].service == service
