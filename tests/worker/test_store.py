from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from agent.alert import Severity, Status
from agent.errors import Transient
from agent.events import StepStarted
from sources.port import Broken
from tests.support.alerts import NOON, alert
from tests.support.redis_process import RedisProcess
from worker.record import CRITICAL, DEFAULT, SWEEP, LeaseLost, State
from worker.redis_client import connect
from worker.settings import RedisSettings
from worker.store import Store


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store(connect(redis_url, RedisSettings()), lease_seconds=0.2)


def eventually(holds: Callable[[], object], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.01)


def test_an_alert_seen_twice_is_queued_once(store: Store) -> None:
    first, second = store.admit(alert(), via="poll"), store.admit(alert(), via="webhook")
    assert (first.verdict, first.queued) == ("new", True)
    assert (second.verdict, second.queued) == ("known", False)
    assert store.counts()["queued"] == 1


def test_the_same_id_in_two_sources_is_two_alerts(store: Store) -> None:
    assert store.admit(alert(source="test"), via="poll").queued
    assert store.admit(alert(source="stage"), via="poll").queued


def test_severity_and_origin_choose_the_queue(store: Store) -> None:
    assert store.admit(alert(id="1", severity=Severity.CRITICAL), via="poll").queue == CRITICAL
    assert store.admit(alert(id="2"), via="poll").queue == DEFAULT
    assert store.admit(alert(id="3", severity=Severity.CRITICAL), via="sweep").queue == SWEEP


def test_a_recorded_alert_is_owed_work_until_it_is_settled(store: Store) -> None:
    store.admit(alert(), via="poll")
    store.postpone("pd:Q1", -1)
    assert store.due() == ["pd:Q1"]
    _, claim = store.claim("pd:Q1", 1, stage="investigate")
    assert claim is not None
    store.settle(claim, State.SKIPPED, "resolved")
    store.postpone("pd:Q1", -1)
    assert store.due() == []
    assert store.redis.ttl("rootcaused:alert:pd:Q1") > 0


def test_one_of_two_claims_wins(store: Store) -> None:
    store.admit(alert(), via="poll")
    assert store.claim("pd:Q1", 1, stage="investigate")[0] == "taken"
    assert store.claim("pd:Q1", 1, stage="investigate")[0] == "held"


def test_a_stale_generation_claims_nothing(store: Store) -> None:
    store.admit(alert(), via="poll")
    assert store.claim("pd:Q1", 7, stage="investigate") == ("stale", None)
    assert store.claim("pd:nobody", 1, stage="investigate") == ("gone", None)


def test_a_dead_holder_is_replaced_and_can_no_longer_write(store: Store) -> None:
    store.admit(alert(), via="poll")
    _, dead = store.claim("pd:Q1", 1, stage="investigate")
    assert dead is not None
    alive = None

    def claimed() -> bool:
        nonlocal alive
        alive = store.claim("pd:Q1", 1, stage="investigate")[1]
        return alive is not None

    eventually(claimed)
    assert alive is not None
    assert alive.record.attempts == 2
    with pytest.raises(LeaseLost):
        store.append(dead, [StepStarted(step=1)])
    with pytest.raises(LeaseLost):
        store.settle(dead, State.WRITTEN)
    store.append(alive, [StepStarted(step=1)])
    assert store.events(alive.record.investigation) == [StepStarted(step=1)]


def test_a_heartbeat_keeps_the_lease(store: Store) -> None:
    store.admit(alert(), via="poll")
    _, claim = store.claim("pd:Q1", 1, stage="investigate")
    assert claim is not None
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        store.append(claim)
        assert store.claim("pd:Q1", 1, stage="investigate")[0] == "held"
        time.sleep(0.02)


def test_the_attempt_is_counted_before_work_and_the_fourth_is_parked(redis_url: str) -> None:
    store = Store(connect(redis_url, RedisSettings()), lease_seconds=0.001, attempts=3)
    store.admit(alert(), via="poll")
    verdicts: list[str] = []
    while len(verdicts) < 4:
        verdict, _ = store.claim("pd:Q1", 1, stage="investigate")
        if verdict != "held":
            verdicts.append(verdict)
    assert verdicts == ["taken", "taken", "taken", "parked"]


def test_a_requeue_raises_the_generation_and_fences_the_old_run(store: Store) -> None:
    store.admit(alert(), via="poll")
    _, claim = store.claim("pd:Q1", 1, stage="investigate")
    assert claim is not None
    again = store.admit(alert(), via="requeue", instructions="look at the database")
    assert (again.verdict, again.generation, again.queued) == ("requeued", 2, True)
    with pytest.raises(LeaseLost):
        store.append(claim, [StepStarted(step=1)])
    record = store.get("pd:Q1")
    assert record is not None
    assert record.previous == claim.record.investigation != record.investigation


def test_two_requeues_at_once_give_one_run(store: Store) -> None:
    store.admit(alert(), via="poll")
    _, claim = store.claim("pd:Q1", 1, stage="investigate")
    assert claim is not None
    store.settle(claim, State.WRITTEN)
    first, second = store.admit(alert(), via="requeue"), store.admit(alert(), via="requeue")
    assert (first.verdict, second.verdict) == ("requeued", "joined")
    assert store.claim("pd:Q1", 2, stage="investigate")[0] == "taken"
    assert store.admit(alert(), via="requeue").verdict == "joined"


def test_a_resolved_alert_is_not_queued_and_its_return_is(store: Store) -> None:
    gone = alert(status=Status.RESOLVED, updated_at=NOON + timedelta(minutes=1))
    assert store.admit(gone, via="poll", skip="resolved").state is State.SKIPPED
    late = store.admit(alert(), via="webhook")  # an older event that arrives late
    assert late.verdict == "known"
    back = store.admit(alert(updated_at=NOON + timedelta(minutes=2)), via="poll")
    assert (back.verdict, back.queued) == ("reopened", True)


def test_runs_of_one_alert_have_a_cap(redis_url: str) -> None:
    store = Store(connect(redis_url, RedisSettings()), runs_per_alert=2)
    store.admit(alert(), via="poll")
    verdicts = []
    for _ in range(3):
        generation = store.get("pd:Q1").generation  # type: ignore[union-attr]
        _, claim = store.claim("pd:Q1", generation, stage="investigate")
        if claim:
            store.settle(claim, State.WRITTEN)
        verdicts.append(store.admit(alert(), via="requeue").verdict)
    assert verdicts == ["requeued", "refused", "refused"]


def test_records_are_listed_by_last_change_and_filtered(store: Store) -> None:
    for number in range(5):
        store.admit(alert(id=f"Q{number}", source="pd" if number % 2 else "am"), via="poll")
    _, claim = store.claim("pd:Q1", 1, stage="investigate")
    assert claim is not None
    store.settle(claim, State.FAILED, "boom")
    assert [record.key for record in store.records([State.FAILED])] == ["pd:Q1"]
    assert {record.key for record in store.records(source="am")} == {"am:Q0", "am:Q2", "am:Q4"}
    changes = [record.updated_at for record in store.records()]
    assert changes == sorted(changes, reverse=True)
    assert [line["state"] for line in store.audit("pd:Q1")] == ["queued", "investigating", "failed"]


def test_hostile_text_survives_the_store_unchanged(store: Store) -> None:
    title = 'emoji 🔥 "quotes" {braces} \\ and \u202e'
    store.admit(alert(title=title), via="poll")
    record = store.get("pd:Q1")
    assert record is not None
    assert record.alert.title == title
    assert record.alert == alert(title=title)


def test_broken_items_are_kept_newest_first_and_capped_in_size(store: Store) -> None:
    store.quarantine("pd", Broken(id="1", reason="no id", raw="x" * 10_000))
    store.quarantine("pd", Broken(id="2", reason="no title", raw="{}"))
    first, second = store.broken()
    assert (first["id"], second["id"], len(second["raw"])) == ("2", "1", 2_000)


def test_every_key_of_a_settled_alert_expires(store: Store) -> None:
    store.admit(alert(), via="poll")
    _, claim = store.claim("pd:Q1", 1, stage="investigate")
    assert claim is not None
    store.append(claim, [StepStarted(step=1)])
    store.put_result(claim.record.investigation, "T1", "text")
    store.settle(claim, State.WRITTEN)
    lasting = {key for key in store.redis.scan_iter("rootcaused:*") if store.redis.ttl(key) < 0}
    assert lasting == {"rootcaused:state:written"}


def fill(store: Store) -> None:
    for number in range(500):
        store.admit(alert(id=f"Q{number}", body="x" * 20_000), via="poll")


def test_a_full_redis_is_transient(tmp_path: Path) -> None:
    with RedisProcess(tmp_path, extra=("--maxmemory", "1mb", "--maxmemory-policy", "noeviction")) as server:
        store = Store(connect(server.url, RedisSettings()))
        with pytest.raises(Transient, match="memory"):
            fill(store)


def test_an_absent_redis_is_transient_and_names_no_password(tmp_path: Path) -> None:
    store = Store(connect("redis://:hunter2x@127.0.0.1:1/0", RedisSettings()))
    with pytest.raises(Transient) as caught:
        store.admit(alert(), via="poll")
    assert "hunter2x" not in str(caught.value)
    assert "hunter2x" not in json.dumps(caught.value.details)
