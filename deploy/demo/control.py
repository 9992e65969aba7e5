"""The world's own API under /demo: what is due, resolve, re-fire, faults, request counts."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deploy.demo.exchange import Reply, Request
from deploy.demo.scene import rfc3339
from deploy.demo.state import State
from deploy.demo.tickets import Ticket, Tickets


@dataclass(slots=True)
class Fault:
    """For the next `times` requests whose path starts with `prefix` (and method, where given).

    `status` answers in the system's place; `drop` closes the connection after acting; `delay` waits before acting.
    """

    prefix: str
    times: int = 1
    method: str = ""
    status: int = 0
    drop: bool = False
    delay: float = 0.0
    retry_after: str = ""


class Faults:
    """Faults that wait for their request, first come first served."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._waiting.append(fault)

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The fault for this request, used up by one."""
        with self._lock:
            for fault in self._waiting:
                if path.startswith(fault.prefix) and fault.method in ("", method):
                    fault.times -= 1
                    if fault.times <= 0:
                        self._waiting.remove(fault)
                    return fault
        return None


class Requests:
    """How often each method and path was asked for."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def count(self, method: str, path: str) -> None:
        with self._lock:
            name = f"{method} {path}"
            self._counts[name] = self._counts.get(name, 0) + 1

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(sorted(self._counts.items()))

    def clear(self) -> None:
        with self._lock:
            self._counts.clear()


class Control:
    def __init__(self, tickets: Tickets, state: State, faults: Faults, requests: Requests) -> None:
        self._tickets = tickets
        self._state = state
        self._faults = faults
        self._requests = requests

    def handle(self, request: Request) -> Reply:
        match request.method, request.parts:
            case "GET", ["incidents"]:
                return Reply(payload={"incidents": [self._told(ticket) for ticket in self._tickets.all()]})
            case "POST", ["incidents", incident, ("resolve" | "refire") as act]:
                done = self._tickets.resolve(incident) if act == "resolve" else self._tickets.refire(incident)
                return (
                    Reply(payload={"done": act}) if done else Reply(status=404, payload={"error": "no such incident"})
                )
            case "POST", ["faults"]:
                return self._fault(request)
            case "GET", ["requests"]:
                return Reply(payload=self._requests.counts())
            case "POST", ["reset"]:
                self._state.reset()
                self._faults.clear()
                self._requests.clear()
                return Reply(payload={"done": "reset"})
            case _:
                return Reply(status=404, payload={"error": f"{request.method} {request.path}: not part of the demo"})

    def _told(self, ticket: Ticket) -> dict[str, Any]:
        incident = ticket.incident
        return {
            "id": ticket.key,
            "native": ticket.native,
            "source": incident.source,
            "title": incident.title,
            "fired_at": rfc3339(ticket.fired, fraction=3),
            "due": incident.due,
            "comments": self._comments(ticket),
            "resolved": ticket.resolved is not None,
        }

    def _comments(self, ticket: Ticket) -> int:
        """What came by the system's API. Alertmanager: reports at any sink; a repeat under one identity is one."""
        if ticket.incident.source != "alertmanager":
            return len(self._state.read("notes").get(ticket.native, []))
        deliveries = [one for sink in self._state.read("deliveries").values() for one in sink]
        return len({one["identity"] for one in deliveries if _is_about(one["body"], ticket)})

    def _fault(self, request: Request) -> Reply:
        body = request.json()
        try:
            self._faults.add(Fault(**body))
        except TypeError:
            known = "prefix times method status drop delay retry_after"
            return Reply(status=400, payload={"error": f"a fault is an object with {known}; only prefix is needed"})
        return Reply(status=201, payload={"done": "fault"})


def _is_about(body: dict[str, Any], ticket: Ticket) -> bool:
    """Whether a report names this episode: its fingerprint and when it fired."""
    alert = body.get("alert")
    if not isinstance(alert, dict) or alert.get("fingerprint") != ticket.native:
        return False
    try:
        started = datetime.fromisoformat(str(alert.get("starts_at"))).timestamp()
    except ValueError:
        return False
    return abs(started - ticket.fired) < 0.01
