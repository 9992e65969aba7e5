"""A pod as the list shows it, and whether it is well: a restart that it settled after is no trouble."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent.alert import parse_time
from agent.rules.observation import Observation

MIN_QUIET_SECONDS = 180.0
STEADY = 3.0  # times the mean time between its restarts
RECENT_SECONDS = 6 * 3_600  # a restart older than this is not part of this alert


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod by the row that lists it."""

    row: Observation
    alerted_at: datetime | None = None
    running_since: datetime | None = None  # of the container that started last
    now: datetime | None = None  # the latest time that anything told of
    superseded: bool = False  # younger pods that are ready are all its workload wants

    @property
    def name(self) -> str:
        return self.row.about.name

    @property
    def node(self) -> str:
        return self.row.values.get("node", "")

    @property
    def status(self) -> str:
        return self.row.values.get("status", "")

    @property
    def created(self) -> datetime | None:
        return parse_time(self.row.values.get("created"))

    @property
    def finished(self) -> bool:
        return self.status in ("Completed", "Succeeded")

    @property
    def ready(self) -> bool:
        values = self.row.values
        return values.get("ready") == values.get("containers") and self.status == "Running"

    @property
    def restarted(self) -> bool:
        """Whether it restarted lately; a restart of unknown time counts, one that it settled after does not."""
        return bool(self.row.number("restarts")) and not self._settled

    @property
    def _settled(self) -> bool:
        """Ready, and running for much longer than it used to between restarts: a start-up that took some attempts."""
        quiet, age = self._quiet_seconds, self._age_seconds
        if quiet is None:
            return False
        if quiet >= RECENT_SECONDS:
            return True
        between = (age - quiet) / (self.row.number("restarts") or 1.0) if age is not None else RECENT_SECONDS
        return self.ready and quiet >= max(MIN_QUIET_SECONDS, STEADY * between)

    @property
    def _quiet_seconds(self) -> float | None:
        if self.running_since is not None and self.now is not None:
            return (self.now - self.running_since).total_seconds()
        ended = parse_time(self.row.values.get("last_end", "").rpartition(" ")[2])
        if ended is not None and self.alerted_at is not None:
            return (self.alerted_at - ended).total_seconds()
        return self.row.number("restarted")

    @property
    def _age_seconds(self) -> float | None:
        created = parse_time(self.row.values.get("created"))
        if created is not None and self.alerted_at is not None:
            return (self.alerted_at - created).total_seconds()
        return self.row.number("age")

    def outlived(self, event: Observation) -> bool:
        """Whether it is ready, and its container started after the event."""
        since = self.running_since
        return self.ready and since is not None and event.at is not None and since > event.at

    @property
    def healthy(self) -> bool:
        return self.finished or self.superseded or (self.ready and not self.restarted)
