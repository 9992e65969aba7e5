"""Q3, correlation: the alerts of all cases as one stream through the real admit step, and which were put together."""

from __future__ import annotations

import json
import logging
import random
import tempfile
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

import structlog

from agent.alert import Alert
from tests.bench.cloudopsbench.cases import places
from tests.bench.figure import Figure, Options
from tests.support.published import Published
from tests.support.redis_process import RedisProcess
from worker.front import Front
from worker.record import State
from worker.redis_client import connect
from worker.settings import RedisSettings, Settings
from worker.store import Store

GAPS = {30: 0.92, 10: 0.85, 2: 0.50}  # minutes between incidents on average, and the F1 that is asked for
SPREAD_SECONDS = 115.0  # the data's own windows are this long: an incident's alerts fire anywhere in it
RUN_SECONDS = 180.0  # how long an investigation takes; what fires again after it is a new incident
REPLAYS = 3
PLAIN_SECONDS = 300
BEGIN = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
CHANGING = ("time_range", "evidence", "occurrences", "status")  # what a rule's labels would not hold


@dataclass(frozen=True, slots=True)
class Fired:
    incident: int
    alert: Alert


@dataclass(slots=True)
class Clock:
    at: datetime = BEGIN

    def now(self) -> datetime:
        return self.at


@dataclass(slots=True)
class Daemon:
    """The real front and store. Investigations take their time and find something."""

    store: Store
    clock: Clock = field(default_factory=Clock)
    front: Front = field(init=False)
    _running: list[tuple[datetime, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.front = Front(settings=Settings(), store=self.store, publisher=Published(), now=self.clock.now)

    def see(self, alert: Alert) -> str:
        """The key of the alert whose investigation this one is part of."""
        assert alert.starts_at is not None
        self.clock.at = alert.starts_at
        self._finish()
        admission = self.front.admit(alert, via="webhook")
        if admission.state is State.QUEUED:
            self._running.append((self.clock.at + timedelta(seconds=RUN_SECONDS), alert.key))
            return alert.key
        record = self.store.get(alert.key)
        assert record is not None
        return record.lead

    def _finish(self) -> None:
        while self._running and self._running[0][0] <= self.clock.at:
            _, key = self._running.pop(0)
            claim = self.store.claim(key, 1, stage="investigate")[1]
            assert claim is not None
            self.store.settle(claim, State.WRITTEN, outcome="likely")


def run(options: Options) -> Iterator[Figure]:
    if options.data is None:
        raise SystemExit("q3 needs --data DIR")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    cases = [
        case for place in places(options.data, limit=options.limit, seed=options.seed) if (case := read(place.folder))
    ]
    count = sum(map(len, cases))
    with tempfile.TemporaryDirectory() as folder, RedisProcess(Path(folder)) as redis:
        for minutes, target in GAPS.items():
            scores, plain = [], []
            for replay in range(REPLAYS):
                redis.flush()
                fired = stream(cases, minutes * 60, random.Random(f"{options.seed} {replay}"))
                daemon = Daemon(Store(connect(redis.url, RedisSettings())))
                truth = [one.incident for one in fired]
                scores.append(f1([daemon.see(one.alert) for one in fired], truth))
                plain.append(f1(windows(fired), truth))
            yield Figure(name=f"q3.window_{minutes}min", value=mean(plain), n=count, unit="F1")
            yield Figure(name=f"q3.f1_{minutes}min", value=mean(scores), n=count, unit="F1", target=target)


def read(folder: Path) -> list[Alert]:
    """The alerts of a case as a monitoring system would send them, without a time; none when none fired."""
    file = folder / "raw_data" / "alert.json"
    items = json.loads(file.read_text()).get("alerts", []) if file.is_file() else []
    namespace = json.loads((folder / "metadata.json").read_text())["namespace"]
    return [_alert(item, namespace) for item in items]


def _alert(item: dict[str, Any], namespace: str) -> Alert:
    service = str(item.get("entity_name") or item.get("entry_service") or item.get("name") or "")
    kind = item.get("metric_category") or item.get("business_action") or item.get("type") or "Anomaly"
    identity = json.dumps([namespace, {k: v for k, v in item.items() if k not in CHANGING}], sort_keys=True)
    return Alert(
        source="bench",
        id="-",
        title=f"{kind}: {service}",
        service=service,
        labels={"namespace": namespace, "service": service, "alertname": str(kind)},
        fingerprint=sha256(identity.encode()).hexdigest()[:16],
    )


def stream(cases: Sequence[Sequence[Alert]], gap: float, rng: random.Random) -> list[Fired]:
    """Incidents in an order by lot, `gap` seconds apart on average; each alert at a moment of its incident by lot."""
    at, fired = BEGIN, []
    for incident in rng.sample(range(len(cases)), len(cases)):
        at += timedelta(seconds=rng.expovariate(1 / gap))
        for number, alert in enumerate(cases[incident]):
            starts_at = at + timedelta(seconds=rng.uniform(0, SPREAD_SECONDS))
            update = {"id": f"{incident}-{number}", "starts_at": starts_at, "updated_at": starts_at}
            fired.append(Fired(incident, alert.model_copy(update=update)))
    return sorted(fired, key=lambda one: (one.alert.starts_at, one.alert.id))


def windows(fired: Sequence[Fired]) -> list[int]:
    """For comparison: whatever fires within five minutes of the alert before it is one incident."""
    found: list[int] = []
    for number, one in enumerate(fired):
        assert one.alert.starts_at is not None
        before = fired[number - 1].alert.starts_at if number else None
        apart = before is None or (one.alert.starts_at - before).total_seconds() > PLAIN_SECONDS
        found.append((found[-1] if found else 0) + apart)
    return found


def f1(found: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """Over all pairs of alerts: put together, and belonging together."""
    right, put, belong = (_pairs(labels) for labels in (list(zip(found, truth, strict=True)), found, truth))
    return 2 * right / (put + belong) if put + belong else 1.0


def _pairs(labels: Sequence[Hashable]) -> int:
    return sum(count * (count - 1) // 2 for count in Counter(labels).values())
