"""The Slack-compatible sink."""

from __future__ import annotations

import json
import re

from sources.configs import SlackSinkConfig
from sources.sinks.slack import SlackSink
from tests.support.alerts import alert
from tests.support.destination_contract import SOON, DestinationContract
from tests.support.http_server import HttpServer, Reply
from tests.support.inertness import LIVE
from tests.support.reports import report


def sink(url: str) -> SlackSink:
    return SlackSink("chat", SlackSinkConfig(url=f"{url}/services/T1/B2/SECRET-PATH-123"))


class TestContract(DestinationContract):
    secrets = ("SECRET-PATH-123",)

    def make(self, url: str) -> SlackSink:
        return sink(url)

    def system(self):
        return lambda request: Reply(200, b"ok")

    def written(self, server: HttpServer) -> list[str]:
        """Slack has no way to tell a repeat: at least the text is the same."""
        return [request.body.decode() for request in server.requests]

    def assert_inert(self, server: HttpServer) -> None:
        message = server.requests[0].json()
        assert (message["unfurl_links"], message["unfurl_media"]) == (False, False)
        shown = [message["text"], *texts(message["blocks"])]
        for text in shown:
            outside_code = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            assert {name for name, live in LIVE.items() if live.search(outside_code)} == set()
        for text in (message["text"], *mrkdwn(message["blocks"])):
            assert not re.search(r"<[!@#]|<https?://evil", text)
        assert all(block["text"].get("verbatim") for block in message["blocks"] if block["type"] == "section")


def texts(blocks: list) -> list[str]:
    return [part["text"] for block in blocks for part in (block.get("elements") or [block["text"]])]


def mrkdwn(blocks: list) -> list[str]:
    parts = [part for block in blocks for part in (block.get("elements") or [block["text"]])]
    return [part["text"] for part in parts if part["type"] == "mrkdwn"]


def test_the_message_begins_with_the_headline_and_ends_with_the_marker() -> None:
    with HttpServer(lambda request: Reply(200, b"ok")) as server:
        sink(server.url).publish(alert(), report(), previous=None, deadline=SOON)
    blocks = server.requests[0].json()["blocks"]
    assert blocks[0]["type"] == "header"
    assert blocks[0]["text"]["text"].startswith("Likely cause: checkout answers 503")
    assert texts(blocks)[-1].endswith("rootcaused:v1:0123456789abcdef")
    assert "<https://grafana.example.org/explore?q=1|open>" in json.dumps(blocks)
