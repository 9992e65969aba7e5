"""The generic webhook sink."""

from __future__ import annotations

from agent.report import Report
from sources.configs import WebhookSinkConfig
from sources.sinks.webhook import WebhookSink
from tests.support.alerts import alert
from tests.support.destination_contract import SOON, DestinationContract
from tests.support.http_server import HttpServer, Reply
from tests.support.inertness import assert_inert
from tests.support.reports import report

PATH = "/in/SECRET-PATH-123"


def sink(url: str) -> WebhookSink:
    config = WebhookSinkConfig(url=f"{url}{PATH}?key=SECRET-QUERY", bearer_token="sink-token-123")
    return WebhookSink("hook", config)


class TestContract(DestinationContract):
    secrets = ("sink-token-123", "SECRET-PATH-123", "SECRET-QUERY")

    def make(self, url: str) -> WebhookSink:
        return sink(url)

    def system(self):
        return lambda request: Reply(202, b"")

    def written(self, server: HttpServer) -> list[str]:
        """A receiver drops what has an id it knows."""
        return [request.headers["idempotency-key"] for request in server.requests]

    def assert_inert(self, server: HttpServer) -> None:
        assert_inert(server.requests[0].json()["text"], besides=COPYABLE)


# In a code block nothing reacts, and commands and quotes must be copied as they are.
COPYABLE = (
    "a mention",
    "a reference",
    "a closing keyword",
    "a slash command",
    "a link elsewhere",
    "an address that is linked by itself",
    "a script",
    "a forged marker",
)


def test_one_object_has_the_alert_the_report_and_the_text() -> None:
    with HttpServer(lambda request: Reply(200, b"ok")) as server:
        receipt = sink(server.url).publish(alert(), report(), previous=None, deadline=SOON)
    (request,) = server.requests
    sent = request.json()
    assert sent["id"] == request.headers["idempotency-key"] == receipt.id == "rootcaused:v1:0123456789abcdef"
    assert request.headers["authorization"] == "Bearer sink-token-123"
    assert (request.path, request.query) == (PATH, {"key": ["SECRET-QUERY"]})
    assert sent["alert"]["id"] == "Q1"
    assert "raw" not in sent["alert"]
    assert Report.model_validate(sent["report"]) == report()
    assert sent["text"].startswith("### Likely cause")
