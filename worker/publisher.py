"""The port to the queue: what the pipeline may ask to be run later."""

from __future__ import annotations

from typing import Protocol

from worker.record import WRITEBACK, Record, State
from worker.store import Store

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
        case State.REPORTED | State.WRITE_FAILED:
            publisher.write_back(record.key, record.generation)
        case _:
            pass


def reconcile(store: Store, publisher: Publisher, *, grace_seconds: float, limit: int = 200) -> int:
    """Publish what is owed and overdue: lost messages, ended leases, ended back-offs. Returns how many.

    A copy too many is harmless (its claim loses), but a backlog must not breed copies: while a record's queue
    is not empty its message is most likely still in it, so it is looked at again later.
    """
    published = 0
    lengths: dict[str, int] = {}
    for key in store.due(limit):
        record = store.get(key)
        if record is None or record.state.settled:
            store.forget_due(key)
            continue
        queue = record.queue if record.state in (State.QUEUED, State.INVESTIGATING) else WRITEBACK
        length = lengths.setdefault(queue, store.queue_length(queue))
        if length and record.state is State.QUEUED:
            store.postpone(key, BUSY_QUEUE_SECONDS)
            continue
        store.postpone(key, grace_seconds)
        publish_owed(record, publisher)
        published += 1
    return published
