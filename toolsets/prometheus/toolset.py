"""The seven Prometheus tools: what each is called, takes and tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.errors import ToolError
from agent.tools import Arguments, Tool, ToolContext, ToolResult, Toolset
from toolsets.arguments import only_known
from toolsets.configs import PrometheusConfig
from toolsets.connection import connect, public_url
from toolsets.prometheus.api import PrometheusApi
from toolsets.prometheus.catalogue import Catalogue
from toolsets.prometheus.queries import Queries
from toolsets.prometheus.rules import Rules
from toolsets.timerange import Now, utc_now

INSTRUCTIONS = (
    "Times are RFC 3339, epoch, now, -1h or alert-10m; left out, the window is from an hour before the alert to now, "
    "at most six hours after it. Leave step out unless a finer one matters. Aggregate before looking at single series."
)
TEXT = {"type": "string"}
START = {"type": "string", "description": "e.g. 2026-12-01T02:00:00Z, -2h, alert-30m"}
INSTANT = {"type": "string", "description": "default: end of the alert's window"}
STEP = {"type": "string", "description": "e.g. 1m; default: fits"}

Run = Callable[[Arguments, ToolContext], ToolResult]


def build(name: str, config: PrometheusConfig, *, now: Now = utc_now) -> Toolset:
    """The tools of one server, named `{name}_query` and so on. Reaches no network."""
    api = PrometheusApi(connect(config))
    base = public_url(config.external_url or config.url)
    queries = Queries(api, base=base, max_points=config.max_points, now=now)
    catalogue = Catalogue(api, now=now)
    rules = Rules(api, base=base)
    window = {"start": START, "end": TEXT}

    def tool(verb: str, description: str, run: Run, properties: dict[str, Any], required: tuple[str, ...] = ()) -> Tool:
        return _tool(f"{name}_{verb}", description, run, properties, required)

    tools = (
        tool("query", "PromQL at one time", queries.query, {"query": TEXT, "time": INSTANT}, ("query",)),
        tool(
            "query_range",
            "PromQL over a window; gives statistics and change points of each series, not raw points",
            queries.query_range,
            {"query": TEXT, **window, "step": STEP},
            ("query",),
        ),
        tool("series", "Label sets a selector matches", catalogue.series, {"match": TEXT, **window}, ("match",)),
        tool(
            "labels",
            "Label names, or the values of one label (__name__: metric names)",
            catalogue.labels,
            {"label": TEXT, "match": {"type": "string", "description": "selector"}, "search": TEXT, **window},
        ),
        tool("rules", "Alerting and recording rules: expression, state, errors", rules.rules, {"search": TEXT}),
        tool("alerts", "Pending and firing alerts", rules.alerts, {"search": TEXT}),
        tool("metadata", "Type and help of metrics by name or part", catalogue.metadata, {"metric": TEXT}, ("metric",)),
    )
    return Toolset(name=name, tools=tools, check=queries.check, instructions=INSTRUCTIONS)


def _tool(name: str, description: str, run: Run, properties: dict[str, Any], required: tuple[str, ...]) -> Tool:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)

    def checked(arguments: Arguments, context: ToolContext) -> ToolResult:
        try:
            return run(only_known(arguments, schema), context)
        except ToolError as error:
            return ToolResult.failed(str(error))

    return Tool(name=name, description=description, parameters=schema, run=checked)
