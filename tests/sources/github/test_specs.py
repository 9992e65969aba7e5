"""Our requests, and the replies of our stand-in, against GitHub's own descriptions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.deadline import Deadline
from sources.github.config import GitHubConfig
from sources.github.source import GitHub
from tests.support import rsa_key
from tests.support.alerts import alert
from tests.support.github_api import ANN, NOW, TOKEN, GitHubApiFake, issue, label
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.openapi import Spec
from tests.support.reports import report
from tests.support.shared import needs_shared, shared_file

SOON = Deadline.never()
SHOP = "acme/shop"
SPECS = {"api.github.com": "", "ghes-3.19": "/api/v3"}


def spec(name: str) -> Spec:
    return Spec(shared_file(f"specs/github/{name}.issues-subset.json"), prefix=SPECS[name])


def event(kind: str, **more: Any) -> dict[str, Any]:
    url = "https://api.github.com/repos/acme/shop/issues/events/1"
    fixed = {"id": 1, "node_id": "E_1", "url": url, "actor": ANN, "commit_id": None, "commit_url": None}
    return {**fixed, "event": kind, "created_at": "2031-02-03T11:00:00Z", "performed_via_github_app": None, **more}


def everything_asked(prefix: str, app: bool) -> list[tuple[Request, Reply]]:
    """A poll of many pages, a sweep, reads, a first comment and its edit, refusals."""
    exchanged: list[tuple[Request, Reply]] = []
    api = GitHubApiFake(app=(rsa_key.MODULUS, rsa_key.EXPONENT), prefix=prefix, per_page_cap=3)
    api.issues = {SHOP: [issue(n + 1, labels=["alert", "service:checkout"]) for n in range(8)]}
    api.get(1)["labels"] = [label("alert", "wakes somebody")]
    api.comment(1, "restarted")
    api.timelines["acme/shop#1"] = [event("labeled", label={"name": "alert", "color": "d73a4a"}), event("closed")] * 4

    def note(request: Request, reply: Reply) -> Reply:
        exchanged.append((request, reply))
        return reply

    api.after = note
    credentials: dict[str, Any] = {"app_id": 5, "installation_id": 42, "private_key": rsa_key.PKCS1}
    with HttpServer(api) as server:
        config = GitHubConfig(
            url=f"{server.url}{prefix}",
            repositories=[SHOP],
            labels=["alert"],
            search="label:alert",
            **(credentials if app else {"token": TOKEN}),
        )
        github = GitHub("gh", config, wall=NOW.timestamp, sleep=lambda seconds: None)
        pages = list(github.poll("", deadline=SOON))
        list(github.poll(pages[-1].cursor, deadline=SOON))
        list(github.search("label:alert is:closed", limit=5, deadline=SOON))
        ours = alert(source="gh", id="acme/shop#1")
        assert github.fetch(ours.id, deadline=SOON)
        assert github.fetch("acme/shop#99", deadline=SOON) is None
        github.related(ours, deadline=SOON)
        github.find(ours, deadline=SOON)
        receipt = github.publish(ours, report(), previous=None, deadline=SOON)
        github.publish(ours, report(headline="again"), previous=receipt, deadline=SOON)
    return exchanged


ASKED = {
    "GET /repos/acme/shop", "GET /repos/acme/shop/issues", "GET /repos/acme/shop/issues/1",
    "GET /repos/acme/shop/issues/99", "GET /repos/acme/shop/issues/1/comments", "GET /search/issues",
    "GET /repos/acme/shop/issues/1/labels", "GET /repos/acme/shop/issues/1/timeline",
    "POST /repos/acme/shop/issues/1/comments", "PATCH /repos/acme/shop/issues/comments/5001",
}  # fmt: skip
AS_APP = {"GET /app", "POST /app/installations/42/access_tokens"}


@needs_shared
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("app", [False, True], ids=["token", "app"])
def test_github_would_take_every_request(name: str, app: bool) -> None:
    described = spec(name)
    exchanged = everything_asked(SPECS[name], app)
    asked = {f"{request.method} {request.path.removeprefix(SPECS[name])}" for request, _ in exchanged}
    assert asked == ASKED | (AS_APP if app else {"GET /user"})
    assert {f"{r.method} {r.path}": f for r, _ in exchanged if (f := described.request_faults(r))} == {}


@needs_shared
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("app", [False, True], ids=["token", "app"])
def test_our_github_answers_like_github(name: str, app: bool) -> None:
    described = spec(name)
    faults = {
        f"{r.method} {r.path} {a.status}": found
        for r, a in everything_asked(SPECS[name], app)
        if (r.path.removeprefix(SPECS[name]), a.status) != ("/repos/acme/shop", 200)  # the fake's is only what we read
        if (found := described.reply_faults(r, a))
    }
    assert faults == {}


def request(method: str = "GET", path: str = "/repos/acme/shop/issues", body: Any = None, **query: str) -> Request:
    asked = {name: [value] for name, value in query.items()}
    return Request(method=method, path=path, query=asked, headers={}, body=json.dumps(body).encode())


@needs_shared
@pytest.mark.parametrize(("planted", "fault"), [
    (request(state="opened"), "none of"), (request(sort="title"), "none of"), (request(per_page="x"), "not integer"),
    (request(label="x"), "unknown"), (request(path="/repos/acme/shop/issue"), "not in the description"),
    (request(path="/search/issues"), "query q is missing"),
    (request("POST", "/repos/acme/shop/issues/1/comments", {}), "'body' is a required property"),
    (request("PATCH", "/repos/acme/shop/issues/comments/1", {"body": 3}), "is not of type 'string'"),
])  # fmt: skip
def test_the_check_of_requests_refuses_planted_faults(planted: Request, fault: str) -> None:
    assert fault in str(spec("api.github.com").request_faults(planted))


@needs_shared
@pytest.mark.parametrize("planted", [
    {}, [{}], [{**issue(1), "number": "1"}], [{**issue(1), "title": None}], [{**issue(1), "user": "ann"}],
])  # fmt: skip
def test_the_check_of_replies_refuses_planted_faults(planted: Any) -> None:
    assert spec("api.github.com").reply_faults(request(), Reply(200, planted))
