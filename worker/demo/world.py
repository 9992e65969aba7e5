"""What the demo asks the world over HTTP: what is due, and what the ticket systems hold now."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.alert import Alert, parse_time
from agent.deadline import Deadline
from agent.http import Http
from sources.port import MARKER_PREFIX

PAGERDUTY_TOKEN = "demo-pagerduty-token"  # made up; the demo world listens on loopback
KUBERNETES_TOKEN = "demo-kubernetes-token"
SINK_TOKEN = "demo-sink-token"
EMAIL = "rootcaused@example.com"
SINK = "oncall"
ASK_SECONDS = 10.0
_MARKER = re.compile(re.escape(MARKER_PREFIX) + r"[\w-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One alert of the world and how many comments it must have in the end."""

    native: str
    source: str
    title: str
    fired_at: datetime | None
    due: int

    def is_of(self, alert: Alert) -> bool:
        """PagerDuty's id is its own; an Alertmanager episode is fingerprint and start."""
        if alert.source != self.source:
            return False
        if self.source == "pagerduty":
            return alert.id == self.native
        return alert.fingerprint == self.native and alert.starts_at == self.fired_at


@dataclass(slots=True, kw_only=True)
class World:
    """The demo world at `address`. Raises `Transient` when it does not answer."""

    address: str
    _http: Http = field(init=False)

    def __post_init__(self) -> None:
        self._http = Http(base_url=self.address)

    def close(self) -> None:
        self._http.session.close()

    def tickets(self) -> list[Ticket]:
        return [
            Ticket(
                native=one["native"],
                source=one["source"],
                title=one["title"],
                fired_at=parse_time(one["fired_at"]),
                due=one["due"],
            )
            for one in self._get("/demo/incidents")["incidents"]
        ]

    def polls(self) -> dict[str, int]:
        """How often each source was asked for its list."""
        counts = self._get("/demo/requests")
        paths = {"pagerduty": "GET /pagerduty/incidents", "alertmanager": "GET /alertmanager/api/v2/alerts"}
        return {source: counts.get(path, 0) for source, path in paths.items()}

    def comments(self, ticket: Ticket) -> list[str]:
        """Our comments as the ticket system has them now; a report that arrived twice under one id is one."""
        if ticket.source == "pagerduty":
            headers = {"Authorization": f"Token token={PAGERDUTY_TOKEN}"}
            notes = self._get(f"/pagerduty/incidents/{ticket.native}/notes", headers)["notes"]
            return [note["content"] for note in notes if _MARKER.search(note["content"])]
        deliveries = self._get(f"/sink/{SINK}", {"Authorization": f"Bearer {SINK_TOKEN}"})["deliveries"]
        texts = {one["identity"]: one["body"]["text"] for one in deliveries if self._is_about(ticket, one["body"])}
        return list(texts.values())

    @staticmethod
    def _is_about(ticket: Ticket, body: dict[str, Any]) -> bool:
        alert = body.get("alert") or {}
        return alert.get("fingerprint") == ticket.native and parse_time(alert.get("starts_at")) == ticket.fired_at

    def _get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        reply = self._http.request("GET", path, headers=headers, deadline=Deadline.after(ASK_SECONDS))
        return reply.json()
