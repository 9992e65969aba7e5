"""The demo's view of the world, against the real stand-in."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from agent.deadline import Deadline
from agent.http import Http
from deploy.demo import github, jira, kubernetes, opsalerts, pagerduty, sink, tickets
from deploy.demo.server import World as Server
from worker.demo import world as client
from worker.demo.configuration import configuration
from worker.demo.world import World
from worker.settings import Settings


@pytest.fixture
def world(tmp_path):
    server = Server(0, tmp_path)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with_http = World(address=server.address)
    try:
        yield with_http
    finally:
        with_http.close()
        server.shutdown()
        thread.join()
        server.server_close()


def note(world, ticket, content):
    http = Http(base_url=world.address)
    headers = {"Authorization": f"Token token={client.PAGERDUTY_TOKEN}", "From": client.EMAIL}
    path = f"/pagerduty/incidents/{ticket.native}/notes"
    http.request("POST", path, payload={"note": {"content": content}}, headers=headers, deadline=Deadline.after(5))
    http.session.close()


def deliver(world, ticket, identity, starts_at=None):
    http = Http(base_url=world.address)
    starts = (starts_at or ticket.fired_at).isoformat()
    payload = {
        "id": identity,
        "alert": {"fingerprint": ticket.native, "starts_at": starts},
        "text": f"report {identity}",
    }
    headers = {"Authorization": f"Bearer {client.SINK_TOKEN}", "Idempotency-Key": identity}
    http.request("POST", f"/sink/{client.SINK}", payload=payload, headers=headers, deadline=Deadline.after(5))
    http.session.close()


def test_the_credentials_are_those_the_world_asks_for():
    ours = (client.PAGERDUTY_TOKEN, client.KUBERNETES_TOKEN, client.SINK_TOKEN, client.EMAIL)
    assert ours == (pagerduty.TOKEN, kubernetes.TOKEN, sink.TOKEN, pagerduty.EMAIL)
    assert (client.OPSGENIE_KEY, client.JSM_TOKEN) == (opsalerts.API_KEY, opsalerts.API_TOKEN)
    assert (client.JIRA_TOKEN, client.GITHUB_TOKEN) == (jira.API_TOKEN, github.TOKEN)
    assert (client.JSM_CLOUD_ID, client.GITHUB_REPOSITORY) == (opsalerts.CLOUD_ID, tickets.GITHUB_REPOSITORY)
    assert {opsalerts.EMAIL, jira.EMAIL} == {client.EMAIL}


def test_a_dozen_tickets_are_told_with_what_is_due(world):
    tickets = world.tickets()
    assert len(tickets) == 12
    assert sum(one.due for one in tickets) == 11


def test_only_notes_with_our_marker_are_comments(world):
    one = next(ticket for ticket in world.tickets() if ticket.source == "pagerduty")
    note(world, one, "restarted it, no change")
    note(world, one, "the disk is full\n\nrootcaused:v1:inv-1")
    assert world.comments(one) == ["the disk is full\n\nrootcaused:v1:inv-1"]


def test_reports_at_the_sink_are_comments_of_their_episode_and_a_repeat_is_none(world):
    one, other, *_ = [ticket for ticket in world.tickets() if ticket.source == "alertmanager"]
    deliver(world, one, "a")
    deliver(world, one, "a")
    deliver(world, one, "b", starts_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert world.comments(one) == ["report a"]
    assert world.comments(other) == []
    deliver(world, one, "c")
    assert len(world.comments(one)) == 2


def test_polls_are_counted_by_source(world):
    before = world.polls()
    assert before == dict.fromkeys(client.LISTS, 0)


def test_the_configuration_is_one_that_the_daemon_takes(tmp_path):
    settings = Settings.model_validate(configuration("http://127.0.0.1:1", tmp_path, 8080, "rules"))
    assert set(settings.sources) == set(client.LISTS)
    assert set(settings.toolsets) == {"kubernetes", "prometheus", "loki", "plan"}
    assert settings.sources["alertmanager"].write_to in settings.sinks
