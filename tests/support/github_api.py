"""GitHub's REST API in memory: issues that change while they are read, comments, search, users, Apps, limits."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from agent.alert import parse_time
from tests.support.http_server import Reply, Request

TOKEN = "github_pat_1234567890abcdef"
NOW = datetime(2031, 2, 3, 12, 0, tzinfo=UTC)
REPOSITORY = "acme/shop"
MAX_BODY_CHARS = 65_536
HITS_SHOWN = 1_000


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def user(login: str, native: int, kind: str = "User") -> dict[str, Any]:
    base = f"https://api.github.com/users/{login}"
    names = ("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events")
    return {
        "login": login,
        "id": native,
        "node_id": f"U_{native}",
        "avatar_url": "https://avatars.githubusercontent.com/u/1",
        "gravatar_id": "",
        "url": base,
        "html_url": f"https://github.com/{login}",
        **{f"{name}_url": f"{base}/{name}" for name in names},
        "received_events_url": f"{base}/received_events",
        "type": kind,
        "site_admin": False,
    }


ANN = user("ann", 11)
BOT = user("root-cause-bot", 77)
APP_BOT = user("rootcaused[bot]", 78, "Bot")


def label(name: str, description: str | None = None) -> dict[str, Any]:
    return {
        "id": zlib.crc32(name.encode()),
        "node_id": f"L_{name}",
        "url": f"https://api.github.com/repos/{REPOSITORY}/labels/{urllib.parse.quote(name)}",
        "name": name,
        "description": description,
        "color": "d73a4a",
        "default": False,
    }


def issue(
    number: int,
    *,
    age: timedelta = timedelta(minutes=5),
    labels: Iterable[str] = ("alert",),
    repository: str = REPOSITORY,
    **changes: Any,
) -> dict[str, Any]:
    url = f"https://api.github.com/repos/{repository}/issues/{number}"
    return {
        "id": 1_000_000 + number,
        "node_id": f"I_{repository}_{number}",
        "url": url,
        "repository_url": f"https://api.github.com/repos/{repository}",
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": f"https://github.com/{repository}/issues/{number}",
        "number": number,
        "state": "open",
        "title": f"checkout {number} is slow",
        "body": "It is slow.",
        "user": ANN,
        "labels": [label(name) for name in labels],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "locked": False,
        "comments": 0,
        "created_at": stamp(NOW - age),
        "updated_at": stamp(NOW - age),
        "closed_at": None,
        "author_association": "MEMBER",
        **changes,
    }


def as_pull_request(item: dict[str, Any]) -> dict[str, Any]:
    url = item["url"].replace("/issues/", "/pulls/")
    return {**item, "pull_request": {"url": url, "html_url": url, "diff_url": url, "patch_url": url}}


def labels_of(item: dict[str, Any]) -> set[str]:
    return {entry["name"].lower() for entry in item["labels"]}


@dataclass
class GitHubApiFake:
    """`prefix` is /api/v3 on an Enterprise Server. `moved` maps a repository to the number GitHub redirects to."""

    issues: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {REPOSITORY: []})
    comments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by owner/name#number
    timelines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    renamed: dict[str, tuple[int, str]] = field(default_factory=dict)  # old name: (number, new name)
    prefix: str = ""
    now: datetime = NOW
    since_inclusive: bool = True
    sorted_by_stale_times: bool = False  # rows show what `after` changes, in the order from before
    per_page_cap: int = 100
    longest: int = MAX_BODY_CHARS
    incomplete: bool = False
    me: dict[str, Any] = field(default_factory=lambda: BOT)
    app: tuple[int, int] | None = None  # the App's public key: modulus and exponent
    minted: list[str] = field(default_factory=list)  # installation tokens that are good
    mints: int = 0
    date: bool = True
    before: Callable[[Request], Reply | None] = lambda request: None  # may answer in our place
    after: Callable[[Request, Reply], Reply] = lambda request, reply: reply

    def __call__(self, request: Request) -> Reply:
        if (reply := self.before(request)) is not None:
            return reply
        reply = self._answer(request)
        if not self.sorted_by_stale_times:
            reply = Reply(reply.status, json.loads(json.dumps(reply.body)), reply.headers)
        reply = self.after(request, reply)
        date = {"Date": format_datetime(self.now, usegmt=True) if self.date else None}
        return Reply(reply.status, reply.body, {**date, **reply.headers}, reply.cut)

    def get(self, number: int, repository: str = REPOSITORY) -> dict[str, Any]:
        return next(item for item in self.issues[repository] if item["number"] == number)

    def change(self, number: int, repository: str = REPOSITORY, **changes: Any) -> None:
        """What a person does to an issue: it is updated now."""
        item = self.get(number, repository)
        item.update(changes, updated_at=stamp(self.now))
        if "state" in changes:
            item["closed_at"] = stamp(self.now) if changes["state"] == "closed" else None

    def comment(self, number: int, body: str, author: dict[str, Any] = ANN, repository: str = REPOSITORY):
        notes = self.comments.setdefault(f"{repository}#{number}", [])
        native = 5_000 + sum(map(len, self.comments.values()))
        at = stamp(self.now)
        html = f"https://github.com/{repository}/issues/{number}#issuecomment-{native}"
        notes.append(
            {
                "id": native,
                "node_id": f"IC_{native}",
                "url": f"https://api.github.com/repos/{repository}/issues/comments/{native}",
                "html_url": html,
                "issue_url": f"https://api.github.com/repos/{repository}/issues/{number}",
                "body": body,
                "user": author,
                "created_at": at,
                "updated_at": at,
                "author_association": "MEMBER",
            }
        )
        self.change(number, repository, comments=len(notes))
        return notes[-1]

    def _answer(self, request: Request) -> Reply:
        path = request.path.removeprefix(self.prefix)
        if not request.path.startswith(self.prefix):
            return _error(404, "Not Found")
        place = [request.method, *path.strip("/").split("/")]
        if place[1] == "app":
            return self._as_app(request, place)
        if request.headers.get("authorization") not in {f"Bearer {token}" for token in (*self.minted, TOKEN)}:
            return _error(401, "Bad credentials")
        match place:
            case ["GET", "user"]:
                return self._user()
            case ["GET", "search", "issues"]:
                return self._search(request)
            case ["GET", "repositories", number]:
                return self._repository(next(new for n, new in self.renamed.values() if n == int(number)))
            case [_, "repos", owner, name, *_] if (old := f"{owner}/{name}".lower()) in self.renamed:
                to = "/".join([*path.strip("/").split("/")[3:]])
                host, target = request.headers["host"], self.renamed[old][0]
                url = f"http://{host}{self.prefix}/repositories/{target}" + (f"/{to}" if to else "")
                return Reply(301, {"message": "Moved Permanently", "url": url}, {"Location": url})
            case [_, "repos", owner, name, *rest] if f"{owner}/{name}".lower() in self.issues:
                return self._in_repository(request, f"{owner}/{name}".lower(), rest)
        return _error(404, "Not Found")

    def _in_repository(self, request: Request, repository: str, rest: list[str]) -> Reply:
        match [request.method, *rest]:
            case ["GET"]:
                return self._repository(repository)
            case ["GET", "issues"]:
                return self._list(request, repository)
            case ["PATCH", "issues", "comments", native] if native.isdigit():
                return self._edit(int(native), request)
            case [_, "issues", number, *part] if number.isdigit():
                found = [item for item in self.issues[repository] if item["number"] == int(number)]
                if not found:
                    return _error(404, "Not Found")
                return self._of_issue(request, f"{repository}#{number}", found[0], part)
        return _error(404, "Not Found")

    def _of_issue(self, request: Request, key: str, item: dict[str, Any], part: list[str]) -> Reply:
        match [request.method, *part]:
            case ["GET"]:
                return Reply(200, item)
            case ["GET", "comments"]:
                return self._paged(request, self.comments.get(key, []))
            case ["GET", "timeline"]:
                return self._paged(request, self.timelines.get(key, []))
            case ["GET", "labels"]:
                return self._paged(request, item["labels"])
            case ["POST", "comments"]:
                return self._add(request, key, item)
        return _error(404, "Not Found")

    def _add(self, request: Request, key: str, item: dict[str, Any]) -> Reply:
        body = request.json().get("body")
        if item["locked"]:
            return _error(403, "Unable to create comment because issue is locked.")
        if len(body) > self.longest:
            return self._too_long()
        repository, _, number = key.partition("#")
        author = APP_BOT if request.headers["authorization"] != f"Bearer {TOKEN}" else self.me
        return Reply(201, self.comment(int(number), body, author, repository))

    def _edit(self, native: int, request: Request) -> Reply:
        body = request.json().get("body")
        for note in (note for notes in self.comments.values() for note in notes):
            if note["id"] == native:
                if len(body) > self.longest:
                    return self._too_long()
                note.update(body=body, updated_at=stamp(self.now))
                return Reply(200, note)
        return _error(404, "Not Found")

    def _too_long(self) -> Reply:
        said = f"body is too long (maximum is {MAX_BODY_CHARS} characters)"
        errors = [{"resource": "IssueComment", "code": "custom", "field": "body", "message": said}]
        return Reply(422, {"message": "Validation Failed", "errors": errors, "documentation_url": "https://x.example"})

    def _list(self, request: Request, repository: str) -> Reply:
        query = {name: values[0] for name, values in request.query.items()}
        wanted = {name.lower() for name in query.get("labels", "").split(",") if name}
        found = [i for i in self.issues[repository] if not isinstance(i, dict) or self._fits(i, query, wanted)]
        by = f"{query.get('sort', 'created')}_at"
        found.sort(key=lambda i: str(i.get(by)) if isinstance(i, dict) else "", reverse=query.get("direction") != "asc")
        return self._paged(request, found)

    def _fits(self, item: dict[str, Any], query: dict[str, str], wanted: set[str]) -> bool:
        since, at = parse_time(query.get("since")), parse_time(item.get("updated_at"))
        if since and at and (at < since or (at == since and not self.since_inclusive)):
            return False
        return query.get("state", "open") in ("all", item.get("state")) and wanted <= labels_of(item)

    def _paged(self, request: Request, rows: list[Any]) -> Reply:
        page, size = (int(request.query.get(name, [d])[0]) for name, d in (("page", "1"), ("per_page", "30")))
        size = min(size, self.per_page_cap)
        last = max(1, -(-len(rows) // size))
        links = {"next": page + 1, "last": last} if page < last else {}
        url = f"https://api.github.com/repositories/1{request.path}"
        query = {name: values[0] for name, values in request.query.items()}
        shown = [
            f'<{url}?{urllib.parse.urlencode({**query, "page": number})}>; rel="{name}"'
            for name, number in links.items()
        ]
        return Reply(200, rows[(page - 1) * size : page * size], {"Link": ", ".join(shown)} if shown else {})

    def _search(self, request: Request) -> Reply:
        words = re.findall(r'(\w+):"?([^"\s]+)"?', request.query["q"][0])
        repositories = [value.lower() for name, value in words if name == "repo"]
        if unknown := [name for name in repositories if name not in self.issues]:
            errors = [{"message": f"{unknown[0]} cannot be searched", "resource": "Search", "field": "q", "code": "x"}]
            return Reply(422, {"message": "Validation Failed", "errors": errors, "documentation_url": ""})
        wanted = {value.lower() for name, value in words if name == "label"}
        states = {value for name, value in words if name == "is"} & {"open", "closed"}
        found = [i for name in repositories or self.issues for i in self.issues[name] if wanted <= labels_of(i)]
        found = [i for i in found if (not states or i["state"] in states)]
        found.sort(key=lambda i: i["created_at"], reverse=True)
        page, size = (int(request.query.get(name, [d])[0]) for name, d in (("page", "1"), ("per_page", "30")))
        if page * size > HITS_SHOWN:
            return Reply(422, {"message": "Only the first 1000 search results are available", "documentation_url": ""})
        items = [{**i, "score": 1.0} for i in found[(page - 1) * size : page * size]]
        body = {"total_count": len(found), "incomplete_results": self.incomplete, "items": items}
        return Reply(200, {**body, "search_type": "lexical"})

    def _repository(self, name: str) -> Reply:
        return Reply(200, {"id": 1, "full_name": name, "has_issues": True})

    def _user(self) -> Reply:
        more = dict.fromkeys(("name", "company", "blog", "location", "email", "hireable", "bio"), None)
        counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
        times = {"created_at": stamp(NOW), "updated_at": stamp(NOW), "user_view_type": "public"}
        return Reply(200, {**self.me, **more, "blog": "", **counts, **times})

    def _as_app(self, request: Request, place: list[str]) -> Reply:
        fault = self._jwt_fault(request.headers.get("authorization", ""))
        if fault:
            return _error(401, fault)
        match place:
            case ["GET", "app"]:
                times = {"created_at": stamp(NOW), "updated_at": stamp(NOW)}
                about = {"id": 5, "slug": "rootcaused", "node_id": "A_5", "owner": ANN, "name": "Root Cause"}
                urls = {"description": None, "external_url": "https://x.example", "html_url": "https://x.example"}
                return Reply(200, {**about, **urls, **times, "permissions": {"issues": "write"}, "events": []})
            case ["POST", "app", "installations", "42", "access_tokens"]:
                self.mints += 1
                self.minted.append(f"ghs_minted{self.mints}")
                return Reply(201, {"token": self.minted[-1], "expires_at": stamp(self.now + timedelta(hours=1))})
        return _error(404, "Not Found")

    def _jwt_fault(self, authorization: str) -> str:
        """As GitHub checks it: signature, issuer, times."""
        signed, _, signature = authorization.removeprefix("Bearer ").rpartition(".")
        if self.app is None or not rs256_fits(signed.encode(), unbase64(signature), *self.app):
            return "A JSON web token could not be decoded"
        claims = json.loads(unbase64(signed.split(".")[1]))
        now = self.now.timestamp()
        if claims["iss"] != "5" or claims["iat"] > now:
            return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
        if not now < claims["exp"] <= now + 600:
            return "'Expiration time' claim ('exp') is too far in the future"
        return ""


def rs256_fits(message: bytes, signature: bytes, modulus: int, exponent: int) -> bool:
    import hashlib

    size = (modulus.bit_length() + 7) // 8
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(message).digest()
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    return pow(int.from_bytes(signature, "big"), exponent, modulus) == int.from_bytes(padded, "big")


def unbase64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _error(status: int, message: str) -> Reply:
    return Reply(status, {"message": message, "documentation_url": "https://docs.github.com", "status": str(status)})
