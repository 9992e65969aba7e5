"""P5, storm: 10,000 alerts of one outage over a real Redis with a scripted model; and the cost of a long history."""

from __future__ import annotations

import logging
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles

import structlog

from agent.alert import Alert, Severity
from agent.errors import Transient
from agent.loop import Investigator
from agent.scripted import ScriptedModel, says
from agent.spill import MemoryResults
from sources.port import Page
from tests.bench.figure import Figure, Options
from tests.support.published import Published
from tests.support.redis_process import RedisProcess
from tests.support.ticketing import FakeTickets
from worker.front import Front
from worker.loop import run_limits
from worker.pipeline.investigate import Investigation
from worker.pipeline.write_back import WriteBack
from worker.publisher import reconcile
from worker.redis_client import connect
from worker.settings import Limits, RedisSettings, Settings
from worker.store import Store

ALERTS = 10_000
HISTORY = 100_000
PAGE = 100
MINUTES = 4  # from the first alert of the outage to the last
SERVICES = 40
SAMPLE = 500
LOST_REPLIES = 0.01  # of the writes
FLAT = 1.25  # the cost of an alert with the whole history, over that with a tenth of it


def run(options: Options) -> Iterator[Figure]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    count = options.limit or ALERTS
    with tempfile.TemporaryDirectory() as folder, RedisProcess(Path(folder)) as redis:
        for name, alerts, places, target in (("", count, 1, 3.0), ("many_places.", count // 5, 200, None)):
            redis.flush()
            yield from _outage(Storm(redis, options.seed), name, alerts, places, target)
        redis.flush()
        yield from _history(Storm(redis, options.seed), count * (HISTORY // ALERTS))


def _outage(storm: Storm, name: str, count: int, places: int, target: float | None) -> Iterator[Figure]:
    empty = storm.memory()
    begun = time.monotonic()
    storm.rage(outage(count, places))
    seconds = time.monotonic() - begun
    counts = storm.store.counts()
    lost = count - counts["written"]
    doubled = sum(len(notes) - 1 for notes in storm.tickets.notes.values())
    silent = count - len(storm.tickets.notes)
    started = storm.started
    yield Figure(name=f"p5.{name}investigations", value=started, n=count, unit="runs", target=target, bound="<=")
    yield Figure(name=f"p5.{name}lost", value=lost + silent, n=count, unit="alerts", target=0, bound="==")
    yield Figure(name=f"p5.{name}doubled", value=doubled, n=count, unit="comments", target=0, bound="==")
    yield Figure(name=f"p5.{name}bytes_per_alert", value=(storm.memory() - empty) / count, n=count, unit="B")
    yield Figure(name=f"p5.{name}alerts_per_second", value=count / seconds, n=count, unit="1/s")


def _history(storm: Storm, count: int) -> Iterator[Figure]:
    """What an admission takes after a tenth of the history and after all of it."""
    past = history(count)
    tenth = storm.admit([next(past) for _ in range(count // 10)])
    whole = storm.admit(list(past))
    yield Figure(name="p5.admit_ms_short_history", value=tenth * 1000, n=count // 10, unit="ms")
    yield Figure(name="p5.admit_ms_long_history", value=whole * 1000, n=count, unit="ms")
    yield Figure(name="p5.history_growth", value=whole / tenth, n=count, unit="ratio", target=FLAT, bound="<=")


@dataclass(slots=True)
class Storm:
    """The pipeline in one process: tasks are done in between the pages of alerts, as workers would at the side."""

    redis: RedisProcess
    seed: int
    published: Published = field(default_factory=Published)
    tickets: FakeTickets = field(default_factory=FakeTickets)
    started: int = 0
    store: Store = field(init=False)
    front: Front = field(init=False)
    investigation: Investigation = field(init=False)
    writer: WriteBack = field(init=False)
    _lots: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._lots = random.Random(self.seed)
        self.store = Store(connect(self.redis.url, RedisSettings()))
        sources = {"pd": self.tickets}
        self.front = Front(settings=Settings(), store=self.store, publisher=self.published, sources=sources)
        investigator = Investigator(
            models=[ScriptedModel(lambda request: says("The pods have no memory left."))],
            tools=(),
            limits=run_limits(Settings()),
            results=MemoryResults(),
        )
        self.investigation = Investigation(
            store=self.store,
            publisher=self.published,
            sources=sources,
            destinations=sources,
            run_loop=investigator.run,
            limits=Limits(),
        )
        self.writer = WriteBack(store=self.store, destinations=sources, sources=sources)

    def rage(self, alerts: list[Alert]) -> None:
        for start in range(0, len(alerts), PAGE):
            page = alerts[start : start + PAGE]
            self.tickets.alerts |= {alert.id: alert for alert in page}
            self.front.admit_page("pd", Page(alerts=tuple(page)), via="poll")
            self._work()
        while owed := self.store.redis.zrange("rootcaused:due", 0, -1):
            for key in owed:
                self.store.postpone(key, -1)  # time passes
            reconcile(self.store, self.published, grace_seconds=60, limit=1_000)
            self._work()

    def admit(self, alerts: list[Alert]) -> float:
        """Seconds an alert took at the end, by the lower quartile: others share the machine."""
        took = []
        for alert in alerts:
            begun = time.perf_counter()
            self.front.admit(alert, via="poll")
            took.append(time.perf_counter() - begun)
        self.published.take()
        return quantiles(took[-SAMPLE:], n=4)[0]

    def memory(self) -> int:
        return int(self.store.redis.info("memory")["used_memory"])

    def _work(self) -> None:
        while tasks := self.published.take():
            for kind, key, generation, *_ in tasks:
                if kind == "investigate":
                    self.started += 1
                    self.investigation.run(key, int(generation))
                else:
                    if self._lots.random() < LOST_REPLIES:
                        self.tickets.faults["reply"] = [Transient("the reply was lost")]
                    self.writer.run(key, int(generation))


def outage(count: int, places: int) -> list[Alert]:
    """Pods of many services fail within minutes, some critically; one in twenty alerts fires a second time."""
    begun = datetime.now(UTC) - timedelta(minutes=MINUTES + 1)
    step = timedelta(minutes=MINUTES) / count
    alerts = []
    for number in range(count):
        pod = number - 7 if number % 20 == 7 else number
        alerts.append(_alert(f"Q{number}", pod, begun + number * step, f"shop-{pod % places}"))
    return alerts


def history(count: int) -> Iterator[Alert]:
    """Three weeks of alerts from everywhere; each kind comes back now and then."""
    begun, step = datetime.now(UTC) - timedelta(days=21), timedelta(days=21) / count
    for number in range(count):
        yield _alert(f"H{number}", number % (count // 20), begun + number * step, f"team-{number % 300}")


def _alert(id_: str, pod: int, at: datetime, namespace: str) -> Alert:
    service = f"service-{pod % SERVICES}"
    return Alert(
        source="pd",
        id=id_,
        title=f"PodNotReady: {service}-{pod} is not ready for more than a minute",
        body="The pod has not been ready for more than a minute. See the runbook for what to look at first.",
        url=f"https://pager.example.com/incidents/{id_}",
        severity=Severity.CRITICAL if pod % 10 == 3 else Severity.WARNING,
        service=service,
        labels={"alertname": "PodNotReady", "namespace": namespace, "pod": f"{service}-{pod}", "cluster": "eu-1"},
        starts_at=at,
        updated_at=at,
        fingerprint=f"{pod:016x}",
    )
