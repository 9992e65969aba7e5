"""Plays Alertmanager's API v2, read side."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from deploy.demo.exchange import Reply, Request
from deploy.demo.promql.parser import parse
from deploy.demo.promql.syntax import Matcher, QueryError, Selector
from deploy.demo.scene import hexadecimal, rfc3339
from deploy.demo.state import State
from deploy.demo.tickets import Ticket, Tickets

RECEIVER = "rootcaused"
RESOLVE_SECONDS = 300
CONFIG = f"""route:
  receiver: {RECEIVER}
  group_by: [alertname, namespace]
receivers:
- name: {RECEIVER}
"""
VERSION = {
    "version": "0.28.1",
    "revision": "b2099eaa2c9ebc25edb26517cb9c732738e93910",
    "branch": "HEAD",
    "buildUser": "root@demo",
    "buildDate": "20250307-15:05:18",
    "goVersion": "go1.23.7",
}


class Alertmanager:
    def __init__(self, tickets: Tickets, state: State, address: str) -> None:
        self._tickets = tickets
        self._state = state
        self._address = address

    def handle(self, request: Request) -> Reply:
        if request.path == "/-/ready":
            return Reply(text="OK", content_type="text/plain")
        if request.method != "GET":
            return Reply(status=405, payload=f"method {request.method} is not allowed")
        match request.parts:
            case ["api", "v2", "alerts"]:
                return self._alerts(request)
            case ["api", "v2", "receivers"]:
                return Reply(payload=[{"name": RECEIVER}])
            case ["api", "v2", "silences"]:
                return Reply(payload=[])
            case ["api", "v2", "status"]:
                cluster = {"name": hexadecimal("cluster", 26), "status": "ready", "peers": []}
                started = rfc3339(self._state.began - 86_400, fraction=3)
                return Reply(
                    payload={
                        "cluster": cluster,
                        "versionInfo": VERSION,
                        "config": {"original": CONFIG},
                        "uptime": started,
                    }
                )
            case _:
                return Reply(status=404, payload={"code": 404, "message": f"path {request.path} was not found"})

    def _alerts(self, request: Request) -> Reply:
        """Nothing here is silenced or inhibited, so only `active` can leave anything out."""
        flags = {name: request.one(name, "true") for name in ("active", "silenced", "inhibited", "unprocessed")}
        for name, value in flags.items():
            if value not in ("true", "false"):
                return Reply(
                    status=400, payload={"code": 601, "message": f'{name} in query must be of type boolean: "{value}"'}
                )
        try:
            matchers = [one for text in request.all("filter") for one in _matchers(text)]
            is_receiver = re.compile(request.one("receiver", ".*"))
        except QueryError as error:
            return Reply(status=400, payload=f"bad matcher format: {error}")
        except re.error as error:
            return Reply(status=400, payload=f"failed to parse receiver param: {error}")
        if flags["active"] == "false" or not is_receiver.fullmatch(RECEIVER):
            return Reply(payload=[])
        open_ = [ticket for ticket in self._tickets.all("alertmanager") if ticket.resolved is None]
        kept = [one for one in open_ if all(matcher.accepts(one.incident.labels) for matcher in matchers)]
        return Reply(payload=[self._alert(ticket) for ticket in sorted(kept, key=lambda one: one.native)])

    def _alert(self, ticket: Ticket) -> dict[str, Any]:
        now = self._state.now()
        rule = ticket.incident.rule
        return {
            "annotations": dict(rule.annotations),
            "endsAt": rfc3339(now + RESOLVE_SECONDS, fraction=3),
            "fingerprint": ticket.native,
            "receivers": [{"name": RECEIVER}],
            "startsAt": rfc3339(ticket.fired, fraction=3),
            "status": {"inhibitedBy": [], "silencedBy": [], "mutedBy": [], "state": "active"},
            "updatedAt": rfc3339(now, fraction=3),
            "generatorURL": f"{self._address}/graph?g0.expr={quote(rule.expr)}&g0.tab=1",
            "labels": ticket.incident.labels,
        }


def _matchers(text: str) -> tuple[Matcher, ...]:
    """`name="value"`, as in a PromQL selector. Raises `QueryError`."""
    node = parse(text if text.lstrip().startswith("{") else f'{{__name__=~".+",{text}}}')
    assert isinstance(node, Selector)
    return tuple(matcher for matcher in node.matchers if matcher.name != "__name__")
