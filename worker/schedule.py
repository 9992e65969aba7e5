"""The scheduler: ticks polls and sweeps, and publishes what is owed. Any number may run; one leads."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from agent.errors import Transient
from worker.crontab import next_time
from worker.publisher import Publisher, reconcile
from worker.settings import Settings
from worker.store import Store

TICK_SECONDS = 1.0
LEADER_SECONDS = 15.0
TRIM_SECONDS = 300.0

log = structlog.get_logger("rootcaused.schedule")


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """`clock` is monotonic and times the ticks, so that a wall-clock jump neither floods nor starves a source;
    `now` is Unix time and is used for crontabs alone."""

    settings: Settings
    store: Store
    publisher: Publisher
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    _next_poll: dict[str, float] = field(default_factory=dict)
    _next_trim: float = 0.0

    def tick(self) -> bool:
        """One round. Returns False when another scheduler leads. Raises `Transient` when Redis is away."""
        if not self.store.renew_lease("scheduler", self.token, LEADER_SECONDS):
            return False
        self._polls()
        self._sweeps()
        reconcile(self.store, self.publisher, grace_seconds=self.settings.limits.lease_seconds)
        if self.clock() >= self._next_trim:
            self._next_trim = self.clock() + TRIM_SECONDS
            self.store.trim_indexes()
        return True

    def resign(self) -> None:
        """Let another lead at once."""
        self.store.release_lease("scheduler", self.token)

    def _polls(self) -> None:
        for name, source in self.settings.sources.items():
            if self.clock() >= self._next_poll.get(name, 0.0):
                self._next_poll[name] = self.clock() + source.poll_seconds
                # An old tick is worth nothing: it must not pile up behind a worker that was away.
                self.publisher.poll(name, expires=source.poll_seconds * 2)

    def _sweeps(self) -> None:
        """A sweep that was due while nobody led is caught up once."""
        for name, sweep in self.settings.sweeps.items():
            last = self.store.last_sweep(name)
            if last is None:
                self.store.remember_sweep(name, self.now())  # never at first sight: only when its time comes
            elif self.now() >= next_time(sweep.crontab, last):
                self.store.remember_sweep(name, self.now())
                self.publisher.sweep(name, expires=3_600)


def run(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT. A Redis outage is waited out."""
    from worker import wiring

    front = wiring.build_front(settings)
    scheduler = Scheduler(settings=settings, store=front.store, publisher=front.publisher)
    for name, config in settings.sources.items():
        if notice := getattr(config, "notice", ""):
            log.warning("source_notice", source=name, notice=notice)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        try:
            scheduler.tick()
        except Transient as error:
            log.warning("tick_failed", error=str(error))
        stop.wait(TICK_SECONDS)
    try:
        scheduler.resign()
    except Transient as error:
        log.warning("resign_failed", error=str(error))
    return 0
