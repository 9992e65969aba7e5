from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from agent.alert import Status
from agent.case import Case
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.events import Event, Finished, ModelAnswered, StepStarted
from agent.report import AlertSummary, Confidence, Outcome, Report, Run
from sources.port import Broken, Page, Receipt
from tests.support.alerts import NOON, alert
from tests.support.published import Published
from tests.support.ticketing import FakeTickets
from worker.front import Front, NotFound
from worker.pipeline.investigate import Investigation
from worker.pipeline.poll import poll
from worker.pipeline.write_back import WriteBack, backoff
from worker.publisher import reconcile
from worker.record import DEFAULT, Record, State
from worker.redis_client import connect
from worker.settings import Limits, RedisSettings, Settings
from worker.store import Store


def report_for(case: Case) -> Report:
    return Report(
        alert=AlertSummary(
            key=case.alert.key, source=case.alert.source, id=case.alert.id, title=case.alert.title, severity="error"
        ),
        run=Run(investigation=case.investigation, generation=case.generation, started_at=case.started_at),
        outcome=Outcome.LIKELY,
        confidence=Confidence(level="medium"),
        headline="the pool is exhausted",
    )


@dataclass
class World:
    """The whole pipeline over a real Redis, an in-memory ticket system and a loop of two steps."""

    store: Store
    tickets: FakeTickets = field(default_factory=FakeTickets)
    published: Published = field(default_factory=Published)
    cases: list[tuple[Case, list[Event]]] = field(default_factory=list)
    die_after: int | None = None

    @property
    def front(self) -> Front:
        return Front(settings=Settings(), store=self.store, publisher=self.published, sources={"pd": self.tickets})

    @property
    def investigation(self) -> Investigation:
        return Investigation(
            store=self.store,
            publisher=self.published,
            sources={"pd": self.tickets},
            destinations={"pd": self.tickets},
            run_loop=self.loop,
            limits=Limits(lease_seconds=60),
        )

    def loop(self, case: Case, journal: list[Event]) -> Iterator[Event]:
        self.cases.append((case, list(journal)))
        events: list[Event] = [
            StepStarted(step=1),
            ModelAnswered(step=1, model="m", message={"role": "assistant", "content": "done"}, cost_usd=0.5),
            Finished(report=report_for(case)),
        ]
        for number, event in enumerate(events[len(journal) :], len(journal)):
            if number == self.die_after:
                raise Killed
            yield event

    def write_back(self) -> None:
        WriteBack(store=self.store, destinations={"pd": self.tickets}).run("pd:Q1", self.generation)

    @property
    def generation(self) -> int:
        return self.record.generation

    @property
    def record(self) -> Record:
        record = self.store.get("pd:Q1")
        assert record is not None
        return record

    def run(self) -> None:
        self.investigation.run("pd:Q1", self.generation)
        self.write_back()


class Killed(Exception):
    """Stands for SIGKILL: nothing of the pipeline handles it."""


@pytest.fixture
def world(redis_url: str) -> World:
    made = World(Store(connect(redis_url, RedisSettings())))
    made.tickets.alerts["Q1"] = alert()
    return made


def test_a_polled_alert_is_investigated_and_written_once(world: World) -> None:
    assert poll(world.front, "pd") == 1
    assert world.published.take() == [("investigate", "pd:Q1", "1", DEFAULT)]
    world.run()
    assert world.published.take() == [("write_back", "pd:Q1", "1")]
    assert (world.record.state, world.record.outcome, world.tickets.writes) == (State.WRITTEN, "likely", 1)
    poll(world.front, "pd")
    assert world.published.take() == []
    assert world.store.spent(datetime.now(UTC).date().isoformat()) == 0.5


def test_the_cursor_moves_only_after_every_page_was_admitted(world: World) -> None:
    first = Page(alerts=(alert(),))
    world.tickets.pages = [first, Page(alerts=(alert(id="Q2"),), cursor="c9")]
    world.tickets.faults["poll"] = [Transient("502")]
    assert poll(world.front, "pd") == 0
    assert world.store.cursor("pd") == ""
    assert world.store.polls()["pd"]["error"] == "502"
    assert poll(world.front, "pd") == 2
    assert (world.store.polls()["pd"]["seen"], world.store.polls()["pd"]["error"]) == (2, "")
    assert world.store.cursor("pd") == "c9"


def test_one_poll_of_a_source_is_in_flight_at_a_time(world: World) -> None:
    assert world.store.renew_lease("poll:pd", "another worker", 5)
    assert poll(world.front, "pd") == 0
    world.store.release_lease("poll:pd", "another worker")
    assert poll(world.front, "pd") == 1


def test_a_broken_alert_is_quarantined_and_its_neighbours_go_on(world: World) -> None:
    world.tickets.pages = [Page(alerts=(alert(),), broken=(Broken(id="Q7", reason="no title", raw="{}"),))]
    poll(world.front, "pd")
    assert world.record.state is State.QUEUED
    assert world.store.broken()[0]["id"] == "Q7"


def test_what_could_not_be_published_is_published_by_the_scheduler(world: World) -> None:
    world.published.down = True
    assert world.front.admit(alert(), via="webhook").queued
    world.published.down = False
    assert reconcile(world.store, world.published, grace_seconds=60) == 0  # not yet overdue
    world.store.postpone("pd:Q1", -1)
    assert reconcile(world.store, world.published, grace_seconds=60) == 1
    assert world.published.take() == [("investigate", "pd:Q1", "1", DEFAULT)]
    assert reconcile(world.store, world.published, grace_seconds=60) == 0  # not every second


def test_a_backlog_breeds_no_copies(world: World) -> None:
    world.front.admit(alert(), via="poll")
    world.published.take()
    world.store.redis.lpush(DEFAULT, "a message that waits")
    world.store.postpone("pd:Q1", -1)
    assert reconcile(world.store, world.published, grace_seconds=60) == 0
    assert world.published.take() == []


def test_an_alert_that_resolved_before_work_began_gets_no_comment(world: World) -> None:
    poll(world.front, "pd")
    world.tickets.alerts["Q1"] = alert(status=Status.RESOLVED)
    world.investigation.run("pd:Q1", 1)
    assert (world.record.state, world.record.outcome) == (State.SKIPPED, "resolved_before_start")
    assert not world.cases


def test_a_ticket_system_that_cannot_be_asked_does_not_stop_the_investigation(world: World) -> None:
    poll(world.front, "pd")
    world.tickets.faults["fetch"] = [Transient("503")]
    world.tickets.faults["find"] = [Permanent("403")]
    world.investigation.run("pd:Q1", 1)
    assert world.record.state is State.REPORTED


def test_a_killed_run_is_resumed_from_its_journal(world: World) -> None:
    poll(world.front, "pd")
    world.die_after = 2
    with pytest.raises(Killed):
        world.investigation.run("pd:Q1", 1)
    world.die_after = None
    world.store.redis.hset("rootcaused:alert:pd:Q1", "lease_until", 0)  # the lease of the dead worker ends
    world.run()
    journal = world.cases[1][1]
    assert [event.kind for event in journal] == ["step_started", "model_answered"]
    assert world.cases[0][0].investigation == world.cases[1][0].investigation
    assert (world.record.state, world.tickets.writes) == (State.WRITTEN, 1)


def test_a_run_killed_before_its_report_was_stored_is_not_run_again(world: World) -> None:
    poll(world.front, "pd")
    _, claim = world.store.claim("pd:Q1", 1, stage="investigate")
    assert claim is not None
    case = Case(alert=alert(), investigation=claim.record.investigation, started_at=NOON, deadline=Deadline.never())
    world.store.append(claim, [Finished(report=report_for(case))])
    world.store.redis.hset("rootcaused:alert:pd:Q1", "lease_until", 0)
    world.run()
    assert not world.cases
    assert world.record.state is State.WRITTEN


def test_after_three_attempts_the_alert_is_parked_with_one_short_note(world: World) -> None:
    poll(world.front, "pd")
    world.die_after = 0
    for _ in range(3):
        with pytest.raises(Killed):
            world.investigation.run("pd:Q1", 1)
        world.store.redis.hset("rootcaused:alert:pd:Q1", "lease_until", 0)
    world.run()
    assert (world.record.state, world.tickets.writes, len(world.cases)) == (State.FAILED, 1, 3)
    assert "Could not investigate after 3 attempts" in world.record.reason


def test_a_failing_ticket_system_never_runs_the_model_again(world: World) -> None:
    poll(world.front, "pd")
    world.tickets.faults["publish"] = [Transient("429", retry_after=90), Transient("502")]
    world.investigation.run("pd:Q1", 1)
    world.write_back()
    assert world.record.state is State.WRITE_FAILED
    due_in = world.store.redis.zscore("rootcaused:due", "pd:Q1") / 1000 - world.store._now()
    assert 85 < due_in <= 90
    world.write_back()
    world.write_back()
    assert (world.record.state, world.tickets.writes, len(world.cases)) == (State.WRITTEN, 1, 1)


def test_a_reply_lost_after_the_note_was_added_gives_one_note(world: World) -> None:
    poll(world.front, "pd")
    world.tickets.faults["reply"] = [Transient("read time-out")]
    world.run()
    world.write_back()
    assert world.record.state is State.WRITTEN
    assert len(world.tickets.notes["Q1"]) == 1


def test_a_refused_write_is_parked_with_the_reason(world: World) -> None:
    poll(world.front, "pd")
    world.tickets.faults["publish"] = [Permanent("403: no access to this incident")]
    world.run()
    assert world.record.state is State.FAILED
    assert "no access" in world.record.reason


def test_a_requeue_edits_the_note_in_place(world: World) -> None:
    poll(world.front, "pd")
    world.run()
    assert world.front.requeue("pd:Q1", instructions="look at the database").generation == 2
    world.run()
    assert world.cases[1][0].instructions == "look at the database"
    assert world.cases[1][0].prior[0].id == world.cases[0][0].investigation
    assert len(world.tickets.notes["Q1"]) == 1
    assert world.tickets.notes["Q1"][0].investigation == world.cases[1][0].investigation


def test_a_requeue_of_an_unknown_alert_says_so(world: World) -> None:
    with pytest.raises(NotFound):
        world.front.requeue("pd:nobody")


def test_a_requeue_after_a_flush_finds_the_alert_at_its_source(world: World) -> None:
    assert world.front.requeue("pd:Q1").queued


def test_a_flush_after_write_back_costs_nothing_and_adds_no_note(world: World) -> None:
    poll(world.front, "pd")
    world.run()
    world.store.redis.flushall()
    poll(world.front, "pd")
    world.investigation.run("pd:Q1", 1)
    assert (world.record.state, world.tickets.writes, len(world.cases)) == (State.WRITTEN, 1, 1)


def test_a_flush_between_report_and_write_back_loses_nothing(world: World) -> None:
    poll(world.front, "pd")
    world.investigation.run("pd:Q1", 1)
    world.store.redis.flushall()
    poll(world.front, "pd")
    world.run()
    assert (world.record.state, world.tickets.writes) == (State.WRITTEN, 1)


def test_a_refired_alert_is_told_of_the_report_on_its_kind(world: World) -> None:
    poll(world.front, "pd")
    world.run()
    world.tickets.alerts = {"Q2": alert(id="Q2", starts_at=NOON + timedelta(hours=1))}
    poll(world.front, "pd")
    world.investigation.run("pd:Q2", 1)
    assert "the pool is exhausted" in world.cases[1][0].prior[0].why


def test_a_webhook_delivered_twice_is_admitted_once(world: World) -> None:
    body = alert().model_dump_json().encode()
    first = world.front.receive("pd", {"x-id": "d1"}, body)
    second = world.front.receive("pd", {"x-id": "d1"}, body)
    assert first.admissions[0].queued
    assert second.duplicate


def test_a_sweep_queues_what_matches_and_skips_what_was_done(world: World) -> None:
    world.tickets.alerts["Q2"] = alert(id="Q2", title="disk full")
    assert [a.queued for a in world.front.sweep("pd", "disk", limit=10)] == [True]
    assert [a.queued for a in world.front.sweep("pd", "disk", limit=10)] == [False]


def test_back_off_doubles_with_jitter_up_to_half_an_hour() -> None:
    assert 4 <= backoff(1) <= 6
    assert 32 <= backoff(4) <= 48
    assert 1440 <= backoff(50) <= 2160


def test_a_receipt_survives_the_store(world: World) -> None:
    poll(world.front, "pd")
    world.run()
    assert world.record.receipt == Receipt(id="n1", url="http://127.0.0.1/n", investigation=world.record.investigation)
