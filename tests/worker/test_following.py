"""Groups over a real Redis: who leads, who follows, and that nobody is lost whenever a process dies."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.alert import Alert, Severity, Status
from agent.case import Case
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.events import Event, Finished
from agent.report import AlertSummary, Confidence, Outcome, Report, Run
from sources.port import Page, Receipt
from tests.support.alerts import alert
from tests.support.published import Published
from tests.support.ticketing import FakeTickets
from worker.front import Front
from worker.pipeline.investigate import Investigation
from worker.pipeline.write_back import WriteBack
from worker.publisher import reconcile
from worker.record import Record, State
from worker.redis_client import connect
from worker.settings import Limits, RedisSettings, Settings
from worker.store import Store

NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)


def in_shop(number: int, **changes: Any) -> Alert:
    """Alerts of one namespace, a second apart, each of a kind of its own."""
    fields: dict[str, Any] = {
        "id": f"Q{number}",
        "title": f"alert {number}",
        "labels": {"namespace": "shop", "alertname": f"Kind{number % 3}"},
        "fingerprint": f"kind {number}",
        "starts_at": NOW + timedelta(seconds=number),
        "updated_at": NOW,
    }
    return alert(**{**fields, **changes})


@dataclass
class Tickets(FakeTickets):
    """Keeps what was written on each ticket, the newest version of each note."""

    texts: dict[str, list[Report]] = field(default_factory=dict)

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        receipt = super().publish(alert, report, previous=previous, deadline=deadline)
        notes = self.texts.setdefault(alert.id, [])
        if previous is not None:
            notes.pop()
        notes.append(report)
        return receipt


@dataclass
class World:
    """The pipeline with a scheduler's look at what is due as the only thing that carries work on."""

    store: Store
    settings: Settings = field(default_factory=Settings)
    tickets: Tickets = field(default_factory=Tickets)
    published: Published = field(default_factory=Published)
    cases: list[Case] = field(default_factory=list)
    headline: str = "the pool is exhausted"
    fails: set[str] = field(default_factory=set)

    @property
    def front(self) -> Front:
        return Front(settings=self.settings, store=self.store, publisher=self.published, sources={"pd": self.tickets})

    def see(self, *alerts: Alert) -> list[State]:
        self.tickets.alerts |= {one.id: one for one in alerts}
        return [one.state for one in self.front.admit_page("pd", Page(alerts=alerts), via="poll")]

    def record(self, number: int) -> Record:
        record = self.store.get(f"pd:Q{number}")
        assert record is not None
        return record

    def states(self, *numbers: int) -> list[State]:
        return [self.record(number).state for number in numbers]

    def loop(self, case: Case, journal: list[Event]) -> Iterator[Event]:
        self.cases.append(case)
        if case.alert.key in self.fails:
            raise Killed
        summary = AlertSummary(
            key=case.alert.key, source=case.alert.source, id=case.alert.id, title=case.alert.title, severity="error"
        )
        yield Finished(
            report=Report(
                alert=summary,
                run=Run(investigation=case.investigation, generation=case.generation, started_at=case.started_at),
                outcome=Outcome.LIKELY,
                confidence=Confidence(level="medium"),
                headline=self.headline,
                related=case.prior,
            )
        )

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

    @property
    def writer(self) -> WriteBack:
        return WriteBack(store=self.store, destinations={"pd": self.tickets}, sources={"pd": self.tickets})

    def work(self, tasks: list[tuple[str, ...]]) -> None:
        for kind, key, generation, *_ in tasks:
            try:
                if kind == "investigate":
                    self.investigation.run(key, int(generation))
                else:
                    self.writer.run(key, int(generation))
            except Killed:
                self.store.redis.hset(f"rootcaused:alert:{key}", "lease_until", 0)

    def settle(self, rounds: int = 60) -> None:
        """Time passes: whatever is owed becomes due, is published and worked on, until nothing is owed."""
        for _ in range(rounds):
            self.work(self.published.take())
            owed = self.store.redis.zrange("rootcaused:due", 0, -1)
            if not owed and not self.published.tasks:
                return
            for key in owed:
                self.store.postpone(key, -1)
            reconcile(self.store, self.published, grace_seconds=60)
        raise AssertionError(f"still owed: {self.store.redis.zrange('rootcaused:due', 0, -1)}")

    def notes(self) -> dict[str, list[str]]:
        return {id_: [report.outcome.value for report in reports] for id_, reports in self.tickets.texts.items()}


class Killed(Exception):
    """Stands for SIGKILL: nothing of the pipeline handles it."""


@pytest.fixture
def world(redis_url: str) -> World:
    return World(Store(connect(redis_url, RedisSettings())))


# -- joining -----------------------------------------------------------------------------------------------------------


def test_alerts_of_one_place_are_one_investigation_and_each_gets_its_line(world: World) -> None:
    assert world.see(*map(in_shop, range(4))) == [State.QUEUED, *[State.GROUPED] * 3]
    assert world.record(0).group_size == 4
    world.settle()
    assert len(world.cases) == 1
    assert world.states(0, 1, 2, 3) == [State.WRITTEN] * 4
    assert world.notes() == {"Q0": ["likely"], **{f"Q{n}": ["duplicate_of"] for n in (1, 2, 3)}}
    line = world.tickets.texts["Q1"][0]
    assert line.headline == "Same incident as pd:Q0: the pool is exhausted"
    assert line.related[0].url == "http://127.0.0.1/n"


def test_the_lead_is_told_of_its_followers(world: World) -> None:
    world.see(*map(in_shop, range(3)))
    world.settle()
    told = [item for item in world.cases[0].prior if item.kind == "correlated_alert"]
    assert [item.id for item in told] == ["pd:Q1", "pd:Q2"]
    assert "alert 1" in told[0].why


def test_those_that_joined_while_it_ran_are_in_the_leads_report(world: World) -> None:
    world.see(in_shop(0))
    world.published.take()
    claim = world.store.claim("pd:Q0", 1, stage="investigate")[1]
    assert claim is not None
    world.see(in_shop(1))
    world.store.redis.hset("rootcaused:alert:pd:Q0", "lease_until", 0)
    world.settle()
    assert [item.id for item in world.tickets.texts["Q0"][0].related] == ["pd:Q1"]


def test_other_places_are_other_investigations(world: World) -> None:
    other = in_shop(1, labels={"namespace": "pay"})
    assert world.see(in_shop(0), other, in_shop(2)) == [State.QUEUED, State.QUEUED, State.GROUPED]


def test_a_late_joiner_gets_its_line_at_once(world: World) -> None:
    world.see(in_shop(0))
    world.settle()
    world.see(in_shop(1))
    assert world.published.tasks == [("write_back", "pd:Q1", "1")]
    world.work(world.published.take())
    assert world.states(1) == [State.WRITTEN]
    assert len(world.cases) == 1


def test_a_follower_that_is_looked_at_early_goes_on_waiting(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    for _ in range(20):
        world.writer.run("pd:Q1", 1)
    assert (world.states(1), world.record(1).write_attempts) == ([State.GROUPED], 0)
    assert not world.tickets.texts


def test_a_waiting_follower_is_not_published_while_its_lead_is_at_work(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.published.take()
    world.store.postpone("pd:Q1", -1)
    assert reconcile(world.store, world.published, grace_seconds=60) == 0
    assert "pd:Q1" not in world.store.due()


def test_what_a_person_asks_for_is_investigated_whatever_its_group(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    assert world.front.requeue("pd:Q1").queued
    assert world.record(1).lead == ""
    world.settle()
    assert world.notes() == {"Q0": ["likely"], "Q1": ["likely"]}


def test_a_grouped_alert_that_is_seen_again_stays_in_its_group(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    gone = in_shop(1, status=Status.RESOLVED, updated_at=NOW + timedelta(seconds=5))
    back = in_shop(1, updated_at=NOW + timedelta(seconds=9))
    assert world.see(gone, back) == [State.GROUPED, State.GROUPED]
    assert world.record(0).group_size == 2


def test_two_processes_that_admit_at_the_same_moment_make_one_lead(redis_url: str) -> None:
    worlds = [World(Store(connect(redis_url, RedisSettings()))) for _ in range(8)]
    alerts = [in_shop(number) for number in range(64)]

    def admit(number: int) -> None:
        for one in alerts[number::8]:
            worlds[number].front.admit(one, via="webhook")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(admit, range(8)))
    assert worlds[0].store.counts()["queued"] == 1
    assert worlds[0].store.counts()["grouped"] == 63
    leads = {record.lead for record in worlds[0].store.records([State.GROUPED])}
    assert len(leads) == 1


# -- a lead that changes its mind, or comes to nothing -----------------------------------------------------------------


def test_the_followers_line_is_edited_when_the_lead_changes_its_mind(world: World) -> None:
    world.see(*map(in_shop, range(3)))
    world.settle()
    world.headline = "a node is full"
    world.front.requeue("pd:Q0")
    world.settle()
    assert world.notes() == {"Q0": ["likely"], "Q1": ["duplicate_of"], "Q2": ["duplicate_of"]}
    assert world.tickets.texts["Q1"][0].headline == "Same incident as pd:Q0: a node is full"
    assert world.states(0, 1, 2) == [State.WRITTEN] * 3


def test_a_lead_that_says_the_same_again_changes_no_line(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.settle()
    world.front.requeue("pd:Q0")
    before = world.tickets.writes
    world.settle()
    assert world.tickets.writes == before + 1  # the lead's own note


def test_when_the_lead_is_resolved_a_follower_is_investigated_and_leads_the_rest(world: World) -> None:
    world.see(*map(in_shop, range(4)))
    world.tickets.alerts["Q0"] = in_shop(0, status=Status.RESOLVED)
    world.settle()
    assert world.states(0, 1, 2, 3) == [State.SKIPPED, *[State.WRITTEN] * 3]
    assert sorted(outcome for notes in world.notes().values() for outcome in notes) == [
        "duplicate_of",
        "duplicate_of",
        "likely",
    ]
    assert len(world.cases) == 1


def test_when_all_are_resolved_all_are_skipped_and_nothing_is_spent(world: World) -> None:
    world.see(*map(in_shop, range(4)))
    world.tickets.alerts = {
        one.id: one.model_copy(update={"status": Status.RESOLVED}) for one in map(in_shop, range(4))
    }
    world.settle()
    assert world.states(0, 1, 2, 3) == [State.SKIPPED] * 4
    assert not world.cases
    assert not world.tickets.texts


def test_a_lead_that_can_not_be_written_to_is_replaced(world: World) -> None:
    world.see(in_shop(0), in_shop(1), in_shop(2))
    world.tickets.faults["publish"] = [Permanent("403")]
    world.settle()
    assert world.states(0) == [State.FAILED]
    assert sorted(world.states(1, 2)) == [State.WRITTEN] * 2
    assert len(world.cases) == 2


def test_a_group_whose_second_lead_fails_too_gets_no_third(world: World) -> None:
    world.see(*map(in_shop, range(5)))
    world.fails = {f"pd:Q{number}" for number in range(5)}
    world.settle(rounds=120)
    assert {case.alert.key for case in world.cases} == {"pd:Q0", world.record(4).lead or "pd:Q4"}
    assert len(world.cases) == 6
    assert world.states(0, 1, 2, 3, 4) == [State.FAILED] * 5
    told = [report.headline for reports in world.tickets.texts.values() for report in reports]
    assert sum("Could not investigate" in headline for headline in told) == 2
    assert sum("failed twice" in headline for headline in told) == 3


def test_the_promoted_alert_takes_the_place_of_the_old_lead_for_those_that_come_later(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.tickets.alerts["Q0"] = in_shop(0, status=Status.RESOLVED)
    world.settle()
    world.see(in_shop(2))
    assert world.record(2).lead == "pd:Q1"


def test_a_lead_that_was_forgotten_is_replaced(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.published.take()
    world.store.redis.delete("rootcaused:alert:pd:Q0")
    world.settle()
    assert world.notes() == {"Q1": ["likely"]}


def reopen(world: World, number: int) -> None:
    minute = timedelta(minutes=1)
    world.see(in_shop(number, status=Status.RESOLVED, updated_at=NOW + minute))
    world.see(in_shop(number, updated_at=NOW + 2 * minute))


def test_a_ticket_that_is_reopened_is_investigated_itself_and_its_note_is_edited(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.settle()
    reopen(world, 1)
    assert (world.states(1), world.record(1).lead, world.record(1).generation) == ([State.QUEUED], "", 2)
    world.settle()
    assert world.notes() == {"Q0": ["likely"], "Q1": ["likely"]}


def test_a_lead_that_is_reopened_leaves_the_lines_of_the_earlier_episode_alone(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.settle()
    world.headline = "a node is full"
    reopen(world, 0)
    world.settle()
    assert world.tickets.texts["Q0"][0].headline == "a node is full"
    assert world.tickets.texts["Q1"][0].headline == "Same incident as pd:Q0: the pool is exhausted"


# -- faults ------------------------------------------------------------------------------------------------------------


def test_a_reply_lost_after_the_line_was_added_gives_one_line(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.work(world.published.take())
    world.work(world.published.take())
    world.tickets.faults["reply"] = [Transient("read time-out")]
    world.settle()
    assert world.states(1) == [State.WRITTEN]
    assert len(world.tickets.notes["Q1"]) == 1


def test_a_ticket_system_that_is_down_delays_the_line(world: World) -> None:
    world.see(in_shop(0))
    world.settle()
    world.see(in_shop(1))
    world.tickets.faults["publish"] = [Transient("502"), Transient("502")]
    world.work(world.published.take())
    assert world.states(1) == [State.WRITE_FAILED]
    world.settle()
    assert world.notes()["Q1"] == ["duplicate_of"]


def test_a_whole_report_is_never_replaced_by_a_line_after_a_flush(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    world.settle()
    world.store.redis.flushall()
    world.see(in_shop(1), in_shop(0))  # seen the other way round, so that the old lead follows
    assert world.record(0).lead == "pd:Q1"
    world.settle()
    assert world.notes() == {"Q0": ["likely"], "Q1": ["duplicate_of"]}
    assert world.states(0, 1) == [State.WRITTEN] * 2
    assert len(world.cases) == 1
    world.headline = "a node is full"
    world.front.requeue("pd:Q1")
    world.settle()
    assert world.notes() == {"Q0": ["likely"], "Q1": ["likely"]}


STEPS = ("admit", "claim", "append", "settle", "keep_report", "promote")


class Dying:
    """A store whose process dies right before or right after its n-th change."""

    def __init__(self, store: Store, at: int, after: bool) -> None:
        self._store, self._at, self._after = store, at, after

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._store, name)
        if name not in STEPS:
            return act

        def dying(*args: Any, **kwargs: Any) -> Any:
            self._at -= 1
            if self._at == 0 and not self._after:
                raise Killed
            done = act(*args, **kwargs)
            if self._at == 0:
                raise Killed
            return done

        return dying


@pytest.mark.parametrize("lead_resolves", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_process_that_dies_at_any_step_loses_nothing_and_doubles_nothing(
    redis_url: str, after: bool, lead_resolves: bool
) -> None:
    for step in range(1, 40):
        store = Store(connect(redis_url, RedisSettings()))
        store.redis.flushall()
        world = World(store)
        dying = World(Dying(store, step, after), tickets=world.tickets, published=world.published)  # type: ignore[arg-type]
        died = False
        try:
            dying.see(*map(in_shop, range(3)))
            if lead_resolves:
                world.tickets.alerts["Q0"] = in_shop(0, status=Status.RESOLVED)
            for _ in range(6):
                for kind, key, generation, *_ in world.published.take():
                    run = dying.investigation.run if kind == "investigate" else dying.writer.run
                    run(key, int(generation))
                for key in store.redis.zrange("rootcaused:due", 0, -1):
                    store.postpone(key, -1)
                reconcile(store, world.published, grace_seconds=60)
        except Killed:
            died = True
            for key in store.redis.scan_iter("rootcaused:alert:*"):
                store.redis.hset(key, "lease_until", 0)  # the leases of the dead process end
        world.see(*[in_shop(n) for n in range(1 if lead_resolves else 0, 3)])  # the next poll
        world.settle()
        notes = world.notes()
        assert all(len(outcomes) == 1 for outcomes in notes.values()), (step, notes)
        assert {f"Q{n}" for n in (1, 2)} <= set(notes), (step, notes)
        outcomes = sorted(outcome for one in notes.values() for outcome in one)
        assert outcomes == ["duplicate_of"] * (len(notes) - 1) + ["likely"], (step, notes)
        if not died:
            return
    raise AssertionError("the run has more steps than the test tries")


@pytest.mark.parametrize("after", [False, True])
def test_a_process_that_dies_while_lines_are_edited_leaves_no_line_behind(redis_url: str, after: bool) -> None:
    for step in range(1, 20):
        store = Store(connect(redis_url, RedisSettings()))
        store.redis.flushall()
        world = World(store)
        world.see(*map(in_shop, range(3)))
        world.settle()
        world.headline = "a node is full"
        dying = Dying(store, step, after)
        mortal = World(dying, tickets=world.tickets, published=world.published, headline=world.headline)  # type: ignore[arg-type]
        died = False
        try:
            mortal.front.requeue("pd:Q0")
            for _ in range(4):
                for kind, key, generation, *_ in world.published.take():
                    run = mortal.investigation.run if kind == "investigate" else mortal.writer.run
                    run(key, int(generation))
                for key in store.redis.zrange("rootcaused:due", 0, -1):
                    store.postpone(key, -1)
                reconcile(store, world.published, grace_seconds=60)
        except Killed:
            died = True
            for key in store.redis.scan_iter("rootcaused:alert:*"):
                store.redis.hset(key, "lease_until", 0)
        if step == 1 and not after:
            world.front.requeue("pd:Q0")  # it was not even recorded, so the operator asks again
        world.settle()
        lines = [[report.headline for report in world.tickets.texts[f"Q{number}"]] for number in (1, 2)]
        assert lines == [["Same incident as pd:Q0: a node is full"]] * 2, step
        if not died:
            return
    raise AssertionError("the run has more steps than the test tries")


# -- storms ------------------------------------------------------------------------------------------------------------


def elsewhere(number: int, **changes: Any) -> Alert:
    return in_shop(number, labels={"namespace": f"ns{number}", "alertname": f"Kind{number % 3}"}, **changes)


def test_past_the_rate_one_investigation_stands_for_the_rest_with_a_digest(world: World) -> None:
    world.settings = Settings.model_validate({"storm": {"investigations": 3}})
    states = world.see(*map(elsewhere, range(40)))
    assert states == [*[State.QUEUED] * 4, *[State.GROUPED] * 36]
    assert [task[1] for task in world.published.tasks] == ["pd:Q0", "pd:Q1", "pd:Q2"]  # the fourth waits for the rest
    world.settle()
    assert len(world.cases) == 4
    assert len(world.tickets.texts) == 40
    assert all(len(reports) == 1 for reports in world.tickets.texts.values())
    digest = world.tickets.texts["Q3"][0].related[-1]
    assert digest.id == "digest"
    assert digest.why.startswith("36 alerts joined this investigation: ")
    assert "1 x Kind1 in ns4" in digest.why or "more kinds" in digest.why


def test_what_waited_for_a_storm_or_took_a_leads_place_is_published_whatever_waits_in_the_queue(world: World) -> None:
    world.settings = Settings.model_validate({"storm": {"investigations": 1}})
    world.see(elsewhere(0), elsewhere(1))
    world.published.take()
    world.store.redis.lpush(world.record(1).queue, "a message that waits")
    world.store.postpone("pd:Q1", -1)
    assert reconcile(world.store, world.published, grace_seconds=60) == 1
    world.store.postpone("pd:Q1", -1)
    assert reconcile(world.store, world.published, grace_seconds=60) == 0  # its message is in the queue now


def test_a_secret_in_a_followers_title_is_kept_out_of_the_leads_report(world: World) -> None:
    world.see(in_shop(0), in_shop(1, title="login with hunter2x failed"))
    world.published.take()
    investigation = replace(world.investigation, redactor=lambda: lambda text: text.replace("hunter2x", "<redacted>"))
    investigation.run("pd:Q0", 1)
    report = world.store.report(world.record(0).investigation)
    assert report is not None
    assert "login with <redacted> failed" in report.related[0].why


def test_a_storm_of_one_source_leaves_the_others_alone(world: World) -> None:
    world.settings = Settings.model_validate({"storm": {"investigations": 1}})
    world.see(elsewhere(0), elsewhere(1), elsewhere(2))
    other = world.front.admit(elsewhere(3, source="am"), via="webhook")
    assert other.queued


def test_the_kinds_of_a_digest_are_bounded(world: World) -> None:
    world.see(in_shop(0), *(in_shop(n, labels={"namespace": "shop", "alertname": f"K{n}"}) for n in range(1, 80)))
    tally = world.store.tally("pd:Q0")
    assert (len(tally), sum(tally.values())) == (51, 79)
    assert tally["others"] == 29


# -- noise -------------------------------------------------------------------------------------------------------------


def episode(number: int, minutes: float = 0) -> Alert:
    return in_shop(number, fingerprint="same", starts_at=NOW - timedelta(minutes=60 - minutes))


def test_a_refire_is_investigated_of_its_own_by_default(world: World) -> None:
    world.see(episode(0, 0))
    world.settle()
    world.see(episode(1, 1))
    world.settle()
    assert len(world.cases) == 2
    assert [item.kind for item in world.cases[1].prior] == ["prior_incident"]


def test_a_refire_within_the_cooldown_costs_nothing(world: World) -> None:
    world.settings = Settings.model_validate({"noise": {"cooldown_seconds": 3600}})
    world.see(episode(0, 0))
    world.settle()
    world.see(episode(1, 10), episode(2, 20))
    world.settle()
    assert len(world.cases) == 1
    assert world.tickets.texts["Q2"][0].headline.startswith("Same cause as pd:Q0, ")


def test_flapping_is_damped(world: World) -> None:
    for number in range(8):
        world.see(episode(number, number * 3))
        world.settle()
    assert len(world.cases) == 4
    assert world.record(7).lead == "pd:Q3"
    assert "flapping: 8th time" in world.record(7).reason


def test_maintenance_ends_and_what_still_fires_is_taken_up(world: World) -> None:
    world.settings = Settings.model_validate({"maintenance": {"always": {"crontab": "* * * * *", "minutes": 5}}})
    assert world.see(in_shop(0)) == [State.SKIPPED]
    assert world.see(in_shop(0)) == [State.SKIPPED]
    world.settings = Settings()
    assert world.see(in_shop(0)) == [State.SKIPPED]  # not before the window it was skipped for has ended
    world.store.redis.hset("rootcaused:alert:pd:Q0", "skip_until", 1)
    assert world.see(in_shop(0)) == [State.QUEUED]
    assert [line["state"] for line in world.store.audit("pd:Q0")] == ["skipped", "queued"]


def test_a_filtered_alert_is_recorded_with_its_reason_and_stays_skipped(world: World) -> None:
    world.settings = Settings.model_validate({"filters": [{"matchers": ["severity=info"], "reason": "only news"}]})
    world.see(in_shop(0, severity=Severity.INFO), in_shop(1))
    assert (world.record(0).state, world.record(0).reason) == (State.SKIPPED, "filtered: only news")
    assert world.states(1) == [State.QUEUED]
    world.see(in_shop(0, severity=Severity.INFO))
    assert world.states(0) == [State.SKIPPED]


def test_explain_tells_what_was_decided_and_what_would_be_now(world: World) -> None:
    world.see(in_shop(0), in_shop(1))
    explained = world.front.explain("pd:Q1")
    then = explained.then["rulings"][-1]
    assert (then["rule"], then["applies"], then["inputs"]["group"]["lead"]) == ("group", True, "pd:Q0")
    assert explained.now.rulings[-1].rule == "group"
    world.tickets.alerts["Q9"] = in_shop(9)
    unseen = world.front.explain("pd:Q9")
    assert (unseen.record, unseen.then, unseen.now.plan.lead) == (None, {}, "pd:Q0")
    assert world.store.get("pd:Q9") is None


def test_the_decision_is_kept_in_few_bytes(world: World) -> None:
    world.see(*map(in_shop, range(3)))
    assert len(world.record(2).why) < 1_500
    assert json.loads(world.record(2).why)["rulings"]


def test_every_key_of_a_settled_group_expires(world: World) -> None:
    world.see(*map(in_shop, range(3)))
    world.settle()
    lasting = {key for key in world.store.redis.scan_iter("rootcaused:*") if world.store.redis.ttl(key) < 0}
    assert lasting == {"rootcaused:state:written", "rootcaused:grouping"}


def test_groups_do_not_depend_on_the_order_of_a_page(world: World) -> None:
    alerts = [in_shop(number) for number in range(20)]
    random.Random(4).shuffle(alerts)
    states = world.see(*alerts)
    assert states.count(State.QUEUED) == 1
