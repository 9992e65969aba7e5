"""Which of the tools on offer can answer what: found by the verb a name ends in and the parameters it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agent.model import ToolSchema

REPORT = "report"


class Act(StrEnum):
    """What a tool does, whatever its toolset is called."""

    GET = "get"
    DESCRIBE = "describe"
    EVENTS = "events"
    LOGS = "logs"
    TOP = "top"
    YAML = "yaml"
    QUERY = "query"
    QUERY_RANGE = "query_range"
    SERIES = "series"
    LABELS = "labels"
    RULES = "rules"
    ALERTS = "alerts"
    METADATA = "metadata"
    LOG_QUERY = "log_query"
    LOG_LABELS = "log_labels"
    DEPENDENCIES = "dependencies"  # who calls whom, as a mesh or tracing knows it
    SERVICE_STATUS = "service_status"  # of a system service on a node


KUBERNETES = frozenset({Act.GET, Act.DESCRIBE, Act.EVENTS, Act.LOGS, Act.TOP, Act.YAML})
METRICS = frozenset({Act.QUERY, Act.QUERY_RANGE, Act.SERIES, Act.LABELS, Act.RULES, Act.ALERTS, Act.METADATA})
LOG_STORE = frozenset({Act.LOG_QUERY, Act.LOG_LABELS})

_VERBS = (
    "service_status",
    "dependencies",
    "query_range",
    "describe",
    "events",
    "logs",
    "yaml",
    "query",
    "series",
    "labels",
    "rules",
    "alerts",
    "metadata",
    "get",
    "top",
)

# The names one parameter goes by in different toolsets, likeliest first.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "kind": ("kind", "resource", "resource_type", "type"),
    "name": ("name", "pod", "pod_name", "object", "resource_name", "service_name", "service"),
    "namespace": ("namespace", "ns"),
    "selector": ("selector", "label_selector", "labels"),
    "container": ("container", "container_name"),
    "previous": ("previous", "prev"),
    "filter": ("filter", "grep", "pattern", "search", "match", "contains"),
    "query": ("query", "expr", "promql", "logql", "expression"),
    "step": ("step", "interval"),
    "start": ("start", "since", "from"),
    "end": ("end", "until", "to"),
    "limit": ("limit", "max_lines"),
    "node": ("node", "node_name", "host"),
    "service": ("service", "service_name", "unit"),
    "match": ("match", "selector", "matchers", "metric", "query"),
}


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool of the request, with what its schema says of its parameters."""

    name: str
    act: Act
    properties: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]

    def fill(self, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments in this tool's own words; None where it needs something that is not known."""
        arguments: dict[str, Any] = {}
        for key, value in wanted.items():
            target = next((alias for alias in _ALIASES.get(key, (key,)) if alias in self.properties), None)
            if target is not None and target not in arguments and (fitted := self._fit(target, value)) is not None:
                arguments[target] = fitted
        return arguments if self.required <= arguments.keys() else None

    def takes(self, key: str) -> bool:
        return any(alias in self.properties for alias in _ALIASES.get(key, (key,)))

    def _fit(self, target: str, value: Any) -> Any:
        schema = self.properties[target]
        choices = schema.get("enum")
        if schema.get("type") == "array" and not isinstance(value, list):
            value = [value]
        if not choices or value in choices:
            return value
        return next((choice for choice in choices if str(choice).rstrip("s") == str(value).rstrip("s")), None)


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools by act. A second toolset of the same kind stands behind the one the alert points to."""

    offered: Mapping[Act, Offered]
    can_report: bool

    def get(self, act: Act) -> Offered | None:
        return self.offered.get(act)

    def has(self, acts: Iterable[Act]) -> bool:
        return any(act in self.offered for act in acts)


def split_name(tool: str) -> tuple[str, str]:
    """`prod-k8s_get` is the verb `get` of the toolset `prod-k8s`; an unknown verb is empty."""
    for verb in _VERBS:
        if tool == verb or tool.endswith(f"_{verb}"):
            return tool[: -len(verb)].rstrip("_"), verb
    return tool, ""


def acts_of(tools: Iterable[str]) -> dict[str, Act]:
    """The act of each tool. What a toolset is shows in its other verbs: one that has `query` and none of
    Prometheus' own is a log store, one with `get` or `describe` is Kubernetes."""
    split = {tool: split_name(tool) for tool in tools}
    verbs: dict[str, set[str]] = {}
    for toolset, verb in split.values():
        verbs.setdefault(toolset, set()).add(verb)
    acts: dict[str, Act] = {}
    for tool, (toolset, verb) in split.items():
        if not verb:
            continue
        store = not verbs[toolset] & {"query_range", "series", "rules", "alerts", "metadata"}
        act = {"query": Act.LOG_QUERY, "labels": Act.LOG_LABELS}.get(verb) if store else None
        acts[tool] = act or Act(verb)
    return acts


def open_toolbox(schemas: Sequence[ToolSchema], hint: str = "") -> Toolbox:
    """`hint` is text of the alert (its cluster); a toolset named in it comes before others of its kind."""
    functions = [schema.get("function") or {} for schema in schemas]
    names = [str(function.get("name", "")) for function in functions]
    acts = acts_of(names)
    offered: dict[Act, Offered] = {}
    favoured: dict[Act, bool] = {}
    for name, function in zip(names, functions, strict=True):
        if (act := acts.get(name)) is None:
            continue
        toolset = split_name(name)[0]
        named = bool(toolset) and toolset in hint
        if act in offered and not (named and not favoured[act]):
            continue
        parameters = function.get("parameters") or {}
        required = frozenset(parameters.get("required") or ())
        offered[act] = Offered(name, act, parameters.get("properties") or {}, required)
        favoured[act] = named
    return Toolbox(offered, REPORT in names)
