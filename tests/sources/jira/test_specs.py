"""Our requests to Jira Cloud, and the replies of our stand-in, against the vendor's own description."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.deadline import Deadline
from agent.errors import Permanent
from tests.support.alerts import alert
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.jira_api import JiraApiFake, jira
from tests.support.openapi import Spec
from tests.support.reports import report
from tests.support.shared import needs_shared, shared_file

SOON = Deadline.never()
Exchange = list[tuple[Request, Reply]]


def spec() -> Spec:
    return Spec(shared_file("specs/jira/swagger-v3.v3.json"))


def everything_jira_is_asked() -> Exchange:
    """A poll of several pages, a sweep, reads, a first comment, its edit, its forms when refused, its withdrawal."""
    exchanged: Exchange = []
    api = JiraApiFake(projects={"OPS": "software", "HELP": "service_desk"})
    for _ in range(150):
        api.add("HELP")
    api.add("HELP", native="1")

    def note(request: Request, reply: Reply) -> Reply:
        exchanged.append((request, Reply(reply.status, json.loads(json.dumps(reply.body or {})))))
        return reply

    api.after = note
    with HttpServer(api) as server:
        source = jira(server.url, projects=("HELP",), jql="summary ~ down", label_fields={"x": "customfield_1"})
        list(source.poll("2031-02-03T11:00:00Z", deadline=SOON))
        list(source.search("project = HELP ORDER BY created DESC", limit=5, deadline=SOON))
        source.fetch("HELP-1", deadline=SOON)
        api.say("1", "restarting")
        api.changelog["1"] = [{"id": "1", "created": "2031-02-03T18:00:00.000+0700", "items": [{"field": "status"}]}]
        source.related(alert(id="1"), deadline=SOON)
        source.find(alert(id="1"), deadline=SOON)
        receipt = source.publish(alert(id="1"), report(), previous=None, deadline=SOON)
        source.publish(alert(id="1"), report(headline="again"), previous=receipt, deadline=SOON)
        api.refuse_documents = 1
        source.publish(alert(id="1"), report(), previous=None, deadline=SOON)
        api.ignore_internal = True
        with pytest.raises(Permanent):
            source.publish(alert(id="1"), report(), previous=None, deadline=SOON)
    return exchanged


@needs_shared
def test_jira_would_take_every_request() -> None:
    described, exchanged = spec(), everything_jira_is_asked()
    cloud = [request for request, _ in exchanged if request.path.startswith("/rest/api/3/")]
    assert {request.path for request, _ in exchanged} - {request.path for request in cloud} == {
        "/rest/api/2/serverInfo"
    }
    assert {(r.method, r.path.split("/")[4]) for r in cloud} == {
        ("POST", "search"), ("POST", "jql"), ("GET", "myself"), ("GET", "issue"), ("POST", "issue"), ("PUT", "issue"),
        ("DELETE", "issue"),
    }  # fmt: skip
    faults = {f"{r.method} {r.path}": described.request_faults(r) for r in cloud}
    assert {place: found for place, found in faults.items() if found} == {}


@needs_shared
def test_our_jira_answers_like_jira() -> None:
    described = spec()
    found = []
    for request, reply in everything_jira_is_asked():
        if request.path.startswith("/rest/api/3/") and reply.status in (200, 201):
            found += [f"{request.method} {request.path}: {fault}" for fault in described.reply_faults(request, reply)]
    assert found == []


def request(method: str, path: str, body: Any = None, **query: list[str]) -> Request:
    headers = {"content-type": "application/json"}
    return Request(method, f"/rest/api/3{path}", query, headers, json.dumps(body).encode())


@needs_shared
@pytest.mark.parametrize(("planted", "fault"), [
    (request("POST", "/search/jql", {"jql": "x", "startAt": 0}), "startAt"),
    (request("POST", "/search/jql", {"jql": "x", "fields": None}), "None"),
    (request("POST", "/search/jql", {"jql": "x", "maxResults": "50"}), "integer"),
    (request("POST", "/jql/parse", {"queries": "x"}, validation=["strict"]), "array"),
    (request("POST", "/jql/parse", {"queries": ["x"]}), "query validation is missing"),
    (request("GET", "/issue/1/comment", orderBy=["updated"]), "none of"),
    (request("GET", "/issue/1/comments"), "not in the description"),
    (request("POST", "/issue/1/comment", {"body": {}, "properties": [{"name": "x"}]}), "Additional properties"),
])  # fmt: skip
def test_the_check_of_requests_refuses_planted_faults(planted: Request, fault: str) -> None:
    assert fault in str(spec().request_faults(planted))


@needs_shared
@pytest.mark.parametrize("planted", [
    {"issues": None}, {"issues": [{"id": 1}]}, {"issues": [], "total": 3}, {"issues": [], "isLast": "yes"},
])  # fmt: skip
def test_the_check_of_replies_refuses_planted_faults(planted: dict[str, Any]) -> None:
    assert spec().reply_faults(request("POST", "/search/jql", {}), Reply(200, planted))
