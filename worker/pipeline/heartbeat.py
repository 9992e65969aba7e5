"""Keeps a lease alive while its holder waits on a model or a tool."""

from __future__ import annotations

import threading
from typing import Self

import structlog

from agent.errors import Transient
from worker.record import Claim, LeaseLost
from worker.store import Store

log = structlog.get_logger("rootcaused.heartbeat")


class Heartbeat:
    """A context in which the claim's lease is extended every third of its length.

    When the lease is lost it stops; the holder learns of it at its next write, which is refused.
    """

    def __init__(self, store: Store, claim: Claim, *, lease_seconds: float) -> None:
        self._store = store
        self._claim = claim
        self._every = lease_seconds / 3
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=self._every)

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self._store.append(self._claim)
            except LeaseLost:
                log.warning("lease_lost", alert=self._claim.key)
                return
            except Transient as error:  # Redis may be back before the lease ends
                log.warning("heartbeat_failed", alert=self._claim.key, error=str(error))
