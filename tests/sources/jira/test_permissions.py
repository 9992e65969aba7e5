from __future__ import annotations

import base64
import json

import pytest

from agent.errors import Permanent, RootcausedError, Transient
from sources.jira.config import JiraConfig
from sources.jira.permissions import NEEDED, missing
from tests.support.http_server import HttpServer, Reply, Request

SECRET = "jira-secret-77"


def config(url: str) -> JiraConfig:
    return JiraConfig(url=url, email="bot@example.test", api_token=SECRET, projects="OPS")


def granting(*names: str) -> Reply:
    return Reply(200, {"permissions": {name: {"havePermission": name in names} for name in NEEDED}})


def test_an_account_that_may_do_all_lacks_nothing() -> None:
    with HttpServer(lambda request: granting(*NEEDED)) as server:
        assert missing(config(server.url), seconds=10) == ""
        asked = server.requests[0]
    assert asked.path == "/rest/api/2/mypermissions"
    assert asked.query["permissions"] == [",".join(NEEDED)]
    assert asked.headers["authorization"] == "Basic " + base64.b64encode(f"bot@example.test:{SECRET}".encode()).decode()


def test_what_the_account_lacks_is_told_in_words() -> None:
    with HttpServer(lambda request: granting("BROWSE_PROJECTS")) as server:
        assert missing(config(server.url), seconds=10) == (
            "the account may not add comments, edit its own comments in any project"
        )


@pytest.mark.parametrize(("status", "kind"), [(401, Permanent), (403, Permanent), (500, Transient), (503, Transient)])
def test_a_refusal_is_asked_once_and_tells_no_secret(status: int, kind: type[RootcausedError]) -> None:
    def refuse(request: Request) -> Reply:
        return Reply(status, {"errorMessages": [json.dumps(dict(request.headers))]})

    with HttpServer(refuse) as server, pytest.raises(kind) as caught:
        missing(config(server.url), seconds=10)
    assert len(server.requests) == 1
    assert SECRET not in str(caught.value)
    assert base64.b64encode(f"bot@example.test:{SECRET}".encode()).decode() not in str(caught.value)


def test_an_answer_of_another_shape_is_transient() -> None:
    with HttpServer(lambda request: Reply(200, {"nothing": 1})) as server, pytest.raises(Transient):
        missing(config(server.url), seconds=10)
