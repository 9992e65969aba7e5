"""Jira's REST API in memory, Cloud (v3) or Data Center (v2): issues, an index that lags, comments, service projects."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

from sources.jira.config import JiraConfig
from sources.jira.source import Jira
from tests.support.adf_check import adf_faults, texts
from tests.support.http_server import Reply, Request
from tests.support.jql_eval import JqlError, parse

TOKEN = "jira-token-1234567890"
EMAIL = "bot@example.org"
NOW = datetime(2031, 2, 3, 12, 0, tzinfo=UTC)
BOT_ID = "712020:bot"
MAX_TEXT = 32_767
CATEGORIES = {"new": ("To Do", 2), "indeterminate": ("In Progress", 4), "done": ("Done", 3)}
TOO_LONG = "The entered text is too long. It exceeds the allowed limit of 32,767 characters."
LIVE = "http://jira.example.org"


def jira(url: str, *, cloud: bool = True, **options: Any) -> Jira:
    """A source with the credentials the fake takes."""
    login = {"email": EMAIL, "api_token": TOKEN} if cloud else {"personal_access_token": TOKEN}
    return Jira(
        "jira", JiraConfig(**{"url": url, "projects": "OPS", "webhook_secrets": "hook-secret", **login, **options})
    )


def person(name: str, cloud: bool) -> dict[str, Any]:
    ids = (
        {"accountId": f"712020:{name.lower()}"} if cloud else {"key": f"JIRAUSER-{name.lower()}", "name": name.lower()}
    )
    return {**ids, "displayName": name, "active": True}


def document(text: str) -> dict[str, Any]:
    """A document with one paragraph a line."""
    lines = [{"type": "paragraph", "content": [{"type": "text", "text": line}]} for line in text.split("\n") if line]
    return {"type": "doc", "version": 1, "content": lines}


@dataclass
class JiraApiFake:
    """`issues` is the truth by id; search sees an issue as it was `lag` ago. `now` moves when a test moves it."""

    cloud: bool = True
    now: datetime = NOW
    lag: timedelta = timedelta(0)
    zone: timezone = timezone(timedelta(hours=7))  # of our user: times are shown in it, offset without a colon
    projects: dict[str, str] = field(
        default_factory=lambda: {"OPS": "software", "WEB": "business", "HELP": "service_desk"}
    )
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)
    comments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    changelog: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    refuse_internal: int = 0  # a status: what a user who is no agent gets
    ignore_internal: bool = False
    refuse_documents: int = 0  # so many comments are refused as not valid
    max_text: int = MAX_TEXT
    cap: int = 100  # of one page of issues with fields
    before: Callable[[Request], Reply | None] = lambda request: None  # may answer in our place
    after: Callable[[Request, Reply], Reply] = lambda request, reply: reply
    _index: dict[str, list[tuple[datetime, dict[str, Any]]]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    # -- what people do ------------------------------------------------------------------------------------------

    def add(
        self, project: str = "OPS", *, native: str = "", age: timedelta = timedelta(minutes=5), **changes: Any
    ) -> str:
        """A new issue; returns its id."""
        native = native or str(10_000 + len(self.issues))
        created = self.now - age
        self.issues[native] = {
            "id": native,
            "key": self._next_key(project),
            "project": project,
            "statuscategory": "new",
            "summary": f"{native} is down",
            "labels": [],
            "created": created,
            "updated": created,
            "fields": {},
        }
        self.change(native, at=created, **changes)
        return native

    def change(self, native: str, *, at: datetime | None = None, **changes: Any) -> None:
        self.issues[native] |= {"updated": at or self.now, **changes}
        self._index.setdefault(native, []).append(((at or self.now) + self.lag, dict(self.issues[native])))

    def move(self, native: str, project: str) -> None:
        """To another project: the key changes, the id stays."""
        self.change(native, project=project, key=self._next_key(project))

    def say(self, native: str, text: str, author: str = "Ann", **changes: Any) -> None:
        said = {
            "id": str(90_000 + sum(map(len, self.comments.values()))),
            "author": person(author, self.cloud),
            "body": document(text) if self.cloud else text,
            "created": self._stamp(self.now),
            "updated": self._stamp(self.now),
            **changes,
        }
        self.comments.setdefault(native, []).append(said)

    def public(self, native: str) -> list[dict[str, Any]]:
        """The comments a customer can read."""
        return [c for c in self.comments.get(native, []) if c.get("jsdPublic") is True]

    def words(self, native: str) -> list[str]:
        """The text of every comment."""
        found = [comment["body"] for comment in self.comments.get(native, [])]
        return ["\n".join(texts(body)) if isinstance(body, dict) else body for body in found]

    def _next_key(self, project: str) -> str:
        self._counts[project] = self._counts.get(project, 0) + 1
        return f"{project}-{self._counts[project]}"

    # -- what the server does --------------------------------------------------------------------------------------

    def __call__(self, request: Request) -> Reply:
        reply = self.before(request) or self._answer(request)
        dated = Reply(
            reply.status, reply.body, {"Date": format_datetime(self.now, usegmt=True), **reply.headers}, reply.cut
        )
        return self.after(request, dated)

    def _answer(self, request: Request) -> Reply:
        if request.path == "/rest/api/2/serverInfo":
            return Reply(
                200, {"deploymentType": "Cloud" if self.cloud else "Server", "version": "10.3.0", "baseUrl": LIVE}
            )
        if request.headers.get("authorization") != self._credentials():
            return _errors(401, "Client must be authenticated to access this resource.")
        root = f"/rest/api/{3 if self.cloud else 2}/"
        match [request.method, *request.path.removeprefix(root).split("/")]:
            case ["GET", "myself"]:
                return Reply(200, person("Bot", self.cloud))
            case ["POST", "jql", "parse"] if self.cloud:
                return self._parsed(request)
            case ["POST", "search", "jql"] if self.cloud:
                return self._by_token(request.json())
            case ["GET", "search"] if not self.cloud:
                return self._by_offset(request)
            case ["GET" | "POST", "search"]:
                return _errors(
                    410, "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API."
                )
            case [method, "issue", native, *rest]:
                found = next((i for i in self.issues.values() if native in (i["id"], i["key"])), None)
                return self._issue(method, found, rest, request) if found else _errors(404, "Issue does not exist")
        return Reply(404, b"<html>dead link</html>", {"Content-Type": "text/html"})

    def _credentials(self) -> str:
        if not self.cloud:
            return f"Bearer {TOKEN}"
        return "Basic " + base64.b64encode(f"{EMAIL}:{TOKEN}".encode()).decode()

    def _parsed(self, request: Request) -> Reply:
        queries: list[dict[str, Any]] = []
        for query in request.json()["queries"]:
            try:
                parse(query, self.now)
                queries.append({"query": query, "structure": {}})
            except JqlError as error:
                queries.append({"query": query, "errors": [str(error)]})
        return Reply(200, {"queries": queries})

    def found(self, jql: str) -> list[dict[str, Any]]:
        """By the index: as every issue was `lag` ago."""
        condition, order = parse(jql, self.now)
        seen = [[snapshot for at, snapshot in log if at <= self.now] for log in self._index.values()]
        hits = [snapshots[-1] for snapshots in seen if snapshots and condition(snapshots[-1])]
        for name, descending in reversed(order):
            hits.sort(key=lambda snapshot: _sort_key(snapshot, name), reverse=descending)
        return hits

    def _by_token(self, asked: dict[str, Any]) -> Reply:
        try:
            hits = self.found(asked["jql"])
        except JqlError as error:
            return _errors(400, str(error))
        names = asked.get("fields") or ["id"]
        size = min(asked.get("maxResults", 50), 5_000 if names == ["id"] else self.cap)
        start = 0
        if token := asked.get("nextPageToken"):
            native, place = json.loads(base64.b64decode(token))
            start = next((n for n, hit in enumerate(hits, 1) if hit["id"] == native), -1)
            if start < 0:
                start = next((n for n, hit in enumerate(hits) if _place(hit) > place), len(hits))
        page = hits[start : start + size]
        body: dict[str, Any] = {"issues": [self.shown(hit, names) for hit in page], "isLast": True}
        if start + size < len(hits):
            token = json.dumps([page[-1]["id"], _place(page[-1])])
            body |= {"isLast": False, "nextPageToken": base64.b64encode(token.encode()).decode()}
        return Reply(200, body)

    def _by_offset(self, request: Request) -> Reply:
        try:
            hits = self.found(request.query["jql"][0])
        except JqlError as error:
            return _errors(400, str(error))
        start, size = int(request.query["startAt"][0]), min(int(request.query["maxResults"][0]), self.cap)
        names = request.query["fields"][0].split(",")
        page = [self.shown(hit, names) for hit in hits[start : start + size]]
        return Reply(200, {"startAt": start, "maxResults": size, "total": len(hits), "issues": page})

    def shown(self, snapshot: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """An issue with the fields asked for."""
        fields = {name: value for name, value in self.fields(snapshot).items() if name in names}
        shown = {"id": snapshot["id"], "key": snapshot["key"], "self": f"{LIVE}/rest/api/3/issue/{snapshot['id']}"}
        return shown if names == ["id"] else {**shown, "fields": fields}

    def fields(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        category = snapshot["statuscategory"]
        name, number = CATEGORIES[category]
        kind = {"projectTypeKey": self.projects[snapshot["project"]]}
        text = f"about {snapshot['summary']}"
        return {
            "summary": snapshot["summary"],
            "description": document(text) if self.cloud else text,
            "status": {"name": name, "statusCategory": {"id": number, "key": category, "name": name}},
            "priority": {"name": "High", "id": "2"},
            "labels": snapshot["labels"],
            "components": [],
            "project": {"id": "1", "key": snapshot["project"], "name": snapshot["project"].title(), **kind},
            "issuetype": {"id": "1", "name": "Incident"},
            "created": self._stamp(snapshot["created"]),
            "updated": self._stamp(snapshot["updated"]),
            "resolutiondate": self._stamp(snapshot["updated"]) if category == "done" else None,
            **snapshot["fields"],
        }

    def _stamp(self, at: datetime) -> str:
        local = at.astimezone(self.zone)
        return f"{local:%Y-%m-%dT%H:%M:%S}.{local.microsecond // 1000:03d}{local:%z}"

    def _issue(self, method: str, issue: dict[str, Any], rest: list[str], request: Request) -> Reply:
        comments = self.comments.setdefault(issue["id"], [])
        match [method, *rest]:
            case ["GET"]:
                shown = self.shown(issue, request.query["fields"][0].split(","))
                if request.query.get("expand") == ["changelog"]:
                    shown["changelog"] = {"histories": self.changelog.get(issue["id"], [])}
                return Reply(200, shown)
            case ["GET", "comment"]:
                newest = sorted(
                    comments, key=lambda c: (c.get("created") or "") if isinstance(c, dict) else "", reverse=True
                )
                start, size = int(request.query["startAt"][0]), int(request.query["maxResults"][0])
                page = newest[start : start + size]
                return Reply(200, {"comments": page, "startAt": start, "maxResults": size, "total": len(newest)})
            case ["POST", "comment"]:
                return self._write(issue, request.json(), None)
            case ["PUT" | "DELETE", "comment", native]:
                kept = next((c for c in comments if c["id"] == native), None)
                if kept is None:
                    return _errors(404, f"Can not find a comment for the id: {native}.")
                if method == "PUT":
                    return self._write(issue, request.json(), kept)
                comments.remove(kept)
                return Reply(204)
        return _errors(405, "no")

    def _write(self, issue: dict[str, Any], payload: dict[str, Any], kept: dict[str, Any] | None) -> Reply:
        comments, body = self.comments[issue["id"]], payload["body"]
        internal = {"key": "sd.public.comment", "value": {"internal": True}} in payload.get("properties", [])
        if fault := self._fault(body, internal, len(comments) if kept is None else 0):
            return fault
        new = kept is None
        if kept is None:
            self.say(issue["id"], "", "Bot")
            kept = comments[-1]
            kept["created"] = self._stamp(self.now + timedelta(milliseconds=len(comments)))
        service = self.projects[issue["project"]] == "service_desk"
        public = not internal or self.ignore_internal
        kept |= {"body": body, "updated": self._stamp(self.now)} | (
            {"jsdPublic": public} if self.cloud or service else {}
        )
        self.change(issue["id"])  # our own comment changes the issue, too
        return Reply(201 if new else 200, kept)

    def _fault(self, body: Any, internal: bool, count: int) -> Reply | None:
        text = "\n".join(texts(body)) if isinstance(body, dict) and not adf_faults(body) else str(body)
        if internal and self.refuse_internal:
            return _errors(self.refuse_internal, "You do not have permission to add an internal comment.")
        if self.refuse_documents:
            self.refuse_documents -= 1
            return Reply(400, {"errorMessages": [], "errors": {"comment": "Comment body is not valid!"}})
        if self.cloud == isinstance(body, str) or (self.cloud and adf_faults(body)):
            return Reply(400, {"errorMessages": ["INVALID_INPUT"], "errors": {}})
        if len(text.encode("utf-16-le")) // 2 > self.max_text:
            return _errors(400, TOO_LONG)
        return _errors(413, "The issue has too many comments.") if count >= 5_000 else None


def _errors(status: int, message: str) -> Reply:
    return Reply(status, {"errorMessages": [message], "errors": {}})


def _sort_key(snapshot: dict[str, Any], name: str) -> Any:
    if name in ("key", "id"):
        project, _, number = snapshot["key"].partition("-")
        return (project, int(number))
    return snapshot.get(name, "")


def _place(snapshot: dict[str, Any]) -> list[Any]:
    return [snapshot["created"].timestamp(), *_sort_key(snapshot, "key")]
