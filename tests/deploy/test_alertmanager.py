"""The played Alertmanager, and the sink its reports go to, over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import pytest

ALERTS = "/alertmanager/api/v2/alerts"


def test_all_open_alerts_come_at_once(world):
    found = world.get(ALERTS)
    assert len({one["fingerprint"] for one in found}) == len(found) == 2
    assert {one["status"]["state"] for one in found} == {"active"}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("active=false", 0),
        ("silenced=false&inhibited=false", 2),
        ("receiver=rootcaused", 2),
        ("receiver=root", 0),
        ("filter=" + quote('namespace="edge"'), 1),
        ("filter=" + quote('namespace=~"edge|media"'), 2),
        ("filter=" + quote('namespace!="edge"') + "&filter=" + quote('severity="warning"'), 1),
    ],
)
def test_filters_narrow_the_list(world, query, count):
    assert len(world.get(f"{ALERTS}?{query}")) == count


@pytest.mark.parametrize("query", ["active=perhaps", "filter=" + quote("namespace="), "receiver=("])
def test_what_can_not_be_read_is_400(world, query):
    assert world.send("GET", f"{ALERTS}?{query}").status == 400


def test_a_resolved_alert_is_gone_and_a_refired_one_has_a_new_start(fresh):
    [before] = fresh.get(f"{ALERTS}?filter=" + quote('namespace="edge"'))
    fresh.send("POST", "/demo/incidents/certificate/resolve")
    assert fresh.get(f"{ALERTS}?filter=" + quote('namespace="edge"')) == []
    fresh.clock.at += 60
    fresh.send("POST", "/demo/incidents/certificate/refire")
    [after] = fresh.get(f"{ALERTS}?filter=" + quote('namespace="edge"'))
    assert after["fingerprint"] == before["fingerprint"]
    assert after["startsAt"] > before["startsAt"]


def test_writing_is_not_allowed(world):
    assert world.send("POST", ALERTS, []).status == 405


def test_the_sink_keeps_every_body_and_counts_by_identity(fresh):
    token = {"Authorization": "Bearer demo-sink-token"}
    for identity in ("a", "a", "b"):
        assert fresh.send("POST", "/sink/oncall", {"text": "x"}, {**token, "Idempotency-Key": identity}).status == 201
    fresh.send("POST", "/sink/oncall", {"id": "c"})
    told = fresh.get("/sink/oncall")
    assert told["counts"] == {"a": 2, "b": 1, "c": 1}
    assert len(told["deliveries"]) == 4


@pytest.mark.parametrize(("body", "headers", "status"), [([], None, 400), ({}, {}, 401), ("{", None, 400)])
def test_the_sink_refuses_what_is_no_report(fresh, body, headers, status):
    assert fresh.send("POST", "/sink/oncall", body, headers).status == status
    assert fresh.get("/sink/oncall")["deliveries"] == []
