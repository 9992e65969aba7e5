"""Plays PagerDuty's REST API v2: incidents, their alerts and notes, the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from deploy.demo.exchange import Reply, Request, whole
from deploy.demo.scene import Incident, code, rfc3339
from deploy.demo.state import State
from deploy.demo.tickets import Ticket, Tickets

TOKEN = "demo-pagerduty-token"
EMAIL = "rootcaused@example.com"
MONTH_SECONDS = 30 * 86_400.0
MAX_OFFSET = 10_000
MAX_NOTES = 2_000
PEOPLE = {EMAIL: "rootcaused", "sam@example.com": "Sam Rivera"}

Object = dict[str, Any]


class PagerDuty:
    def __init__(self, tickets: Tickets, state: State, address: str) -> None:
        self._tickets = tickets
        self._state = state
        self._address = address

    def handle(self, request: Request) -> Reply:
        if request.headers.get("authorization") not in (f"Token token={TOKEN}", f"Bearer {TOKEN}"):
            return _refused(401, 2006, "Unauthorized", "API key is missing or invalid")
        match request.parts:
            case ["incidents"] if request.method == "GET":
                return self._list(request)
            case ["incidents", native, *rest]:
                ticket = self._tickets.native(native)
                if ticket is None or ticket.incident.source != "pagerduty":
                    return _refused(404, 2100, "Incident Not Found")
                return self._of_incident(ticket, rest, request)
            case ["users", "me"]:
                return Reply(payload={"user": self._user(EMAIL)})
            case ["users"]:
                wanted = request.one("query").lower()
                found = [self._user(email) for email, name in PEOPLE.items() if wanted in f"{email} {name}".lower()]
                return _page(request, "users", found)
            case ["abilities"]:
                return Reply(payload={"abilities": ["teams", "urgencies", "event_rules"]})
            case _:
                return _refused(404, 2100, "Not Found")

    def _of_incident(self, ticket: Ticket, rest: list[str], request: Request) -> Reply:
        match request.method, rest:
            case "GET", []:
                return self._one(ticket)
            case "GET", ["alerts"]:
                return _page(request, "alerts", [self._alert(ticket)])
            case "GET", ["notes"]:
                return Reply(payload={"notes": self._notes(ticket)})
            case "POST", ["notes"]:
                return self._add(ticket, request)
            case (("PUT" | "DELETE"), ["notes", note]):
                return self._edit(ticket, note, request)
            case _:
                return _refused(404, 2100, "Not Found")

    def _one(self, ticket: Ticket) -> Reply:
        """Looking at it settles an incident that had only been listed as open a moment too long."""
        if ticket.incident.resolved_on_read and ticket.resolved is None:
            self._tickets.resolve(ticket.incident.id)
            ticket = self._tickets.native(ticket.native) or ticket
        return Reply(payload={"incident": self._incident(ticket)})

    def _list(self, request: Request) -> Reply:
        limit, offset = whole(request.one("limit"), 25), whole(request.one("offset"), 0)
        if offset + limit > MAX_OFFSET:
            return _refused(400, 2001, "Invalid Input Provided", f"Offset plus limit must be at most {MAX_OFFSET}")
        start, end = self._window(request)
        kept = [ticket for ticket in self._tickets.all("pagerduty") if start <= ticket.fired < end]
        for parameter, value in (("statuses[]", _status), ("urgencies[]", _urgency), ("service_ids[]", _service_id)):
            if wanted := request.all(parameter):
                kept = [ticket for ticket in kept if value(ticket) in wanted]
        if incident_key := request.one("incident_key"):
            kept = [ticket for ticket in kept if _incident_key(ticket.incident) == incident_key]
        kept.sort(key=lambda ticket: ticket.fired, reverse=request.one("sort_by", "created_at:asc").endswith(":desc"))
        return _page(request, "incidents", [self._incident(ticket) for ticket in kept])

    def _window(self, request: Request) -> tuple[float, float]:
        """By creation time; a month where nothing is asked for, everything with `date_range=all`."""
        now = self._state.now()
        if request.one("date_range") == "all":
            return 0.0, now + 1
        start, end = _time(request.one("since")), _time(request.one("until"))
        return (now - MONTH_SECONDS if start is None else start), (now + 1 if end is None else end)

    def _incident(self, ticket: Ticket) -> Object:
        incident, status = ticket.incident, _status(ticket)
        changed = rfc3339(ticket.resolved or ticket.fired)
        number = 4_000 + int(code(ticket.native, 3, "0123456789"))
        first = self._reference(
            "trigger_log_entry", "log_entries", "R" + code(ticket.native, 13), "Triggered by the monitoring"
        )
        policy = self._reference("escalation_policy", "escalation_policies", "PESCAL1", "On call")
        return {
            "id": ticket.native,
            "type": "incident",
            "summary": f"[#{number}] {incident.title}",
            "self": f"{self._address}/incidents/{ticket.native}",
            "html_url": f"{self._address}/incidents/{ticket.native}",
            "incident_number": number,
            "title": incident.title,
            "created_at": rfc3339(ticket.fired),
            "updated_at": changed,
            "status": status,
            "incident_key": _incident_key(incident),
            "service": self._service(incident),
            "assignments": [],
            "assigned_via": "escalation_policy",
            "last_status_change_at": changed,
            "resolved_at": None if ticket.resolved is None else rfc3339(ticket.resolved),
            "first_trigger_log_entry": first,
            "alert_counts": {"all": 1, "triggered": int(status != "resolved"), "resolved": int(status == "resolved")},
            "is_mergeable": True,
            "escalation_policy": policy,
            "teams": [self._reference("team", "teams", "P" + code(incident.service, 6), incident.service)],
            "pending_actions": [],
            "acknowledgements": [],
            "last_status_change_by": self._service(incident),
            "priority": None,
            "resolve_reason": None,
            "urgency": incident.urgency,
        }

    def _alert(self, ticket: Ticket) -> Object:
        incident = ticket.incident
        details = {**incident.labels, **incident.rule.annotations, "expr": incident.rule.expr, **incident.details}
        return {
            "id": "P" + code(f"alert {ticket.native}", 13),
            "type": "alert",
            "summary": incident.title,
            "self": f"{self._address}/incidents/{ticket.native}/alerts/P{code(f'alert {ticket.native}', 13)}",
            "html_url": f"{self._address}/alerts/P{code(f'alert {ticket.native}', 13)}",
            "created_at": rfc3339(ticket.fired),
            "status": "resolved" if ticket.resolved else "triggered",
            "alert_key": _incident_key(incident),
            "service": self._service(incident),
            "body": {"type": "alert_body", "contexts": [], "details": details},
            "incident": {"id": ticket.native, "type": "incident_reference"},
            "suppressed": False,
            "severity": incident.severity,
            "integration": self._reference(
                "events_api_v2_inbound_integration", "integrations", "PINTEG1", "Prometheus"
            ),
        }

    def _service(self, incident: Incident) -> Object:
        return self._reference("service", "services", _service_id_of(incident), incident.service)

    def _reference(self, kind: str, folder: str, native: str, summary: str) -> Object:
        address = f"{self._address}/{folder}/{native}"
        return {"id": native, "type": f"{kind}_reference", "summary": summary, "self": address, "html_url": address}

    def _user(self, email: str) -> Object:
        native = "P" + code(email, 6)
        address = f"{self._address}/users/{native}"
        about = {"id": native, "type": "user", "summary": PEOPLE[email], "self": address, "html_url": address}
        return {**about, "name": PEOPLE[email], "email": email, "time_zone": "Etc/UTC", "role": "user", "teams": []}

    def _notes(self, ticket: Ticket) -> list[Object]:
        """What people wrote before, then what came by this API."""
        people = [
            self._note(f"N{code(f'{ticket.native}{text}', 13)}", "sam@example.com", text, ticket.fired + 120)
            for text in ticket.incident.notes
        ]
        stored: list[Object] = self._state.read("notes").get(ticket.native, [])
        return people + stored

    def _note(self, native: str, email: str, content: str, at: float) -> Object:
        user = self._user(email)
        about = {key: user[key] for key in ("id", "summary", "self", "html_url")}
        return {
            "id": native,
            "user": {**about, "type": "user_reference"},
            "channel": {"summary": "The PagerDuty website or APIs"},
            "content": content,
            "created_at": rfc3339(at),
            "updated_at": rfc3339(at),
        }

    def _add(self, ticket: Ticket, request: Request) -> Reply:
        content = _content(request)
        if problem := _writer_problem(request):
            return problem
        if not content:
            return _refused(400, 2001, "Invalid Input Provided", "Content cannot be empty.")
        if len(self._notes(ticket)) >= MAX_NOTES:
            return _refused(400, 2001, "Invalid Input Provided", f"An incident can have at most {MAX_NOTES} notes.")
        native = f"N{code(f'note {self._state.next_number()}', 13)}"
        note = self._note(native, request.headers["from"], content, self._state.now())
        with self._state.changing() as data:
            data["notes"].setdefault(ticket.native, []).append(note)
        return Reply(payload={"note": note})

    def _edit(self, ticket: Ticket, native: str, request: Request) -> Reply:
        if problem := _writer_problem(request):
            return problem
        content = _content(request)
        if request.method == "PUT" and not content:
            return _refused(400, 2001, "Invalid Input Provided", "Content cannot be empty.")
        with self._state.changing() as data:
            notes: list[Object] = data["notes"].get(ticket.native, [])
            note = next((one for one in notes if one["id"] == native), None)
            if note is None:
                return _refused(404, 2100, "Note Not Found")
            if request.method == "DELETE":
                notes.remove(note)
                return Reply(status=204)
            note.update({"content": content, "updated_at": rfc3339(self._state.now())})
            return Reply(payload={"note": dict(note)})


def _page(request: Request, name: str, items: Sequence[Object]) -> Reply:
    limit, offset = min(100, whole(request.one("limit"), 25) or 25), whole(request.one("offset"), 0)
    total = len(items) if request.one("total") == "true" else None
    more = offset + limit < len(items)
    shown = list(items[offset : offset + limit])
    return Reply(payload={name: shown, "limit": limit, "offset": offset, "total": total, "more": more})


def _refused(status: int, number: int, message: str, *errors: str) -> Reply:
    return Reply(status=status, payload={"error": {"message": message, "code": number, "errors": list(errors)}})


def _writer_problem(request: Request) -> Reply | None:
    email = request.headers.get("from", "")
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", email):
        return _refused(
            400, 1028, "Malformed From header", "The From header must be the email address of a valid user."
        )
    return None if email in PEOPLE else _refused(400, 1008, "Requester User Not Found")


def _content(request: Request) -> str:
    body = request.json()
    note = body.get("note") if isinstance(body, dict) else None
    content = note.get("content") if isinstance(note, dict) else None
    return content if isinstance(content, str) else ""


def _status(ticket: Ticket) -> str:
    return "triggered" if ticket.resolved is None else "resolved"


def _urgency(ticket: Ticket) -> str:
    return ticket.incident.urgency


def _service_id(ticket: Ticket) -> str:
    return _service_id_of(ticket.incident)


def _service_id_of(incident: Incident) -> str:
    return "P" + code(f"service {incident.service}", 6)


def _incident_key(incident: Incident) -> str:
    return code(f"key {incident.id}", 32, "0123456789abcdef")


def _time(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
