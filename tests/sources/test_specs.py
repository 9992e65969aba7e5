"""Our requests, and the replies of our stand-ins, against the vendors' own descriptions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.deadline import Deadline
from sources.alertmanager.source import Alertmanager
from sources.configs import AlertmanagerConfig, PagerDutyConfig
from sources.pagerduty.source import PagerDuty
from tests.support.alerts import alert
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.openapi import Spec
from tests.support.pagerduty_api import NOW, TOKEN, PagerDutyApiFake, incident
from tests.support.reports import report
from tests.support.shared import needs_shared, shared_file

SOON = Deadline.never()
CAPTURED = "specs/alertmanager/captured"


def pagerduty_spec() -> Spec:
    return Spec(shared_file("specs/pagerduty/openapiv3.json"))


def alertmanager_spec() -> Spec:
    return Spec(shared_file("specs/alertmanager/openapi.yaml"), prefix="/api/v2")


def everything_pagerduty_is_asked(account_token: bool) -> list[tuple[Request, Reply]]:
    """A poll, a sweep, a read, a first note and its edit."""
    exchanged: list[tuple[Request, Reply]] = []
    api = PagerDutyApiFake(incidents=[incident("Q1")], account_token=account_token)
    api.alerts["Q1"] = [{"id": "PA1", "type": "alert", "status": "triggered", "severity": "critical"}]

    def note(request: Request, reply: Reply) -> Reply:
        exchanged.append((request, reply))
        return reply

    api.after = note
    with HttpServer(api) as server:
        chosen = {"service_ids": "PSVC", "team_ids": "PT", "urgencies": ["high"]}
        config = PagerDutyConfig(token=TOKEN, from_email="bot@example.org", url=server.url, **chosen)
        source = PagerDuty("pd", config, now=lambda: NOW)
        list(source.poll("", deadline=SOON))
        list(source.search("statuses=resolved incident_key=k since=7d", limit=5, deadline=SOON))
        source.fetch("Q1", deadline=SOON)
        source.related(alert(), deadline=SOON)
        source.find(alert(), deadline=SOON)
        receipt = source.publish(alert(), report(), previous=None, deadline=SOON)
        source.publish(alert(), report(headline="again"), previous=receipt, deadline=SOON)
    return exchanged


@needs_shared
@pytest.mark.parametrize("account_token", [False, True])
def test_pagerduty_would_take_every_request(account_token: bool) -> None:
    spec = pagerduty_spec()
    exchanged = everything_pagerduty_is_asked(account_token)
    assert {request.method for request, _ in exchanged} == {"GET", "POST", "PUT"}
    assert {f"{r.method} {r.path}": spec.request_faults(r) for r, _ in exchanged if spec.request_faults(r)} == {}


@needs_shared
def test_our_pagerduty_answers_like_pagerduty() -> None:
    spec = pagerduty_spec()
    faults = {f"{r.method} {r.path}": spec.reply_faults(r, a) for r, a in everything_pagerduty_is_asked(False)}
    assert {place: found for place, found in faults.items() if found} == {}


def request(method: str = "GET", path: str = "/incidents", body: Any = None, **changes: Any) -> Request:
    headers = {"accept": "x", "content-type": "application/json", "from": "a@b.example"}
    fields = {"query": {}, "headers": headers, "body": json.dumps(body).encode(), **changes}
    return Request(method=method, path=path, **fields)


@needs_shared
@pytest.mark.parametrize(("planted", "fault"), [
    (request(query={"statuses[]": ["open"]}), "none of"),
    (request(query={"limit": ["abc"]}), "not integer"),
    (request(query={"state": ["x"]}), "unknown"),
    (request(headers={}), "header content-type is missing"),
    (request(path="/incident"), "not in the description"),
    (request("POST", "/incidents/Q1/notes", {"content": "x"}), "'note' is a required property"),
    (request("POST", "/incidents/Q1/notes", {"note": {"content": 3}}), "is not of type 'string'"),
    (request("POST", "/incidents/Q1/notes", {"note": {"content": "x"}}, headers={"content-type": "x"}), "header from"),
])  # fmt: skip
def test_the_check_of_requests_refuses_planted_faults(planted: Request, fault: str) -> None:
    assert fault in str(pagerduty_spec().request_faults(planted))


@needs_shared
@pytest.mark.parametrize("planted", [
    {}, {"incidents": None}, {"incidents": [{**incident("Q1"), "status": "open"}]},
    {"incidents": [{**incident("Q1"), "title": 3}]},
])  # fmt: skip
def test_the_check_of_replies_refuses_planted_faults(planted: dict[str, Any]) -> None:
    assert pagerduty_spec().reply_faults(request(), Reply(200, planted))


def everything_alertmanager_is_asked() -> list[tuple[Request, Reply]]:
    exchanged: list[tuple[Request, Reply]] = []
    listed = json.loads(shared_file(f"{CAPTURED}/get_alerts.json").read_text())
    for item in listed:
        item["status"]["mutedBy"] = []  # newer than the recorded server
    status = json.loads(shared_file(f"{CAPTURED}/get_status.json").read_text())

    def answer(asked: Request) -> Reply:
        reply = Reply(200, status if asked.path.endswith("/status") else listed)
        exchanged.append((asked, reply))
        return reply

    with HttpServer(answer) as server:
        config = AlertmanagerConfig(url=server.url, matchers=['severity="critical"'], receiver="ops")
        source = Alertmanager("am", config)
        list(source.poll("", deadline=SOON))
        list(source.search('team=~"a.*"', limit=5, deadline=SOON))
        source.fetch("gone", deadline=SOON)
    return exchanged


@needs_shared
def test_alertmanager_would_take_every_request_and_its_recorded_replies_fit() -> None:
    spec = alertmanager_spec()
    exchanged = everything_alertmanager_is_asked()
    assert {r.path for r, _ in exchanged} == {"/api/v2/alerts", "/api/v2/status"}
    faults = [fault for r, a in exchanged for fault in (*spec.request_faults(r), *spec.reply_faults(r, a))]
    assert faults == []


@needs_shared
def test_the_check_of_alertmanager_refuses_planted_faults() -> None:
    spec = alertmanager_spec()
    asked = request(path="/api/v2/alerts", query={"active": ["maybe"]}, headers={})
    assert "not boolean" in str(spec.request_faults(asked))
    listed = json.loads(shared_file(f"{CAPTURED}/get_alerts.json").read_text())
    del listed[0]["fingerprint"]
    assert "'fingerprint' is a required property" in str(spec.reply_faults(asked, Reply(200, listed)))
