"""PagerDuty's REST API in memory: incidents with offset paging and the window rule, notes, users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.alert import parse_time
from tests.support.http_server import Reply, Request

TOKEN = "pd-token-1234567890"
BOT = {"id": "PBOT", "type": "user", "name": "Root Cause", "email": "bot@example.org", "summary": "Root Cause"}
NOW = datetime(2031, 2, 3, 12, 0, tzinfo=UTC)  # the Date header of the test server


def incident(native: str, age: timedelta = timedelta(minutes=5), **changes: Any) -> dict[str, Any]:
    created = (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": native,
        "type": "incident",
        "summary": f"[#1] {native} is down",
        "self": f"https://api.pagerduty.com/incidents/{native}",
        "html_url": f"https://acme.pagerduty.com/incidents/{native}",
        "incident_number": 1,
        "title": f"{native} is down",
        "created_at": created,
        "updated_at": created,
        "status": "triggered",
        "incident_key": f"key-{native}",
        "service": {"id": "PSVC", "type": "service_reference", "summary": "checkout"},
        "urgency": "high",
        "teams": [],
        **changes,
    }


@dataclass
class PagerDutyApiFake:
    incidents: list[dict[str, Any]] = field(default_factory=list)
    alerts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    last_offset: int = 10_000
    account_token: bool = False  # an account's token has no user of its own
    before: Callable[[Request], Reply | None] = lambda request: None  # may answer in our place
    after: Callable[[Request, Reply], Reply] = lambda request, reply: reply

    def __call__(self, request: Request) -> Reply:
        if (reply := self.before(request)) is not None:
            return reply
        return self.after(request, self._answer(request))

    def _answer(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Token token={TOKEN}":
            return Reply(401, {"error": {"message": "Unauthorized"}})
        match [request.method, *request.path.strip("/").split("/")]:
            case ["GET", "incidents"]:
                return self._list(request)
            case ["GET", "incidents", native]:
                found = [i for i in self.incidents if i["id"] == native]
                return Reply(200, {"incident": found[0]}) if found else _missing()
            case ["GET", "incidents", native, "alerts"]:
                return Reply(200, {"alerts": self.alerts.get(native, []), "limit": 25, "offset": 0, "more": False})
            case ["GET", "incidents", native, "notes"]:
                return Reply(200, {"notes": self.notes.get(native, [])})
            case ["POST", "incidents", native, "notes"]:
                return self._add(native, request)
            case ["PUT", "incidents", native, "notes", note]:
                return self._edit(native, note, request)
            case ["GET", "users", "me"]:
                return (
                    Reply(400, {"error": {"message": "No user"}}) if self.account_token else Reply(200, {"user": BOT})
                )
            case ["GET", "users"]:
                other = {**BOT, "id": "POTHER", "email": "robot@example.org"}
                users = [u for u in (other, BOT) if request.query["query"][0] in u["email"]]
                return Reply(200, {"users": users, "limit": 25, "offset": 0, "more": False})
        return _missing()

    def _list(self, request: Request) -> Reply:
        query = request.query
        offset, limit = int(query["offset"][0]), int(query["limit"][0])
        if offset + limit > self.last_offset:
            return Reply(400, {"error": {"code": 2002, "message": "Offset must be less than 10000"}})
        found = [i for i in self.incidents if isinstance(i, dict) and i.get("status") in query["statuses[]"]]
        found += [i for i in self.incidents if not isinstance(i, dict)]
        if query.get("date_range") != ["all"]:
            since = parse_time(query["since"][0]) if "since" in query else NOW - timedelta(days=30)
            assert since is not None
            until = parse_time(query["until"][0]) if "until" in query else since + timedelta(days=30)
            assert until is not None
            if until - since > timedelta(days=184):
                return Reply(400, {"error": {"message": "Range too large"}})
            found = [i for i in found if since <= (parse_time(i.get("created_at")) or NOW) <= until]
        found.sort(key=lambda i: str(i.get("created_at")) if isinstance(i, dict) else "")
        page = found[offset : offset + limit]
        more = offset + limit < len(found)
        return Reply(200, {"incidents": page, "limit": limit, "offset": offset, "total": None, "more": more})

    def _add(self, native: str, request: Request) -> Reply:
        notes = self.notes.setdefault(native, [])
        if len(notes) >= 2_000:
            return Reply(400, {"error": {"message": "Invalid Input Provided", "errors": ["Too many notes"]}})
        note = {
            "id": f"PN{len(notes) + 1}",
            "user": {"id": BOT["id"], "type": "user_reference", "summary": BOT["name"]},
            "channel": {"summary": "The PagerDuty website or APIs"},
            "content": request.json()["note"]["content"],
            "created_at": f"2031-02-03T12:00:{len(notes):02d}Z",
        }
        notes.append(note)
        return Reply(200, {"note": note})

    def _edit(self, native: str, note_id: str, request: Request) -> Reply:
        for note in self.notes.get(native, []):
            if note["id"] == note_id:
                note["content"] = request.json()["note"]["content"]
                return Reply(200, {"note": note})
        return _missing()


def _missing() -> Reply:
    return Reply(404, {"error": {"code": 2100, "message": "Not Found"}})
