"""One poll of one source: fetch, admit, and only then move the cursor."""

from __future__ import annotations

import secrets

import structlog

from agent.deadline import Deadline
from agent.errors import RootcausedError
from worker.front import Front

POLL_SECONDS = 240.0
LEASE_SECONDS = POLL_SECONDS + 10

log = structlog.get_logger("rootcaused.poll")


def poll(front: Front, name: str) -> int:
    """Returns how many alerts were seen; 0 as well when another worker has this source in hand.

    A failed poll leaves the cursor where it was, so that the next tick sees the same alerts again.
    """
    token = secrets.token_hex(8)
    if not front.store.renew_lease(f"poll:{name}", token, LEASE_SECONDS):
        return 0
    try:
        seen = _poll(front, name)
        front.store.remember_poll(name, seen=seen)
        return seen
    except RootcausedError as error:
        log.warning("poll_failed", source=name, error=str(error))
        front.store.remember_poll(name, seen=0, error=str(error))
        return 0
    finally:
        front.store.release_lease(f"poll:{name}", token)


def _poll(front: Front, name: str) -> int:
    """A source may give a cursor and then fail: what it stands for was admitted, so it is kept."""
    cursor = front.store.cursor(name)
    moved, seen = cursor, 0
    try:
        for page in front.sources[name].poll(cursor, deadline=Deadline.after(POLL_SECONDS)):
            front.admit_page(name, page, via="poll")
            seen += len(page.alerts)
            moved = page.cursor or moved
    finally:
        if moved != cursor:
            front.store.move_cursor(name, moved)
    return seen


def sweep(front: Front, name: str) -> int:
    """Run a configured sweep. Returns how many investigations it queued."""
    settings = front.settings.sweeps[name]
    try:
        admissions = list(front.sweep(settings.source, settings.query, limit=settings.limit))
    except RootcausedError as error:
        log.warning("sweep_failed", sweep=name, error=str(error))
        return 0
    queued = sum(admission.queued for admission in admissions)
    log.info("swept", sweep=name, seen=len(admissions), queued=queued)
    return queued
