"""The alert APIs of OpsGenie and of JSM Operations in memory: queries, offset paging and its limit, notes, requests."""

from __future__ import annotations

import base64
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sources.opsgenie.alerts import instant, milliseconds
from tests.support.http_server import Reply, Request

NOW = datetime(2031, 2, 3, 12, 0, tzinfo=UTC)  # the Date header of the test server
API_KEY = "og-key-1234567890"
EMAIL = "bot@example.org"
API_TOKEN = "jsm-token-1234567890"
CLOUD_ID = "35273b54-3f06-40d2-880f-dd28cf8daafa"
ACCOUNT_ID = "5b10ac8d82e05b22cc7d4ef5"
WHOLE_ONLY = ("description", "details", "entity")
SORTS = {"createdAt", "updatedAt", "insertedAt", "lastOccurredAt", "count", "priority"}


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def ops_alert(native: str, age: timedelta = timedelta(minutes=5), **changes: Any) -> dict[str, Any]:
    created = stamp(NOW - age)
    return {
        "id": native,
        "tinyId": "7",
        "alias": f"alias-{native}",
        "message": f"{native} is down",
        "status": "open",
        "acknowledged": False,
        "isSeen": False,
        "tags": [],
        "snoozed": False,
        "count": 1,
        "lastOccurredAt": created,
        "createdAt": created,
        "updatedAt": created,
        "source": "prometheus",
        "owner": "",
        "priority": "P2",
        "description": "the whole story",
        "entity": "checkout",
        "details": {"namespace": "shop"},
        **changes,
    }


def matches(query: str, alert: dict[str, Any]) -> bool:
    """A small part of the search language: AND, OR, NOT, brackets, `field:value`, `createdAt >= ms`."""
    for word, joined in ((" OR ", any), (" AND ", all)):
        parts = _split(query, word)
        if len(parts) > 1:
            return joined(matches(part, alert) for part in parts)
    query = query.strip()
    if query.startswith("(") and query.endswith(")"):
        return matches(query[1:-1], alert)
    if query.startswith("NOT "):
        return not matches(query[4:], alert)
    if later := re.fullmatch(r"createdAt >= (\d+)", query):
        created = instant(alert.get("createdAt"))
        return created is not None and milliseconds(created) >= int(later[1])
    if pair := re.fullmatch(r"(status|priority|tag|entity): ?(\S+)", query):
        value = alert.get("tags") if pair[1] == "tag" else alert.get(pair[1])
        return pair[2] in value if isinstance(value, list) else pair[2] == value
    raise ValueError(query)


def _split(query: str, word: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(query):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and query.startswith(word, at):
            parts.append(query[start:at])
            start = at + len(word)
    return [*parts, query[start:]]


@dataclass
class _Accepted:
    act: Callable[[], None]
    asked: int = 0
    done: bool = False


@dataclass
class _OpsApiFake:
    """What both have. `pending` is how often a request's outcome is 404 before the write is carried out;
    `refusal` is then the outcome instead. `tie` orders alerts of one millisecond."""

    alerts: list[Any] = field(default_factory=list)
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    pending: int = 0
    refusal: str = ""
    settles_when_listed: bool = False  # accepted writes are carried out by the time somebody lists the notes
    note_limit: int = 25_000
    note_page: int = 100
    last_offset: int = 20_000
    tie: Callable[[dict[str, Any]], Any] = lambda alert: alert["id"]
    before: Callable[[Request], Reply | None] = lambda request: None  # may answer in our place
    after: Callable[[Request, Reply], Reply] = lambda request, reply: reply
    requests: dict[str, _Accepted] = field(default_factory=dict)

    def __call__(self, request: Request) -> Reply:
        if (reply := self.before(request)) is not None:
            return reply
        return self.after(request, self._answer(request))

    def _answer(self, request: Request) -> Reply:
        raise NotImplementedError

    def _rows(self, request: Request, limit: int) -> tuple[list[Any], int, bool] | Reply:
        """The page, where the next one starts, and whether there is one."""
        query = request.query.get("query", [""])[0]
        offset = int(request.query.get("offset", ["0"])[0])
        if request.query.get("sort", ["createdAt"])[0] not in SORTS or not 1 <= limit <= 100:
            return Reply(422, {"message": "Request body is not processable."})
        if offset + limit > self.last_offset:
            return Reply(422, {"message": f"The sum of offset and limit should be lower than {self.last_offset}"})
        try:
            matches(query or "status:open", {})  # so that a bad query is refused also where there is nothing
            found = [one for one in self.alerts if not isinstance(one, dict) or not query or matches(query, one)]
        except ValueError:
            return Reply(400, {"message": "Search query is not valid"})
        descending = request.query.get("order", ["desc"])[0] == "desc"
        found.sort(key=self._place, reverse=descending)
        return found[offset : offset + limit], offset + limit, offset + limit < len(found)

    def _place(self, alert: Any) -> tuple[str, Any]:
        return (str(alert.get("createdAt")), self.tie(alert)) if isinstance(alert, dict) else ("", "")

    def _found(self, native: str) -> dict[str, Any] | None:
        return next((one for one in self.alerts if isinstance(one, dict) and one.get("id") == native), None)

    def _accept(self, act: Callable[[], None]) -> Reply:
        request = f"request-{len(self.requests) + 1}"
        accepted = self.requests[request] = _Accepted(act)
        if not self.pending:
            self._carry_out(accepted)
        return Reply(202, {"result": "Request will be processed", "took": 0.302, "requestId": request})

    def _carry_out(self, accepted: _Accepted) -> None:
        if not accepted.done and not self.refusal:
            accepted.act()
        accepted.done = True

    def _outcome(self, request: str) -> Reply:
        accepted = self.requests.get(request)
        if accepted is None:
            return Reply(404, {"message": "Request not found", "took": 0.1, "requestId": "r"})
        accepted.asked += 1
        if accepted.asked <= self.pending:
            return Reply(404, {"message": "Request not found. It might not be processed yet", "took": 0.1})
        self._carry_out(accepted)
        status = self.refusal or "Added note"
        data = {"success": not self.refusal, "isSuccess": not self.refusal, "action": "AddNote", "status": status}
        return Reply(200, {"data": data, "took": 0.02, "requestId": "r"})

    def _listed(self, native: str) -> list[dict[str, Any]]:
        if self.settles_when_listed:
            for accepted in self.requests.values():
                self._carry_out(accepted)
        return self.notes.get(native, [])

    def _too_long(self, text: str) -> Reply | None:
        """Counted as Java does."""
        if len(text.encode("utf-16-le")) // 2 <= self.note_limit:
            return None
        return Reply(422, {"message": f"Note is too long: it can have {self.note_limit} characters"})

    def _add(self, native: str, note: dict[str, Any]) -> None:
        notes = self.notes.setdefault(native, [])
        notes.append({**note, "createdAt": stamp(NOW + timedelta(seconds=len(notes)))})


@dataclass
class OpsGenieApiFake(_OpsApiFake):
    tagged: dict[str, list[str]] = field(default_factory=dict)

    def _answer(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"GenieKey {API_KEY}":
            return Reply(401, {"message": "Could not authenticate", "took": 0.0, "requestId": "r"})
        match [request.method, *request.path.strip("/").split("/")]:
            case ["GET", "v2", "alerts"]:
                return self._list(request)
            case ["GET", "v2", "alerts", "requests", native]:
                return self._outcome(native)
            case ["GET", "v2", "alerts", native]:
                found = self._found(native)
                return Reply(200, {"data": found, "took": 0.1, "requestId": "r"}) if found else _missing()
            case ["GET", "v2", "alerts", native, "notes"]:
                return self._list_notes(native, request)
            case ["POST", "v2", "alerts", native, "notes"]:
                body = request.json()
                note = {"note": body["note"], "owner": body.get("user", "System")}
                return self._too_long(body["note"]) or self._accept(lambda: self._add(native, note))
            case ["POST", "v2", "alerts", native, "tags"]:
                return self._accept(lambda: self.tagged.setdefault(native, []).extend(request.json()["tags"]))
        return _missing()

    def _list(self, request: Request) -> Reply:
        rows = self._rows(request, int(request.query.get("limit", ["20"])[0]))
        if isinstance(rows, Reply):
            return rows
        page, offset, more = rows
        first = f"https://api.opsgenie.com/v2/alerts?limit=100&sort=createdAt&offset=0&order=asc&offset={offset}"
        short = [
            {name: value for name, value in one.items() if name not in WHOLE_ONLY} if isinstance(one, dict) else one
            for one in page
        ]
        paging = {"first": first, **({"next": first} if more else {})}
        return Reply(200, {"data": short, "paging": paging, "took": 0.1, "requestId": "r"})

    def _list_notes(self, native: str, request: Request) -> Reply:
        notes = self._listed(native)
        start = int(request.query.get("offset", ["0_0"])[0].partition("_")[2])
        end = start + min(int(request.query.get("limit", ["20"])[0]), self.note_page)
        page = [{**note, "offset": f"1496838477430_{start + n}"} for n, note in enumerate(notes[start:end])]
        address = (
            f"https://api.opsgenie.com/v2/alerts/{native}/notes?identifierType=id&limit=100&order=asc&direction=next"
        )
        paging = {"first": address, **({"next": f"{address}&offset=1496838477430_{end}"} if end < len(notes) else {})}
        return Reply(200, {"data": page, "paging": paging, "took": 0.1, "requestId": "r"})


@dataclass
class JsmOpsApiFake(_OpsApiFake):
    """`envelope` is what a list comes in; `answers_at_once` is whether a note is written while the client waits."""

    envelope: str = "values"
    answers_at_once: bool = True
    owner: str = ACCOUNT_ID
    knows_the_user: bool = True

    def _answer(self, request: Request) -> Reply:
        parts = request.path.strip("/").split("/")
        if parts == ["_edge", "tenant_info"]:
            return Reply(200, {"cloudId": CLOUD_ID, "cloudName": "acme"})
        basic = base64.b64encode(f"{EMAIL}:{API_TOKEN}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {basic}":
            return Reply(401, {"code": 401, "message": "Unauthorized"})
        match [request.method, *parts]:
            case ["GET", "ex", "jira", cloud, "rest", "api", "3", "myself"] if cloud == CLOUD_ID:
                return Reply(200, {"accountId": ACCOUNT_ID}) if self.knows_the_user else Reply(401, {"message": "no"})
            case [method, "jsm", "ops", "api", cloud, "v1", "alerts", *rest] if cloud == CLOUD_ID:
                return self._alerts(method, rest, request)
        return _missing()

    def _alerts(self, method: str, rest: list[str], request: Request) -> Reply:
        match [method, *rest]:
            case ["GET"]:
                return self._list(request)
            case ["GET", "requests", native]:
                reply = self._outcome(native)
                return Reply(reply.status, reply.body["data"]) if reply.status == 200 else reply
            case ["GET", native]:
                found = self._found(native)
                return Reply(200, found) if found else _missing()
            case ["GET", native, "notes"]:
                return self._list_notes(native, request)
            case ["POST", native, "notes"]:
                return self._too_long(request.json()["note"]) or self._post(native, request.json()["note"])
            case ["PATCH", native, "notes", note]:
                return self._too_long(request.json()["note"]) or self._patch(native, note, request.json()["note"])
        return _missing()

    def _list(self, request: Request) -> Reply:
        rows = self._rows(request, int(request.query.get("size", ["20"])[0]))
        if isinstance(rows, Reply):
            return rows
        page, offset, more = rows
        short = [
            {name: value for name, value in one.items() if name not in WHOLE_ONLY} if isinstance(one, dict) else one
            for one in page
        ]
        links = {"next": f"https://api.atlassian.com{request.path}?size=100&offset={offset}"} if more else {}
        return Reply(200, {self.envelope: short, "links": links, "count": len(self.alerts)})

    def _list_notes(self, native: str, request: Request) -> Reply:
        notes = self._listed(native)
        start = int(request.query.get("after", ["0"])[0])
        end = start + min(int(request.query.get("size", ["20"])[0]), self.note_page)
        links = {"next": f"{request.path}?size=100&after={end}"} if end < len(notes) else {}
        return Reply(200, {self.envelope: notes[start:end], "links": links})

    def _post(self, native: str, text: str) -> Reply:
        note = {"id": f"note-{len(self.notes.get(native, ())) + 1}", "note": text, "owner": self.owner}
        if self.answers_at_once:
            self._add(native, note)
            return Reply(200, self.notes[native][-1])
        return self._accept(lambda: self._add(native, note))

    def _patch(self, native: str, note_id: str, text: str) -> Reply:
        found = [note for note in self.notes.get(native, []) if note["id"] == urllib.parse.unquote(note_id)]
        if not found:
            return _missing()
        if not self.answers_at_once:
            return self._accept(lambda: found[0].update(note=text))
        found[0]["note"] = text
        return Reply(200, found[0])


def _missing() -> Reply:
    return Reply(404, {"message": "Alert does not exist", "took": 0.0, "requestId": "r"})
