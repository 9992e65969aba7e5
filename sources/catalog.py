"""The kinds of source and sink there are: from configuration to adapter. A new kind is added here, by name."""

from __future__ import annotations

from typing import Annotated, assert_never

from pydantic import Field

from sources.configs import AlertmanagerConfig, FileSinkConfig, PagerDutyConfig, SlackSinkConfig, WebhookSinkConfig
from sources.github.config import GitHubConfig
from sources.jira.config import JiraConfig
from sources.opsgenie.config import JsmOpsConfig, OpsGenieConfig
from sources.port import Destination, Source

SourceConfig = Annotated[
    PagerDutyConfig | AlertmanagerConfig | OpsGenieConfig | JsmOpsConfig | JiraConfig | GitHubConfig,
    Field(discriminator="kind"),
]
SinkConfig = Annotated[WebhookSinkConfig | SlackSinkConfig | FileSinkConfig, Field(discriminator="kind")]


def build_source(name: str, config: SourceConfig) -> Source:
    """The source configured under `name`. Reaches no network; its libraries are loaded only now."""
    match config:
        case PagerDutyConfig():
            from sources.pagerduty.source import PagerDuty

            return PagerDuty(name, config)
        case AlertmanagerConfig():
            from sources.alertmanager.source import Alertmanager

            return Alertmanager(name, config)
        case OpsGenieConfig():
            from sources.opsgenie.source import OpsGenie

            return OpsGenie(name, config)
        case GitHubConfig():
            from sources.github.source import GitHub

            return GitHub(name, config)
        case JiraConfig():
            from sources.jira.source import Jira

            return Jira(name, config)
        case JsmOpsConfig():
            from sources.opsgenie.source import JsmOps

            return JsmOps(name, config)
        case _:
            assert_never(config)


def build_sink(name: str, config: SinkConfig) -> Destination:
    """The sink configured under `name`. Reaches neither network nor disk."""
    match config:
        case WebhookSinkConfig():
            from sources.sinks.webhook import WebhookSink

            return WebhookSink(name, config)
        case SlackSinkConfig():
            from sources.sinks.slack import SlackSink

            return SlackSink(name, config)
        case FileSinkConfig():
            from sources.sinks.file import FileSink

            return FileSink(name, config)
        case _:
            assert_never(config)
