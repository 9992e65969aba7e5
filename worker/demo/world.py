"""What the demo asks the world over HTTP: what is due, and what the ticket systems hold now."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.alert import Alert, parse_time
from agent.deadline import Deadline
from agent.errors import ConfigError
from agent.http import Http
from sources.jira.document import text_of
from sources.port import MARKER_PREFIX

PAGERDUTY_TOKEN = "demo-pagerduty-token"  # made up; the demo world listens on loopback
KUBERNETES_TOKEN = "demo-kubernetes-token"
SINK_TOKEN = "demo-sink-token"
OPSGENIE_KEY = "demo-opsgenie-key"
JSM_TOKEN = "demo-jsm-token"
JSM_CLOUD_ID = "35273b54-3f06-40d2-880f-dd28cf8daafa"
JIRA_TOKEN = "demo-jira-token"
GITHUB_TOKEN = "demo-github-token"
GITHUB_REPOSITORY = "acme/shop"
EMAIL = "rootcaused@example.com"
SINK = "oncall"
ASK_SECONDS = 10.0
_MARKER = re.compile(re.escape(MARKER_PREFIX) + r"[\w-]+")
LISTS = {
    "pagerduty": "GET /pagerduty/incidents",
    "alertmanager": "GET /alertmanager/api/v2/alerts",
    "opsgenie": "GET /opsgenie/v2/alerts",
    "jsm": f"GET /jsm/jsm/ops/api/{JSM_CLOUD_ID}/v1/alerts",
    "jira": "POST /jira/rest/api/3/search/jql",
    "github": f"GET /github/repos/{GITHUB_REPOSITORY}/issues",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One alert of the world and how many comments it must have in the end."""

    native: str
    source: str
    title: str
    fired_at: datetime | None
    due: int

    def is_of(self, alert: Alert) -> bool:
        """An Alertmanager episode is fingerprint and start; elsewhere each has an id."""
        if alert.source != self.source:
            return False
        if self.source == "alertmanager":
            return alert.fingerprint == self.native and alert.starts_at == self.fired_at
        return alert.id == self.native


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
        return {source: counts.get(path, 0) for source, path in LISTS.items()}

    def comments(self, ticket: Ticket) -> list[str]:
        """Our comments as the ticket system has them now; a report that arrived twice under one id is one."""
        if ticket.source != "alertmanager":
            path, headers, read = self._place(ticket)
            return [text for text in read(self._get(path, headers)) if _MARKER.search(text)]
        deliveries = self._get(f"/sink/{SINK}", {"Authorization": f"Bearer {SINK_TOKEN}"})["deliveries"]
        texts = {one["identity"]: one["body"]["text"] for one in deliveries if self._is_about(ticket, one["body"])}
        return list(texts.values())

    @staticmethod
    def _place(ticket: Ticket) -> tuple[str, dict[str, str], Callable[[Any], list[str]]]:
        """Where a ticket's comments are, with which login, and how their texts are read from the answer."""
        native = ticket.native
        match ticket.source:
            case "pagerduty":
                path, login = f"/pagerduty/incidents/{native}/notes", f"Token token={PAGERDUTY_TOKEN}"
                return path, _login(login), lambda body: [one["content"] for one in body["notes"]]
            case "opsgenie":
                path = f"/opsgenie/v2/alerts/{native}/notes?limit=100"
                return path, _login(f"GenieKey {OPSGENIE_KEY}"), lambda body: [one["note"] for one in body["data"]]
            case "jsm":
                path = f"/jsm/jsm/ops/api/{JSM_CLOUD_ID}/v1/alerts/{native}/notes?size=100"
                return path, _basic(JSM_TOKEN), lambda body: [one["note"] for one in body["values"]]
            case "jira":
                path = f"/jira/rest/api/3/issue/{native}/comment?startAt=0&maxResults=100"
                return path, _basic(JIRA_TOKEN), lambda body: [text_of(one["body"]) for one in body["comments"]]
            case "github":
                repository, _, number = native.rpartition("#")
                path = f"/github/repos/{repository}/issues/{number}/comments?per_page=100"
                return path, _login(f"Bearer {GITHUB_TOKEN}"), lambda body: [one["body"] for one in body]
            case _:
                raise ConfigError(f"the demo world has a source that is not known here: {ticket.source}")

    @staticmethod
    def _is_about(ticket: Ticket, body: dict[str, Any]) -> bool:
        alert = body.get("alert") or {}
        return alert.get("fingerprint") == ticket.native and parse_time(alert.get("starts_at")) == ticket.fired_at

    def _get(self, path: str, headers: dict[str, str] | None = None) -> Any:
        reply = self._http.request("GET", path, headers=headers, deadline=Deadline.after(ASK_SECONDS))
        return reply.json()


def _login(value: str) -> dict[str, str]:
    return {"Authorization": value}


def _basic(token: str) -> dict[str, str]:
    return _login("Basic " + base64.b64encode(f"{EMAIL}:{token}".encode()).decode())
