"""The world as a whole: control, faults, restart, process."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def comments(client):
    return {one["id"]: one["comments"] for one in client.get("/demo/incidents")["incidents"] if one["comments"]}


def due(client, incident):
    return next(one for one in client.get("/demo/incidents")["incidents"] if one["id"] == incident)


def test_notes_and_deliveries_are_counted_as_comments(fresh):
    native = due(fresh, "memory-limit")["native"]
    fresh.send("POST", f"/pagerduty/incidents/{native}/notes", {"note": {"content": "x"}})
    alert = due(fresh, "certificate")
    body = {"id": "r1", "alert": {"fingerprint": alert["native"], "starts_at": alert["fired_at"]}}
    fresh.send("POST", "/sink/oncall", body)
    fresh.send("POST", "/sink/oncall", body)  # the same report once more: no second comment
    assert comments(fresh) == {"memory-limit": 1, "certificate": 1}


def test_notes_of_people_are_not_counted(fresh):
    native = due(fresh, "memory-limit")["native"]
    assert fresh.get(f"/pagerduty/incidents/{native}/notes")["notes"]
    assert comments(fresh) == {}


def test_a_report_on_another_episode_is_not_counted(fresh):
    alert = due(fresh, "certificate")
    body = {"id": "r1", "alert": {"fingerprint": alert["native"], "starts_at": "2020-01-01T00:00:00Z"}}
    fresh.send("POST", "/sink/oncall", body)
    assert comments(fresh) == {}


def test_a_refired_incident_has_a_ticket_of_its_own(fresh):
    before = due(fresh, "memory-limit")
    fresh.clock.at += 60
    assert fresh.send("POST", "/demo/incidents/memory-limit/refire").status == 200
    after = due(fresh, "memory-limit-2")
    assert due(fresh, "memory-limit")["resolved"]
    assert not after["resolved"]
    assert after["native"] != before["native"]
    assert (
        fresh.get(f"/pagerduty/incidents/{after['native']}")["incident"]["incident_key"]
        == (fresh.get(f"/pagerduty/incidents/{before['native']}")["incident"]["incident_key"])
    )


def test_unknown_incidents_can_not_be_resolved(fresh):
    assert fresh.send("POST", "/demo/incidents/nothing/resolve").status == 404


def test_a_fault_answers_as_often_as_asked_for(fresh):
    fresh.send("POST", "/demo/faults", {"prefix": "/pagerduty", "times": 2, "status": 503, "retry_after": "1"})
    answers = [fresh.send("GET", "/pagerduty/incidents") for _ in range(3)]
    assert [answer.status for answer in answers] == [503, 503, 200]
    assert answers[0].headers["Retry-After"] == "1"


def test_a_dropped_reply_has_acted_all_the_same(fresh):
    native = due(fresh, "memory-limit")["native"]
    fresh.send("POST", "/demo/faults", {"prefix": "/pagerduty", "method": "POST", "drop": True})
    with pytest.raises(http.client.RemoteDisconnected):
        fresh.send("POST", f"/pagerduty/incidents/{native}/notes", {"note": {"content": "x"}})
    assert comments(fresh) == {"memory-limit": 1}


@pytest.mark.parametrize("body", [{}, {"prefix": "/x", "colour": "red"}, [], "no"])
def test_a_fault_that_can_not_be_read_is_refused(fresh, body):
    assert fresh.send("POST", "/demo/faults", body).status == 400


def test_requests_are_counted_by_method_and_path_without_our_own(fresh):
    for _ in range(2):
        fresh.get("/pagerduty/incidents?limit=1")
    assert fresh.get("/demo/requests") == {"GET /pagerduty/incidents": 2}


def test_a_reset_forgets_what_was_done_and_keeps_the_times(fresh):
    before = due(fresh, "memory-limit")
    fresh.send("POST", f"/pagerduty/incidents/{before['native']}/notes", {"note": {"content": "x"}})
    fresh.send("POST", "/demo/incidents/memory-limit/resolve")
    fresh.clock.at += 500
    fresh.send("POST", "/demo/reset")
    assert due(fresh, "memory-limit") == before


def test_an_unknown_system_is_404(fresh):
    assert fresh.send("GET", "/grafana").status == 404


def test_a_restart_keeps_notes_episodes_and_times(tmp_path, start):
    with start(tmp_path) as first:
        native = due(first, "memory-limit")["native"]
        first.send("POST", f"/pagerduty/incidents/{native}/notes", {"note": {"content": "kept"}})
        first.send("POST", "/demo/incidents/certificate/refire")
        told = first.get("/demo/incidents")
    with start(tmp_path) as second:
        second.clock.at += 1_000
        assert second.get("/demo/incidents") == told
        [*_, note] = second.get(f"/pagerduty/incidents/{native}/notes")["notes"]
        assert note["content"] == "kept"


def test_the_program_says_when_it_is_ready_and_ends_by_sigterm(tmp_path):
    command = [sys.executable, str(ROOT / "deploy/demo/world.py"), "--port", "0", "--state", str(tmp_path / "state")]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        with urllib.request.urlopen(f"{told['address']}/demo/incidents", timeout=10) as reply:
            assert len(json.load(reply)["incidents"]) == 12
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, b"")


def test_the_world_needs_nothing_but_the_standard_library(tmp_path):
    used = "sorted({name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    check = f"import sys; from deploy.demo import server; print({used})"
    command = [sys.executable, "-S", "-c", check]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['__main__', 'deploy']"
