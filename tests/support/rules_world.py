"""A small made-up cluster for the rules analyst: recorded tool texts by call, and the loop that serves them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.deadline import Deadline
from agent.model import Message, ToolSchema
from agent.report import Draft
from agent.rules.analyst import RulesAnalyst
from agent.rules.observe import acts_in, observe
from agent.rules.scene import Scene
from agent.rules.subject import read_subject
from agent.rules.transcript import Reading
from agent.tools import ToolResult

TEXT = {"type": "string"}
NAMED = {"kind": TEXT, "name": TEXT, "namespace": TEXT}


def schema(name: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> ToolSchema:
    parameters = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def kubernetes(name: str = "kubernetes") -> list[ToolSchema]:
    logs = NAMED | {"selector": TEXT, "container": TEXT, "previous": {"type": "boolean"}, "grep": TEXT}
    return [
        schema(f"{name}_get", NAMED | {"selector": TEXT}, ["kind"]),
        schema(f"{name}_describe", NAMED, ["kind", "name"]),
        schema(f"{name}_events", NAMED | {"since": TEXT}),
        schema(f"{name}_logs", logs),
        schema(f"{name}_top", {"kind": {"type": "string", "enum": ["pods", "nodes"]}, "namespace": TEXT}),
        schema(f"{name}_yaml", NAMED, ["kind", "name"]),
    ]


def prometheus(name: str = "prometheus") -> list[ToolSchema]:
    window = {"start": TEXT, "end": TEXT}
    return [
        schema(f"{name}_query", {"query": TEXT, "time": TEXT}, ["query"]),
        schema(f"{name}_query_range", {"query": TEXT, **window, "step": TEXT}, ["query"]),
        schema(f"{name}_series", {"match": TEXT, **window}, ["match"]),
        schema(f"{name}_labels", {"label": TEXT, "match": TEXT, "search": TEXT, **window}),
        schema(f"{name}_rules", {"search": TEXT}),
        schema(f"{name}_alerts", {"search": TEXT}),
        schema(f"{name}_metadata", {"metric": TEXT}, ["metric"]),
    ]


def loki(name: str = "loki") -> list[ToolSchema]:
    return [
        schema(f"{name}_query", {"query": TEXT, "start": TEXT, "end": TEXT, "limit": {"type": "integer"}}, ["query"]),
        schema(f"{name}_labels", {"label": TEXT}),
    ]


REPORT = schema("report", {"finding": TEXT, "headline": TEXT})

ALERT: dict[str, Any] = {
    "source": "am",
    "id": "a1",
    "title": "KubePodNotReady",
    "severity": "critical",
    "labels": {"alertname": "KubePodNotReady", "namespace": "shop", "deployment": "basket"},
    "starts_at": "2026-03-01T10:00:00Z",
}


@dataclass(slots=True)
class World:
    """`answers` maps a pattern over `tool {arguments}` to the text that call gives; the first that fits wins.

    What no pattern fits has no data. `failing` is a pattern of calls that end in an error.
    """

    answers: Mapping[str, str]
    alert: Mapping[str, Any] = field(default_factory=lambda: ALERT)
    tools: Sequence[ToolSchema] = field(default_factory=lambda: [*kubernetes(), *prometheus(), *loki(), REPORT])
    failing: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    rounds: int = 0

    def __post_init__(self) -> None:
        alert = f"Investigate.\n<alert>\n{json.dumps(self.alert)}\n</alert>"
        self.messages = [{"role": "system", "content": "..."}, {"role": "user", "content": alert}]

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        call = f"{tool} {json.dumps(arguments, sort_keys=True)}"
        self.asked.append(call)
        for pattern, message in self.failing.items():
            if re.search(pattern, call):
                return ToolResult.failed(message)
        for pattern, text in self.answers.items():
            if re.search(pattern, call):
                return ToolResult.success(text.strip("\n"), query=f"ran {tool}")
        return ToolResult.no_data("nothing there")

    def tell(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> Message:
        """The tool message that answers one call."""
        content = self.answer(tool, arguments).to_model(f"T{len(self.asked)}")
        return {"role": "tool", "tool_call_id": call_id, "content": content}

    def investigate(self, analyst: RulesAnalyst | None = None) -> Draft:
        """Runs the analyst to its report."""
        analyst = analyst or RulesAnalyst()
        for self.rounds in range(1, 12):
            reply = analyst.reply(self.messages, self.tools, deadline=Deadline.never())
            self.messages.append(reply.message)
            for call in reply.calls:
                arguments = json.loads(call.arguments)
                if call.name == "report":
                    return Draft.model_validate(arguments)
                self.messages.append(self.tell(call.id, call.name, arguments))
        raise AssertionError("no report after 11 turns")

    def results(self) -> dict[str, str]:
        """Result text by reference, to look quotes up in."""
        told = (message["content"] for message in self.messages if message["role"] == "tool")
        return {content.split(" ", 1)[0]: content for content in told}


def scene_of(
    *told: tuple[str, Mapping[str, Any], str], alert: Mapping[str, Any] = ALERT, tools: Sequence[ToolSchema] = ()
) -> Scene:
    """A scene from results alone: each is the tool, its arguments, and the text it gave."""
    readings = [
        Reading(tool=tool, arguments=arguments, ref=f"T{number}", status="success", query="", body=text.strip("\n"))
        for number, (tool, arguments, text) in enumerate(told, start=1)
    ]
    names = [schema["function"]["name"] for schema in (tools or [*kubernetes(), *prometheus(), *loki()])]
    return Scene(read_subject(alert), observe(readings, acts_in(readings, names)), readings)


def pods(text: str) -> tuple[str, Mapping[str, Any], str]:
    return "kubernetes_get", {"kind": "pods", "namespace": "shop"}, text


def events(text: str) -> tuple[str, Mapping[str, Any], str]:
    return "kubernetes_events", {"namespace": "shop"}, text


def described(kind: str, name: str, text: str) -> tuple[str, Mapping[str, Any], str]:
    return "kubernetes_describe", {"kind": kind, "name": name, "namespace": "shop"}, text


def logs(pod: str, text: str) -> tuple[str, Mapping[str, Any], str]:
    return "kubernetes_logs", {"name": pod, "namespace": "shop"}, text


def listed(kind: str, text: str) -> tuple[str, Mapping[str, Any], str]:
    return "kubernetes_get", {"kind": kind, "namespace": "shop"}, text


def manifest(kind: str, name: str, text: str) -> tuple[str, Mapping[str, Any], str]:
    return "kubernetes_yaml", {"kind": kind, "name": name, "namespace": "shop"}, text


def reported(text: str) -> tuple[str, Mapping[str, Any], str]:
    """What monitoring says deviates."""
    return "prometheus_alerts", {}, text


def called(name: str, text: str) -> tuple[str, Mapping[str, Any], str]:
    return "mesh_dependencies", {"name": name}, text


def unit(node: str, service: str, text: str) -> tuple[str, Mapping[str, Any], str]:
    return "nodes_service_status", {"node": node, "service": service}, text


def measured(query: str, text: str) -> tuple[str, Mapping[str, Any], str]:
    return "prometheus_query_range", {"query": query}, text
