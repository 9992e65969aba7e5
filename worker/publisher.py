"""The port to the queue: what the pipeline may ask to be run later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from worker.record import WRITEBACK, Record, State, fate
from worker.store import Store
from worker.triage import PATIENCE_SECONDS

BUSY_QUEUE_SECONDS = 60  # when to look again at a record whose queue still holds messages


class Publisher(Protocol):
    """Raises `Transient` when the broker can't take it; the record is owed work all the same, so nothing is lost."""

    def investigate(self, key: str, generation: int, queue: str) -> None: ...

    def write_back(self, key: str, generation: int) -> None: ...

    def poll(self, source: str, *, expires: float) -> None: ...

    def sweep(self, name: str, *, expires: float) -> None: ...


def publish_owed(record: Record, publisher: Publisher) -> None:
    """Publish the task that a record in this state is owed."""
    match record.state:
        case State.QUEUED | State.INVESTIGATING:
            publisher.investigate(record.key, record.generation, record.queue)
        case State.REPORTED | State.WRITE_FAILED | State.GROUPED:
            publisher.write_back(record.key, record.generation)
        case _:
            pass


def reconcile(store: Store, publisher: Publisher, *, grace_seconds: float, limit: int = 200) -> int:
    """Publish what is owed and overdue: lost messages, ended leases, ended back-offs. Returns how many.

    A copy too many is harmless (its claim loses), but a backlog must not breed copies: while a record's queue
    is not empty its message is most likely still in it, so it is looked at again later.
    """
    published = 0
    round_ = _Round(store, limit)
    for key in store.due(limit):
        record = store.get(key)
        if record is None or record.state.settled:
            store.forget_due(key)
        elif wait := round_.wait(record):
            store.postpone(key, wait)
        else:
            store.postpone(key, grace_seconds)
            publish_owed(record, publisher)
            if record.unpublished:
                store.published(key)
            published += 1
    return published


@dataclass(slots=True)
class _Round:
    """What one look at what is due has seen: queues and leads, each asked for once."""

    store: Store
    limit: int
    _lengths: dict[str, int] = field(default_factory=dict)
    _leads: dict[str, Record | None] = field(default_factory=dict)

    def wait(self, record: Record) -> float:
        """Seconds until it is worth another look; 0 when its task is due now."""
        queue = record.queue if record.state in (State.QUEUED, State.INVESTIGATING) else WRITEBACK
        if queue not in self._lengths:
            self._lengths[queue] = self.store.queue_length(queue)
        match record.state:
            case State.QUEUED:
                return BUSY_QUEUE_SECONDS if self._lengths[queue] and not record.unpublished else 0
            case State.GROUPED if fate(self._lead(record.lead)) == "pending":
                return PATIENCE_SECONDS
            case State.GROUPED:  # a storm's thousands follow one another, in step with the writers
                self._lengths[queue] += 1
                return BUSY_QUEUE_SECONDS if self._lengths[queue] > self.limit else 0
            case _:
                return 0

    def _lead(self, key: str) -> Record | None:
        if key not in self._leads:
            self._leads[key] = self.store.get(key)
        return self._leads[key]
