"""A report as a message to a Slack-compatible incoming webhook."""

# ruff: noqa: ARG002  (the port hands over more than a sink that only writes needs)

from __future__ import annotations

from agent.alert import Alert
from agent.deadline import Deadline
from agent.http import Http, checked
from agent.report import Report
from sources.configs import SlackSinkConfig
from sources.port import Receipt, marker
from sources.render.slack import slack_blocks, slack_text
from sources.sinks.webhook import shown


class SlackSink:
    """Write only: a second report on the same alert is a second message."""

    def __init__(self, name: str, config: SlackSinkConfig) -> None:
        self.name = name
        self._hosts = config.link_hosts
        address = config.url.get_secret_value()
        self._http = Http(base_url=address, label=shown(address))

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """An incoming webhook can't read the channel."""
        return None

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Sent once. Raises `Transient` when the reply is lost; the message may then come twice, which Slack allows."""
        payload = {
            "text": slack_text(report),
            "blocks": slack_blocks(report, hosts=self._hosts),
            "unfurl_links": False,
            "unfurl_media": False,
        }
        checked("POST", self._http.request("POST", "", payload=payload, deadline=deadline))
        return Receipt(id=marker(report.run.investigation), investigation=report.run.investigation)
