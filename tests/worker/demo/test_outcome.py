"""What the demo calls lost, doubled and in order."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from agent.alert import Alert
from worker.demo.outcome import Outcome, row
from worker.demo.world import Ticket
from worker.record import Record, State

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def ticket(due=1, source="pagerduty", title="it burns"):
    return Ticket(native="Q1", source=source, title=title, fired_at=NOW, due=due)


def record(state=State.WRITTEN):
    alert = Alert(source="pagerduty", id="Q1", title="it burns", url="https://pd.example.com/Q1")
    return Record(
        key=alert.key, source="pagerduty", state=state, alert=alert, outcome="likely", confidence="medium",
        first_seen_at=NOW, updated_at=NOW, tokens=1234,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("due", "comments", "state", "lost", "doubled", "holds"),
    [
        (1, 1, State.WRITTEN, 0, 0, True),
        (0, 0, State.SKIPPED, 0, 0, True),
        (1, 0, State.WRITTEN, 1, 0, False),
        (1, 2, State.WRITTEN, 0, 1, False),
        (0, 1, State.WRITTEN, 0, 1, False),
        (1, 1, State.REPORTED, 0, 0, False),
        (1, 0, State.FAILED, 1, 0, False),
    ],
)
def test_an_incident_must_have_exactly_what_is_due(due, comments, state, lost, doubled, holds):
    outcome = Outcome(rows=[row(ticket(due), record(state), comments)])
    assert (outcome.lost, outcome.doubled, outcome.holds) == (lost, doubled, holds)


def test_one_lost_and_one_doubled_do_not_make_up_for_each_other():
    outcome = Outcome(rows=[row(ticket(), record(), 0), row(ticket(), record(), 2)])
    assert (outcome.lost, outcome.doubled, outcome.holds) == (1, 1, False)


def test_an_alert_that_was_never_seen_is_lost():
    outcome = Outcome(rows=[row(ticket(), None, 0)])
    assert outcome.as_json()["incidents"][0]["state"] == "unseen"
    assert not outcome.holds


def test_nothing_at_all_is_no_success():
    assert not Outcome(rows=[]).holds


def test_the_json_has_the_documented_keys():
    told = json.loads(json.dumps(Outcome(rows=[row(ticket(), record(), 1)]).as_json()))
    assert told["incidents"][0].keys() == {
        "key", "source", "state", "outcome", "confidence", "due", "comments", "seconds", "tokens", "url",
    }  # fmt: skip
    assert (told["lost"], told["doubled"]) == (0, 0)


def test_the_table_has_a_line_an_incident_and_cuts_long_titles():
    lines = Outcome(rows=[row(ticket(title="x" * 200), record(), 1), row(ticket(), None, 0)]).table().splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) < 200
    assert "1 of 1" in lines[1]


def test_an_alertmanager_episode_is_found_by_fingerprint_and_start():
    one = ticket(source="alertmanager")
    mine = Alert(source="alertmanager", id="Q1-x", title="t", fingerprint="Q1", starts_at=NOW)
    assert one.is_of(mine)
    assert not one.is_of(mine.model_copy(update={"starts_at": NOW.replace(hour=9)}))
    assert not one.is_of(mine.model_copy(update={"source": "pagerduty"}))
