"""Calls of the Prometheus tools against the stand-in, at a fixed time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from agent.alert import Alert
from agent.deadline import Deadline
from agent.tools import ToolContext, ToolResult, Toolset
from tests.support.prom_server import ApiServer
from toolsets.configs import PrometheusConfig
from toolsets.prometheus import build

NOW = datetime(2026, 12, 1, 2, 0, 0, tzinfo=UTC)
FIRED = NOW - timedelta(minutes=30)
QUERY, RANGE, CONFIG = "/api/v1/query", "/api/v1/query_range", "/api/v1/status/config"
NAMES = "/api/v1/label/__name__/values"
SECRET = "hunter2-secret"  # made up


def toolset(server: ApiServer, **config: Any) -> Toolset:
    return build("prometheus", PrometheusConfig(url=server.url, **config), now=lambda: NOW)


def call(
    tools: Toolset, verb: str, *, seconds: float = 30, starts_at: datetime | None = FIRED, **arguments: Any
) -> ToolResult:
    alert = Alert(source="am", id="1", title="t", starts_at=starts_at, labels={"alertname": "Ours"})
    tool = next(tool for tool in tools.tools if tool.name == f"{tools.name}_{verb}")
    return tool.run(arguments, ToolContext(deadline=Deadline.after(seconds), alert=alert))
