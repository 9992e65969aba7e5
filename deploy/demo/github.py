"""Plays GitHub's REST API: the issues of one repository, their comments, search, the user, the rate limit's headers."""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from deploy.demo.comments import Comments
from deploy.demo.exchange import Reply, Request, whole
from deploy.demo.scene import code, rfc3339
from deploy.demo.state import State
from deploy.demo.tickets import GITHUB_REPOSITORY as REPOSITORY
from deploy.demo.tickets import Ticket, Tickets

TOKEN = "demo-github-token"
LABEL = "alert"
LOGIN = "rootcaused"
MAX_BODY_CHARS = 65_536
HOUR_LIMIT = 5_000

Object = dict[str, Any]


class GitHub:
    def __init__(self, tickets: Tickets, state: State, address: str) -> None:
        self._tickets = tickets
        self._state = state
        self._comments = Comments(state)
        self._address = address

    def handle(self, request: Request) -> Reply:
        reply = self._answer(request)
        limits = {
            "X-RateLimit-Limit": str(HOUR_LIMIT),
            "X-RateLimit-Remaining": str(HOUR_LIMIT - 1),
            "X-RateLimit-Reset": str(int(self._state.now()) + 3_600),
            "X-RateLimit-Resource": "core",
        }
        return Reply(status=reply.status, payload=reply.payload, headers={**limits, **reply.headers})

    def _answer(self, request: Request) -> Reply:
        if request.headers.get("authorization") not in (f"Bearer {TOKEN}", f"token {TOKEN}"):
            return _refused(401, "Bad credentials")
        owner, name = REPOSITORY.split("/")
        match request.method, request.parts:
            case "GET", ["user"]:
                return Reply(payload=self._user(LOGIN))
            case "GET", ["search", "issues"]:
                return self._search(request)
            case _, ["repos", first, second, *rest] if (first.lower(), second.lower()) == (owner, name):
                return self._in_repository(rest, request)
            case _:
                return _refused(404, "Not Found")

    def _in_repository(self, rest: list[str], request: Request) -> Reply:
        match request.method, rest:
            case "GET", []:
                return Reply(payload={"id": 1, "full_name": REPOSITORY, "has_issues": True})
            case "GET", ["issues"]:
                return self._list(request)
            case "PATCH", ["issues", "comments", native]:
                return self._edit(native, request)
            case _, ["issues", number, *part]:
                ticket = self._tickets.native(f"{REPOSITORY}#{number}")
                return self._of_issue(ticket, part, request) if ticket else _refused(404, "Not Found")
            case _:
                return _refused(404, "Not Found")

    def _of_issue(self, ticket: Ticket, part: list[str], request: Request) -> Reply:
        match request.method, part:
            case "GET", []:
                return Reply(payload=self._issue(ticket))
            case "GET", ["comments"]:
                return self._page(request, self._all(ticket))
            case "GET", ["timeline"]:
                return self._page(request, [])
            case "GET", ["labels"]:
                return self._page(request, self._issue(ticket)["labels"])
            case "POST", ["comments"]:
                return self._add(ticket, request)
            case _:
                return _refused(404, "Not Found")

    def _list(self, request: Request) -> Reply:
        state, since = request.one("state", "open"), _seconds(request.one("since"))
        issues = [self._issue(one) for one in self._tickets.all("github")]
        wanted = {name.lower() for name in request.one("labels").split(",") if name}
        kept = [
            one
            for one in issues
            if state in ("all", one["state"])
            and _seconds(one["updated_at"]) >= since
            and wanted <= {label["name"].lower() for label in one["labels"]}
        ]
        by = f"{request.one('sort', 'created')}_at"
        kept.sort(key=lambda one: str(one.get(by, "")), reverse=request.one("direction", "desc") == "desc")
        return self._page(request, kept)

    def _search(self, request: Request) -> Reply:
        """By state alone: all issues here are of one repository."""
        words = request.one("q").split()
        issues = [self._issue(one) for one in self._tickets.all("github")]
        kept = [{**one, "score": 1.0} for one in issues if "is:open" not in words or one["state"] == "open"]
        page, size = max(1, whole(request.one("page"), 1)), whole(request.one("per_page"), 30)
        shown = kept[(page - 1) * size : page * size]
        return Reply(payload={"total_count": len(kept), "incomplete_results": False, "items": shown})

    def _page(self, request: Request, rows: list[Object]) -> Reply:
        page, size = max(1, whole(request.one("page"), 1)), min(100, whole(request.one("per_page"), 30) or 30)
        query = {name: values[-1] for name, values in request.query.items()} | {"page": str(page + 1)}
        following = f'<{self._address}{request.path}?{urlencode(query)}>; rel="next"'
        headers = {"Link": following} if page * size < len(rows) else {}
        return Reply(payload=rows[(page - 1) * size : page * size], headers=headers)

    def _issue(self, ticket: Ticket) -> Object:
        incident = ticket.incident
        number = int(ticket.native.rpartition("#")[2])
        url = f"{self._address}/repos/{REPOSITORY}/issues/{number}"
        names = [LABEL, f"severity:{incident.severity}", *([f"service:{incident.service}"] if incident.service else [])]
        lines = [f" - {name} = {value}" for name, value in incident.labels.items()]
        closed = None if ticket.resolved is None else rfc3339(ticket.resolved)
        return {
            "id": 1_000_000 + number,
            "node_id": f"I_{number}",
            "url": url,
            "repository_url": f"{self._address}/repos/{REPOSITORY}",
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": f"{self._address}/{REPOSITORY}/issues/{number}",
            "number": number,
            "state": "open" if closed is None else "closed",
            "title": incident.title,
            "body": "\n".join((*incident.rule.annotations.values(), "", *lines, "", f"expr: {incident.rule.expr}")),
            "user": self._user("alerting"),
            "labels": [self._label(name) for name in names],
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "locked": False,
            "comments": len(self._all(ticket)),
            "created_at": rfc3339(ticket.fired),
            "updated_at": self._updated(ticket),
            "closed_at": closed,
            "author_association": "MEMBER",
        }

    def _updated(self, ticket: Ticket) -> str:
        """A comment updates its issue, as does closing it."""
        written = [str(one["updated_at"]) for one in self._comments.of(ticket)]
        return max([rfc3339(ticket.resolved or ticket.fired), *written])

    def _label(self, name: str) -> Object:
        url = f"{self._address}/repos/{REPOSITORY}/labels/{name}"
        number = zlib.crc32(name.encode())
        about = {"id": number, "node_id": f"L_{number}", "url": url, "name": name}
        return {**about, "description": None, "color": "d73a4a", "default": False}

    def _user(self, login: str) -> Object:
        base = f"{self._address}/users/{login}"
        lists = ("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events")
        number = zlib.crc32(login.encode())
        return {
            "login": login,
            "id": number,
            "node_id": f"U_{number}",
            "avatar_url": f"{base}/avatar",
            "gravatar_id": "",
            "url": base,
            "html_url": f"{self._address}/{login}",
            **{f"{name}_url": f"{base}/{name}" for name in lists},
            "received_events_url": f"{base}/received_events",
            "type": "User",
            "site_admin": False,
        }

    def _all(self, ticket: Ticket) -> list[Object]:
        people = [
            self._comment(ticket, int(code(f"{ticket.native}{text}", 6, "123456789")), "sam", text, ticket.fired + 120)
            for text in ticket.incident.notes
        ]
        return people + self._comments.of(ticket)

    def _comment(self, ticket: Ticket, native: int, login: str, body: str, at: float) -> Object:
        number = ticket.native.rpartition("#")[2]
        issue = f"/repos/{REPOSITORY}/issues"
        return {
            "id": native,
            "node_id": f"IC_{native}",
            "url": f"{self._address}{issue}/comments/{native}",
            "html_url": f"{self._address}/{REPOSITORY}/issues/{number}#issuecomment-{native}",
            "issue_url": f"{self._address}{issue}/{number}",
            "body": body,
            "user": self._user(login),
            "created_at": rfc3339(at),
            "updated_at": rfc3339(at),
            "author_association": "MEMBER",
        }

    def _add(self, ticket: Ticket, request: Request) -> Reply:
        body = _body(request)
        if problem := _problem(body):
            return problem
        native = 5_000 + self._state.next_number()
        comment = self._comment(ticket, native, LOGIN, body, self._state.now())
        self._comments.add(ticket, comment)
        return Reply(status=201, payload=comment)

    def _edit(self, native: str, request: Request) -> Reply:
        body = _body(request)
        if problem := _problem(body):
            return problem
        changes = {"body": body, "updated_at": rfc3339(self._state.now())}
        for ticket in self._tickets.all("github"):
            if changed := self._comments.change(ticket, whole(native, 0), changes):
                return Reply(payload=changed)
        return _refused(404, "Not Found")


def _body(request: Request) -> str:
    payload = request.json()
    body = payload.get("body") if isinstance(payload, dict) else None
    return body if isinstance(body, str) else ""


def _problem(body: str) -> Reply | None:
    if body and len(body) <= MAX_BODY_CHARS:
        return None
    said = f"body is too long (maximum is {MAX_BODY_CHARS} characters)" if body else "body can't be blank"
    errors = [{"resource": "IssueComment", "code": "custom", "field": "body", "message": said}]
    return Reply(status=422, payload={"message": "Validation Failed", "errors": errors, "documentation_url": ""})


def _seconds(text: str) -> float:
    """Zero for no time."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _refused(status: int, message: str) -> Reply:
    return Reply(status=status, payload={"message": message, "documentation_url": "", "status": str(status)})
