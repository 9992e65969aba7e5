"""The tickets of the incidents: one an episode, with its own id, open or resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deploy.demo.scene import Incident, code, hexadecimal, uid
from deploy.demo.state import State

GITHUB_REPOSITORY = "acme/shop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One episode of an incident. `native` is what the ticket system calls it."""

    incident: Incident
    number: int
    fired: float
    resolved: float | None = None

    @property
    def native(self) -> str:
        """The id in the source's API. Alertmanager: the fingerprint, which all episodes share."""
        name = f"{self.incident.id}#{self.number}"
        match self.incident.source:
            case "pagerduty":
                return "Q" + code(name, 13)
            case "opsgenie" | "jsm":
                return uid(f"alert {name}")
            case "jira":
                return code(name, 5, "123456789")
            case "github":
                return f"{GITHUB_REPOSITORY}#{code(name, 4, '123456789')}"
            case _:
                return hexadecimal(str(sorted(self.incident.labels.items())))

    @property
    def key(self) -> str:
        """A name for people and for the control API; unlike `native`, also an Alertmanager episode has its own."""
        return self.incident.id if self.number == 1 else f"{self.incident.id}-{self.number}"


class Tickets:
    def __init__(self, scene: Sequence[Incident], state: State) -> None:
        self._scene = {incident.id: incident for incident in scene}
        self._state = state

    def all(self, source: str = "") -> list[Ticket]:
        """Oldest first."""
        episodes = self._state.read("episodes")
        found = [
            Ticket(incident=incident, number=one["n"], fired=one["fired"], resolved=one["resolved"])
            for incident in self._scene.values()
            for one in episodes.get(incident.id) or [self._first(incident)]
            if source in ("", incident.source)
        ]
        return sorted(found, key=lambda ticket: ticket.fired)

    def native(self, native: str) -> Ticket | None:
        """The newest ticket with that id."""
        return next((one for one in reversed(self.all()) if one.native == native), None)

    def resolve(self, incident_id: str) -> bool:
        """False when there is no such incident."""
        return self._change(incident_id, lambda: None)

    def refire(self, incident_id: str) -> bool:
        """Resolve what is open and begin a new episode now. False when there is no such incident."""
        return self._change(incident_id, self._state.now)

    def _change(self, incident_id: str, fire: Any) -> bool:
        incident = self._scene.get(incident_id)
        if incident is None:
            return False
        with self._state.changing() as data:
            episodes = data["episodes"].setdefault(incident_id, [self._first(incident)])
            episodes[-1]["resolved"] = episodes[-1]["resolved"] or self._state.now()
            if (fired := fire()) is not None:
                episodes.append({"n": len(episodes) + 1, "fired": round(fired, 3), "resolved": None})
        return True

    @staticmethod
    def _first(incident: Incident) -> dict[str, Any]:
        return {"n": 1, "fired": incident.fired, "resolved": None}
