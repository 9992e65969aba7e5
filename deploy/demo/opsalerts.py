"""Plays the alert APIs of OpsGenie (v2) and of its successor, Jira Service Management Operations."""

from __future__ import annotations

import base64
import re
from typing import Any

from deploy.demo.comments import Comments
from deploy.demo.exchange import Reply, Request, whole
from deploy.demo.scene import code, rfc3339, uid
from deploy.demo.state import State
from deploy.demo.tickets import Ticket, Tickets

API_KEY = "demo-opsgenie-key"
EMAIL = "rootcaused@example.com"
API_TOKEN = "demo-jsm-token"
CLOUD_ID = "35273b54-3f06-40d2-880f-dd28cf8daafa"
ACCOUNT_ID = "712020:rootcaused"
MAX_OFFSET = 20_000
MAX_NOTE_CHARS = 25_000
WHOLE_ONLY = ("description", "details", "entity")  # what lists leave out
PRIORITIES = {"critical": "P1", "error": "P2", "warning": "P3"}

Object = dict[str, Any]


class _Alerts:
    """What both have: the alerts of one source, their query language and their notes."""

    def __init__(self, name: str, tickets: Tickets, state: State) -> None:
        self._name = name
        self._tickets = tickets
        self._state = state
        self._comments = Comments(state)

    def _found(self, native: str) -> Ticket | None:
        ticket = self._tickets.native(native)
        return ticket if ticket is not None and ticket.incident.source == self._name else None

    def _page(self, request: Request, size: int) -> tuple[list[Object], int | None] | Reply:
        """The alerts of the page and where the next one begins."""
        offset = whole(request.one("offset"), 0)
        if offset + size > MAX_OFFSET:
            return _refused(422, f"The sum of offset and limit should be lower than {MAX_OFFSET}")
        try:
            every = [self._alert(one) for one in self._tickets.all(self._name)]
            kept = [one for one in every if matches(request.one("query"), one)]
        except ValueError:
            return _refused(400, "Search query is not valid")
        kept.sort(key=lambda one: str(one["createdAt"]), reverse=request.one("order", "desc") == "desc")
        shown = [{name: value for name, value in one.items() if name not in WHOLE_ONLY} for one in kept]
        end = offset + size
        return shown[offset:end], end if end < len(kept) else None

    def _alert(self, ticket: Ticket) -> Object:
        incident, fired = ticket.incident, rfc3339(ticket.fired, fraction=3)
        rule = incident.rule
        labels = {**incident.labels, **incident.details, "expr": rule.expr}
        return {
            "id": ticket.native,
            "tinyId": code(ticket.native, 4, "123456789"),
            "alias": code(f"key {incident.id}", 32, "0123456789abcdef"),
            "message": incident.title,
            "status": "open" if ticket.resolved is None else "closed",
            "acknowledged": False,
            "isSeen": False,
            "tags": self._state.read("tags").get(ticket.native, []),
            "snoozed": False,
            "count": 1,
            "lastOccurredAt": fired,
            "createdAt": fired,
            "updatedAt": rfc3339(ticket.resolved or ticket.fired, fraction=3),
            "source": "prometheus",
            "owner": "",
            "priority": PRIORITIES.get(incident.severity, "P4"),
            "description": "\n".join(rule.annotations.values()),
            "entity": incident.service,
            "details": {name: str(value) for name, value in labels.items()},
        }

    def _notes(self, ticket: Ticket) -> list[Object]:
        at = rfc3339(ticket.fired + 120, fraction=3)
        people = [
            {"id": uid(f"{ticket.native}{text}"), "note": text, "owner": "sam@example.com", "createdAt": at}
            for text in ticket.incident.notes
        ]
        return people + self._comments.of(ticket)

    def _write(self, ticket: Ticket, text: str, owner: str) -> Object:
        native = uid(f"note {self._state.next_number()}")
        note = {"id": native, "note": text, "owner": owner, "createdAt": rfc3339(self._state.now(), fraction=3)}
        self._comments.add(ticket, note)
        return note


class OpsGenie(_Alerts):
    def __init__(self, tickets: Tickets, state: State, address: str) -> None:
        super().__init__("opsgenie", tickets, state)
        self._address = address

    def handle(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"GenieKey {API_KEY}":
            return _refused(401, "Could not authenticate")
        match request.method, request.parts:
            case "GET", ["v2", "alerts"]:
                return self._list(request)
            case "GET", ["v2", "alerts", "requests", native]:
                return self._outcome(native)
            case _, ["v2", "alerts", native, *rest] if ticket := self._found(native):
                return self._of_alert(ticket, rest, request)
            case _:
                return _refused(404, "Alert does not exist")

    def _of_alert(self, ticket: Ticket, rest: list[str], request: Request) -> Reply:
        match request.method, rest:
            case "GET", []:
                return _told(self._alert(ticket))
            case "GET", ["notes"]:
                start, size = whole(request.one("offset").rpartition("_")[2], 0), whole(request.one("limit"), 20)
                notes = [{**note, "offset": f"1_{at}"} for at, note in enumerate(self._notes(ticket))]
                follows = f"{self._address}{request.path}?limit={size}&offset=1_{start + size}"
                return _told(notes[start : start + size], follows if start + size < len(notes) else "")
            case "POST", ["notes"]:
                body = request.json()
                if problem := _note_problem(body):
                    return problem
                self._write(ticket, body["note"], body.get("user", "System"))
                return self._accepted("AddNote", "Added note", ticket)
            case "POST", ["tags"]:
                with self._state.changing() as data:
                    tags = data["tags"].setdefault(ticket.native, [])
                    tags += [tag for tag in request.json()["tags"] if tag not in tags]
                return self._accepted("AddTags", "Added tags", ticket)
            case _:
                return _refused(404, "Not found")

    def _list(self, request: Request) -> Reply:
        size = whole(request.one("limit"), 20)
        found = self._page(request, size)
        if isinstance(found, Reply):
            return found
        shown, following = found
        return _told(shown, "" if following is None else f"{self._address}/v2/alerts?limit={size}&offset={following}")

    def _accepted(self, action: str, status: str, ticket: Ticket) -> Reply:
        """Carried out already; the vendor, too, answers before it tells what became of it."""
        request = uid(f"request {self._state.next_number()}")
        outcome = {"success": True, "isSuccess": True, "action": action, "status": status, "alertId": ticket.native}
        with self._state.changing() as data:
            data["requests"][request] = outcome
        payload = {"result": "Request will be processed", "took": 0.302, "requestId": request}
        return Reply(status=202, payload=payload)

    def _outcome(self, request: str) -> Reply:
        found = self._state.read("requests").get(request)
        return _told(found) if found else _refused(404, "Request not found. It might not be processed yet")


class JsmOps(_Alerts):
    """The Atlassian site (tenant_info) and the platform's API under one address."""

    def __init__(self, tickets: Tickets, state: State, address: str) -> None:
        super().__init__("jsm", tickets, state)
        self._address = address

    def handle(self, request: Request) -> Reply:
        if request.parts == ["_edge", "tenant_info"]:
            return Reply(payload={"cloudId": CLOUD_ID})
        basic = base64.b64encode(f"{EMAIL}:{API_TOKEN}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {basic}":
            return Reply(status=401, payload={"code": 401, "message": "Unauthorized"})
        match request.method, request.parts:
            case "GET", ["ex", "jira", cloud, "rest", "api", "3", "myself"] if cloud == CLOUD_ID:
                return Reply(payload={"accountId": ACCOUNT_ID, "emailAddress": EMAIL, "displayName": "rootcaused"})
            case "GET", ["jsm", "ops", "api", cloud, "v1", "alerts"] if cloud == CLOUD_ID:
                return self._list(request)
            case _, ["jsm", "ops", "api", cloud, "v1", "alerts", native, *rest] if cloud == CLOUD_ID:
                ticket = self._found(native)
                return self._of_alert(ticket, rest, request) if ticket else _refused(404, "Alert does not exist")
            case _:
                return _refused(404, "Not found")

    def _list(self, request: Request) -> Reply:
        size = whole(request.one("size"), 20)
        found = self._page(request, size)
        if isinstance(found, Reply):
            return found
        shown, following = found
        links = {} if following is None else {"next": f"{self._address}{request.path}?size={size}&offset={following}"}
        return Reply(payload={"values": shown, "links": links, "count": len(shown)})

    def _of_alert(self, ticket: Ticket, rest: list[str], request: Request) -> Reply:
        match request.method, rest:
            case "GET", []:
                return Reply(payload=self._alert(ticket))
            case "GET", ["notes"]:
                start, size = whole(request.one("after"), 0), whole(request.one("size"), 20)
                notes, end = self._notes(ticket), start + size
                links = {"next": f"{request.path}?size={size}&after={end}"} if end < len(notes) else {}
                return Reply(payload={"values": notes[start:end], "links": links})
            case (("POST" | "PATCH"), ["notes", *which]):
                body = request.json()
                if problem := _note_problem(body):
                    return problem
                if request.method == "POST":
                    return Reply(payload=self._write(ticket, body["note"], ACCOUNT_ID))
                changed = self._comments.change(ticket, "".join(which), {"note": body["note"]})
                return Reply(payload=changed) if changed else _refused(404, "Note does not exist")
            case _:
                return _refused(404, "Not found")


def matches(query: str, alert: Object) -> bool:
    """AND, OR, NOT, brackets, `field: value` and `createdAt >= ms`. Raises `ValueError` for anything else."""
    query = query.strip()
    if not query:
        return True
    for word, joined in ((" OR ", any), (" AND ", all)):
        parts = _split(query, word)
        if len(parts) > 1:
            return joined([matches(part, alert) for part in parts])
    if query.startswith("(") and query.endswith(")"):
        return matches(query[1:-1], alert)
    if query.startswith("NOT "):
        return not matches(query[4:], alert)
    if later := re.fullmatch(r"createdAt ?>=? ?(\d+)", query):
        return str(alert["createdAt"]) >= rfc3339(int(later[1]) / 1_000, fraction=3)
    if pair := re.fullmatch(r"(status|priority|tag|entity) ?: ?(\S+)", query):
        value = alert["tags"] if pair[1] == "tag" else [alert[pair[1]]]
        return pair[2] in value
    raise ValueError(query)


def _split(query: str, word: str) -> list[str]:
    """At the word, but not inside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(query):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and query.startswith(word, at):
            parts.append(query[start:at])
            start = at + len(word)
    return [*parts, query[start:]]


def _note_problem(body: object) -> Reply | None:
    text = body.get("note") if isinstance(body, dict) else None
    if not isinstance(text, str) or not text:
        return _refused(422, "Note can not be empty")
    too_long = len(text.encode("utf-16-le")) // 2 > MAX_NOTE_CHARS
    return _refused(422, f"Note is too long: it can have {MAX_NOTE_CHARS} characters") if too_long else None


def _told(data: Any, following: str = "") -> Reply:
    paging = {"paging": {"next": following} if following else {}} if isinstance(data, list) else {}
    return Reply(payload={"data": data, **paging, "took": 0.02, "requestId": uid(str(data))})


def _refused(status: int, message: str) -> Reply:
    return Reply(status=status, payload={"message": message, "took": 0.0, "requestId": uid(message)})
