"""A report as one JSON object to any HTTP endpoint."""

# ruff: noqa: ARG002  (the port hands over more than a sink that only writes needs)

from __future__ import annotations

import urllib.parse

from agent.alert import Alert
from agent.deadline import Deadline
from agent.http import Http, checked
from agent.report import Report
from sources.configs import WebhookSinkConfig
from sources.port import Receipt, marker
from sources.render.markdown import markdown


class WebhookSink:
    """POST `{"id", "alert", "report", "text"}`; `id`, also in `Idempotency-Key`, tells the receiver a repeat."""

    def __init__(self, name: str, config: WebhookSinkConfig) -> None:
        self.name = name
        self._hosts = config.link_hosts
        token = config.bearer_token
        self._http = Http(
            base_url=config.url.get_secret_value(),
            headers={"Authorization": f"Bearer {token.get_secret_value()}"} if token else {},
            verify=str(config.ca_file) if config.ca_file else True,
            label=shown(config.url.get_secret_value()),
        )

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """Nothing can be read back: the receiver knows a repeat by its id."""
        return None

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Sent once. Raises `Transient` when the reply is lost; the same id comes with the next try."""
        identity = marker(report.run.investigation)
        payload = {
            "id": identity,
            "alert": alert.model_dump(mode="json", exclude={"raw"}),
            "report": report.model_dump(mode="json"),
            "text": markdown(report, hosts=self._hosts),
        }
        key = {"Idempotency-Key": identity}
        checked("POST", self._http.request("POST", "", payload=payload, headers=key, deadline=deadline))
        return Receipt(id=identity, investigation=report.run.investigation)


def shown(url: str) -> str:
    """The address as errors may show it: paths and queries of webhooks are secrets."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/..."
