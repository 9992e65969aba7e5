"""The played PagerDuty over HTTP."""

from __future__ import annotations

import pytest

from deploy.demo import pagerduty

LIST = "/pagerduty/incidents"


def ids(found):
    return [one["id"] for one in found["incidents"]]


def test_open_incidents_are_listed_oldest_first(world):
    found = world.get(f"{LIST}?statuses[]=triggered&statuses[]=acknowledged&date_range=all&sort_by=created_at:asc")
    created = [one["created_at"] for one in found["incidents"]]
    assert len(created) == 2
    assert created == sorted(created)
    assert (found["more"], found["total"]) == (False, None)


def test_pages_join_to_the_whole(world):
    first = world.get(f"{LIST}?limit=1&total=true")
    second = world.get(f"{LIST}?limit=1&offset=1&total=true")
    assert (first["more"], second["more"], first["total"]) == (True, False, 2)
    assert ids(first) + ids(second) == ids(world.get(LIST))


def test_a_page_beyond_ten_thousand_is_refused(world):
    answer = world.send("GET", f"{LIST}?offset=9990&limit=11")
    assert (answer.status, answer.json["error"]["code"]) == (400, 2001)


def test_filters_narrow_the_list(world):
    every = world.get(LIST)["incidents"]
    service = every[0]["service"]["id"]
    assert {one["service"]["id"] for one in world.get(f"{LIST}?service_ids[]={service}")["incidents"]} == {service}
    assert {one["urgency"] for one in world.get(f"{LIST}?urgencies[]=low")["incidents"]} == {"low"}
    assert ids(world.get(f"{LIST}?statuses[]=resolved")) == []
    assert ids(world.get(f"{LIST}?incident_key={every[1]['incident_key']}")) == [every[1]["id"]]


def test_since_and_until_go_by_creation(world):
    created = [one["created_at"] for one in world.get(LIST)["incidents"]]
    found = world.get(f"{LIST}?since={created[0]}&until={created[1]}")
    assert [one["created_at"] for one in found["incidents"]] == created[:1]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Token token=wrong"}])
def test_without_the_key_nothing_is_told(world, headers):
    assert world.send("GET", LIST, headers=headers).status == 401


def test_the_alert_inside_carries_the_labels(world):
    for incident in world.get(LIST)["incidents"]:
        [alert] = world.get(f"{LIST}/{incident['id']}/alerts")["alerts"]
        assert {"alertname", "namespace", "service"} <= alert["body"]["details"].keys()


def test_the_blip_is_listed_as_open_and_resolved_when_read(fresh):
    [blip] = fresh.get(f"{LIST}?urgencies[]=low")["incidents"]
    assert blip["status"] == "triggered"
    assert fresh.get(f"{LIST}/{blip['id']}")["incident"]["status"] == "resolved"
    assert fresh.get(f"{LIST}?urgencies[]=low")["incidents"][0]["status"] == "resolved"


def test_a_note_is_added_edited_and_deleted(fresh):
    [first, *_] = ids(fresh.get(LIST))
    path = f"{LIST}/{first}/notes"
    before = len(fresh.get(path)["notes"])
    added = fresh.send("POST", path, {"note": {"content": "one"}})
    assert added.status == 200
    edited = fresh.send("PUT", f"{path}/{added.json['note']['id']}", {"note": {"content": "two"}})
    assert edited.json["note"]["content"] == "two"
    assert [note["content"] for note in fresh.get(path)["notes"]][before:] == ["two"]
    assert fresh.send("DELETE", f"{path}/{added.json['note']['id']}").status == 204
    assert len(fresh.get(path)["notes"]) == before


def test_every_post_adds_a_note_because_there_is_no_idempotency(fresh):
    [first, *_] = ids(fresh.get(LIST))
    made = {
        fresh.send("POST", f"{LIST}/{first}/notes", {"note": {"content": "same"}}).json["note"]["id"] for _ in range(3)
    }
    assert len(made) == 3


@pytest.mark.parametrize(("sender", "number"), [("", 1028), ("nobody", 1028), ("stranger@example.com", 1008)])
def test_a_note_needs_a_known_sender(fresh, sender, number):
    [first, *_] = ids(fresh.get(LIST))
    headers = {"Authorization": f"Token token={pagerduty.TOKEN}", **({"From": sender} if sender else {})}
    answer = fresh.send("POST", f"{LIST}/{first}/notes", {"note": {"content": "x"}}, headers)
    assert (answer.status, answer.json["error"]["code"]) == (400, number)


@pytest.mark.parametrize("body", [{"content": "x"}, {"note": {}}, {"note": {"content": ""}}, "not json"])
def test_a_note_without_content_is_refused(fresh, body):
    [first, *_] = ids(fresh.get(LIST))
    assert fresh.send("POST", f"{LIST}/{first}/notes", body).status == 400


def test_unknown_incidents_and_notes_are_404(fresh):
    [first, *_] = ids(fresh.get(LIST))
    assert fresh.send("GET", f"{LIST}/QNOTTHERE").status == 404
    assert fresh.send("PUT", f"{LIST}/{first}/notes/NX", {"note": {"content": "x"}}).status == 404


def test_the_user_is_found_by_mail(world):
    assert world.get("/pagerduty/users/me")["user"]["email"] == pagerduty.EMAIL
    [user] = world.get("/pagerduty/users?query=rootcaused@")["users"]
    assert user["email"] == pagerduty.EMAIL
    assert world.get("/pagerduty/abilities")["abilities"]
