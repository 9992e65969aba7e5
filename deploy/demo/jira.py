"""Plays Jira Cloud's REST API v3: searching, issues, comments as documents."""

from __future__ import annotations

import base64
import re
from typing import Any

from deploy.demo.comments import Comments, flat
from deploy.demo.exchange import Reply, Request, whole
from deploy.demo.scene import code, rfc3339
from deploy.demo.state import State
from deploy.demo.tickets import Ticket, Tickets

EMAIL = "rootcaused@example.com"
API_TOKEN = "demo-jira-token"
PROJECT = "OPS"
BOT = "712020:rootcaused"
MAX_TEXT = 32_767
PRIORITIES = {"critical": ("Highest", "1"), "error": ("High", "2"), "warning": ("Medium", "3")}

Object = dict[str, Any]


class Jira:
    def __init__(self, tickets: Tickets, state: State, address: str) -> None:
        self._tickets = tickets
        self._state = state
        self._comments = Comments(state)
        self._address = address

    def handle(self, request: Request) -> Reply:
        if request.path in ("/rest/api/2/serverInfo", "/rest/api/3/serverInfo"):
            about = {"baseUrl": self._address, "version": "1001.0.0-SNAPSHOT", "deploymentType": "Cloud"}
            return Reply(payload=about)
        basic = base64.b64encode(f"{EMAIL}:{API_TOKEN}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {basic}":
            return _refused(401, "Client must be authenticated to access this resource.")
        match request.method, request.parts:
            case "GET", ["rest", "api", "3", "myself"]:
                return Reply(payload=_person("rootcaused"))
            case "POST", ["rest", "api", "3", "jql", "parse"]:
                return Reply(payload={"queries": [_parsed(query) for query in request.json()["queries"]]})
            case "POST", ["rest", "api", "3", "search", "jql"]:
                return self._search(request.json())
            case _, ["rest", "api", "3", "issue", native, *rest]:
                ticket = self._found(native)
                return self._of_issue(ticket, rest, request) if ticket else _refused(404, "Issue does not exist")
            case _:
                return _refused(404, "dead link")

    def _found(self, native: str) -> Ticket | None:
        """By id or key."""
        mine = self._tickets.all("jira")
        return next((one for one in reversed(mine) if native in (one.native, key_of(one))), None)

    def _search(self, asked: Object) -> Reply:
        """One page for everything: there are never more issues than that."""
        jql = str(asked.get("jql", ""))
        if problem := _problem(jql):
            return _refused(400, problem)
        since = self._since(jql)
        kept = [one for one in self._tickets.all("jira") if one.resolved is None or one.resolved >= since]
        issues = [self._issue(one, asked.get("fields") or ["id"]) for one in kept]
        return Reply(payload={"issues": issues, "isLast": True})

    def _since(self, jql: str) -> float:
        """From when on issues that are done are wanted, too."""
        if "!= done" not in jql.lower():
            return 0.0
        found = re.search(r'updated >= "?(-?\d+)(m?)', jql)
        if not found:
            return float("inf")
        return self._state.now() + 60 * int(found[1]) if found[2] else int(found[1]) / 1_000

    def _issue(self, ticket: Ticket, names: list[str]) -> Object:
        shown = {
            "id": ticket.native,
            "key": key_of(ticket),
            "self": f"{self._address}/rest/api/3/issue/{ticket.native}",
        }
        fields = self._fields(ticket)
        return {**shown, "fields": {name: fields[name] for name in names if name in fields}}

    def _fields(self, ticket: Ticket) -> Object:
        incident, is_open = ticket.incident, ticket.resolved is None
        category = {"id": 2, "key": "new", "name": "To Do"} if is_open else {"id": 3, "key": "done", "name": "Done"}
        priority, number = PRIORITIES.get(incident.severity, ("Low", "4"))
        text = "\n".join((*incident.rule.annotations.values(), f"expr: {incident.rule.expr}"))
        return {
            "summary": incident.title,
            "description": document(text),
            "status": {"name": category["name"], "statusCategory": category},
            "priority": {"name": priority, "id": number},
            "labels": [f"{name}={value}".replace(" ", "_") for name, value in incident.labels.items()],
            "components": [{"id": "1", "name": incident.service}] if incident.service else [],
            "project": {"id": "10000", "key": PROJECT, "name": "Operations", "projectTypeKey": "software"},
            "issuetype": {"id": "10001", "name": "Incident"},
            "created": stamp(ticket.fired),
            "updated": stamp(ticket.resolved or ticket.fired),
            "resolutiondate": None if is_open else stamp(ticket.resolved or 0),
            "reporter": _person("alerting"),
        }

    def _of_issue(self, ticket: Ticket, rest: list[str], request: Request) -> Reply:
        match request.method, rest:
            case "GET", []:
                shown = self._issue(ticket, request.one("fields").split(","))
                return Reply(payload={**shown, "changelog": {"histories": []}} if request.one("expand") else shown)
            case "GET", ["comment"]:
                start, size = whole(request.one("startAt"), 0), whole(request.one("maxResults"), 50)
                every = sorted(self._all(ticket), key=lambda one: str(one["created"]))
                if request.one("orderBy").startswith("-"):
                    every.reverse()
                page = every[start : start + size]
                return Reply(payload={"comments": page, "startAt": start, "maxResults": size, "total": len(every)})
            case (("POST" | "PUT"), ["comment", *which]):
                return self._write(ticket, "".join(which), request)
            case _:
                return _refused(405, "Method not allowed")

    def _all(self, ticket: Ticket) -> list[Object]:
        people = [
            _comment(code(f"{ticket.native}{text}", 6, "123456789"), "Sam", document(text), ticket.fired + 120)
            for text in ticket.incident.notes
        ]
        return people + self._comments.of(ticket)

    def _write(self, ticket: Ticket, native: str, request: Request) -> Reply:
        payload = request.json()
        body = payload.get("body") if isinstance(payload, dict) else None
        if not isinstance(body, dict) or body.get("type") != "doc" or body.get("version") != 1:
            return Reply(status=400, payload={"errorMessages": ["INVALID_INPUT"], "errors": {}})
        if len(flat(body).encode("utf-16-le")) // 2 > MAX_TEXT:
            return _refused(400, "The entered text is too long. It exceeds the allowed limit of 32,767 characters.")
        now = self._state.now()
        if native:
            changed = self._comments.change(ticket, native, {"body": body, "updated": stamp(now)})
            missing = _refused(404, f"Can not find a comment for the id: {native}.")
            return Reply(payload=changed) if changed else missing
        comment = _comment(str(90_000 + self._state.next_number()), "rootcaused", body, now)
        self._comments.add(ticket, comment)
        return Reply(status=201, payload=comment)


def key_of(ticket: Ticket) -> str:
    return f"{PROJECT}-{ticket.native[-4:].lstrip('0') or '0'}"


def document(text: str) -> Object:
    """One paragraph a line."""
    lines = [{"type": "paragraph", "content": [{"type": "text", "text": line}]} for line in text.split("\n") if line]
    return {"type": "doc", "version": 1, "content": lines}


def stamp(at: float) -> str:
    """Jira writes the offset without a colon."""
    return rfc3339(at, fraction=3).replace("Z", "+0000")


def _person(name: str) -> Object:
    return {"accountId": f"712020:{name.lower()}", "displayName": name, "active": True, "accountType": "atlassian"}


def _comment(native: str, author: str, body: Object, at: float) -> Object:
    return {
        "id": native,
        "author": _person(author),
        "body": body,
        "created": stamp(at),
        "updated": stamp(at),
        "jsdPublic": True,
    }


def _problem(jql: str) -> str:
    """What is wrong with a query: it must be about our project, which is all that is played of JQL."""
    if not jql.strip():
        return "Unbounded JQL queries are not allowed here. Please add a search restriction to your query."
    return "" if PROJECT in jql else f"The value given does not exist: only the project {PROJECT} does."


def _parsed(query: str) -> Object:
    problem = _problem(query)
    return {"query": query, "errors": [problem]} if problem else {"query": query, "structure": {}}


def _refused(status: int, message: str) -> Reply:
    return Reply(status=status, payload={"errorMessages": [message], "errors": {}})
