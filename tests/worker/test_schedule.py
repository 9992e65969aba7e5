from __future__ import annotations

from dataclasses import dataclass

import pytest

from agent.errors import ConfigError
from tests.support.published import Published
from worker.crontab import next_time
from worker.redis_client import connect
from worker.schedule import Scheduler
from worker.settings import RedisSettings, Settings, SweepSettings
from worker.store import Store

FEB_3_NOON = 1_927_886_400.0  # 2031-02-03T12:00:00Z, a Monday


@dataclass
class Time:
    """A monotonic clock and a wall clock that tests move apart."""

    ticks: float = 0.0
    wall: float = FEB_3_NOON

    def pass_(self, seconds: float) -> None:
        self.ticks += seconds
        self.wall += seconds


def settings(**changes: object) -> Settings:
    source = {"kind": "pagerduty", "token": "t", "from_email": "bot@example.test", "poll_seconds": 30}
    return Settings.model_validate({"sources": {"pd": source}, **changes})


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store(connect(redis_url, RedisSettings()))


def scheduler(store: Store, time: Time, published: Published, **changes: object) -> Scheduler:
    return Scheduler(
        settings=settings(**changes), store=store, publisher=published, clock=lambda: time.ticks, now=lambda: time.wall
    )


def test_a_source_is_polled_once_an_interval_whatever_the_wall_clock_does(store: Store) -> None:
    time, published = Time(), Published()
    leader = scheduler(store, time, published)
    for wall_jump in (0, -3_600, 7_200, 0):
        time.wall += wall_jump
        leader.tick()
    assert published.take() == [("poll", "pd")]
    time.pass_(30)
    leader.tick()
    assert published.take() == [("poll", "pd")]


def test_of_two_schedulers_one_ticks_and_the_other_follows_when_it_resigns(store: Store) -> None:
    time, published = Time(), Published()
    first, second = scheduler(store, time, published), scheduler(store, time, published)
    assert [first.tick(), second.tick(), first.tick()] == [True, False, True]
    first.resign()
    assert second.tick()


def test_a_missed_sweep_is_caught_up_once(store: Store) -> None:
    time, published = Time(), Published()
    sweeps = {"nightly": SweepSettings(source="pd", query="status=open", crontab="0 3 * * *")}
    leader = scheduler(store, time, published, sweeps=sweeps)
    leader.tick()
    assert ("sweep", "nightly") not in published.take()
    time.pass_(3 * 86_400)
    for _ in range(3):
        leader.tick()
    assert published.take().count(("sweep", "nightly")) == 1


@pytest.mark.parametrize(
    ("text", "hours"),
    [("0 3 * * *", 15), ("30 12 * * *", 0.5), ("0 */6 * * *", 6), ("0 12 * * mon", 7 * 24)],
)
def test_the_next_time_of_a_crontab(text: str, hours: float) -> None:
    assert next_time(text, FEB_3_NOON) == FEB_3_NOON + hours * 3_600


@pytest.mark.parametrize("text", ["", "* * * *", "x * * * *", "61 * * * *"])
def test_a_bad_crontab_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="crontab"):
        next_time(text, FEB_3_NOON)
