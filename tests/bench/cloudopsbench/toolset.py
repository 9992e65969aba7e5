"""The recorded tool calls of a case as toolsets: the names and parameters of ours, the answers from the recording."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.tools import Arguments, Tool, ToolContext, ToolResult
from tests.bench.cloudopsbench.cases import RecordedCase

TEXT = {"type": "string"}
PLURALS = {
    "endpoint": "endpoints",
    "ingress": "ingresses",
    "networkpolicy": "networkpolicies",
    "storageclass": "storageclasses",
    "resourcequotas": "resourcequota",
    "resourcequota": "resourcequota",
}
CLUSTER_WIDE = frozenset({"namespaces"})


@dataclass(frozen=True, slots=True)
class Recording:
    """Looks calls up by what they ask, in any order of the recorded arguments."""

    case: RecordedCase
    answers: Mapping[str, Any]

    @classmethod
    def of(cls, case: RecordedCase) -> Recording:
        return cls(case, {_key(*call.split(":", 1)): answer for call, answer in case.cache.items() if ":" in call})

    def ask(self, tool: str, **arguments: object) -> str:
        """The recorded text; empty where nothing was recorded."""
        answer = self.answers.get(_key(tool, json.dumps(arguments)))
        return answer if isinstance(answer, str) else json.dumps(answer, indent=1) if answer else ""


def _key(tool: str, arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except ValueError:
        return f"{tool} {arguments}"
    return f"{tool} {json.dumps(given, sort_keys=True)}" if isinstance(given, dict) else f"{tool} {arguments}"


def recorded_tools(case: RecordedCase) -> tuple[Tool, ...]:
    recording = Recording.of(case)
    acts: Sequence[tuple[str, tuple[str, ...], tuple[str, ...], Callable[[Recording, Arguments], str]]] = (
        ("kubernetes_get", ("kind", "name", "namespace", "selector"), ("kind",), _get),
        ("kubernetes_describe", ("kind", "name", "namespace"), ("kind", "name"), _describe),
        ("kubernetes_events", ("kind", "name", "namespace"), (), _events),
        ("kubernetes_logs", ("kind", "name", "namespace", "previous"), (), _logs),
        ("kubernetes_yaml", ("kind", "name", "namespace"), ("kind", "name"), _yaml),
        ("monitoring_alerts", ("search",), (), _alerts),
        ("mesh_dependencies", ("name",), ("name",), _dependencies),
        ("nodes_service_status", ("node", "service"), ("node", "service"), _service_status),
    )
    return tuple(
        Tool(
            name=name,
            description=f"{name} as it was recorded.",
            parameters={
                "type": "object",
                "properties": dict.fromkeys(keys, TEXT),
                "required": list(required),
            },
            run=_runner(recording, act),
        )
        for name, keys, required, act in acts
    )


def _runner(
    recording: Recording, act: Callable[[Recording, Arguments], str]
) -> Callable[[Arguments, ToolContext], ToolResult]:
    def run(arguments: Arguments, _context: ToolContext) -> ToolResult:
        text = act(recording, arguments).strip()
        return ToolResult.success(text) if text and text != "[]" else ToolResult.no_data("nothing was recorded")

    return run


def _get(recording: Recording, arguments: Arguments) -> str:
    kind, name, namespace = _kind(arguments), arguments.get("name", ""), _namespace(recording, arguments)
    for plural in (kind, kind.removesuffix("s")):  # recordings have both
        for wide in ({"output_wide": True}, {}):
            place = {} if kind in CLUSTER_WIDE else {"namespace": namespace}
            found = recording.ask("GetResources", resource_type=plural, name=name, **place, **wide)
            if found:
                return found
    return ""


def _describe(recording: Recording, arguments: Arguments) -> str:
    kind, name, namespace = _kind(arguments), arguments["name"], _namespace(recording, arguments)
    places: tuple[dict[str, str], ...] = ({"namespace": namespace}, {})
    for plural in (kind, kind.removesuffix("s")):
        for place in places:
            if found := recording.ask("DescribeResource", resource_type=plural, name=name, **place):
                return found
    return ""


def _events(recording: Recording, arguments: Arguments) -> str:
    namespace = _namespace(recording, arguments)
    return recording.ask("GetResources", resource_type="events", name="", namespace=namespace)


def _logs(recording: Recording, arguments: Arguments) -> str:
    """The recording has logs by service: a sample of each wording, with how often it came."""
    namespace, name = _namespace(recording, arguments), str(arguments.get("name", ""))
    services = (json.loads(key.partition(" ")[2]) for key in recording.answers if key.startswith("GetErrorLogs "))
    named = sorted({one["service_name"] for one in services}, key=len, reverse=True)
    service = next((one for one in named if name == one or name.startswith(f"{one}-")), "")
    found = recording.ask("GetErrorLogs", namespace=namespace, service_name=service)
    return "\n".join(_lines(found, previous=bool(arguments.get("previous"))))


def _lines(found: str, *, previous: bool) -> Iterator[str]:
    """One recording has patterns with a sample, the other lines by container; `previous` is the run before."""
    try:
        told = json.loads(found)
    except ValueError:
        yield found
        return
    for pattern in told.get("patterns", ()) if isinstance(told, dict) else ():
        yield f"{pattern['sample']} (x{pattern['count']})"
    for container, lines in told.items() if isinstance(told, dict) else ():
        if isinstance(lines, list) and container != "patterns" and (container == "previous") == previous:
            yield from (str(line) for line in lines)


def _yaml(recording: Recording, arguments: Arguments) -> str:
    """A workload's manifest was recorded with everything that is deployed together with it."""
    kind, name, namespace = _kind(arguments), arguments["name"], _namespace(recording, arguments)
    if kind in ("deployments", "statefulsets") and (found := recording.ask("GetAppYAML", app_name=name)):
        return found
    return recording.ask("GetResources", resource_type=kind, name=name, namespace=namespace, output_yaml=True)


def _alerts(recording: Recording, _arguments: Arguments) -> str:
    """One line an anomaly, the object first; or one a failing request."""
    told = recording.case.anomalies
    return "\n".join(line for one in told.get("alerts", ()) if isinstance(told, dict) for line in _anomaly(one))


def _anomaly(one: Mapping[str, Any]) -> Iterator[str]:
    kind = str(one.get("type", "service")).lower()
    yield from (f'{{{kind}="{one.get("name", "")}"}} {evidence}' for evidence in one.get("evidence", ()))
    if "raw_error" in one:
        yield (
            f'{{service="{one.get("entry_service", "")}"}} {one.get("request_method", "")} {one.get("url", "")}'
            f" failed {one.get('occurrences', '')} times: {one['raw_error']}"
        )


def _dependencies(recording: Recording, arguments: Arguments) -> str:
    return recording.ask("GetServiceDependencies", service_name=arguments["name"])


def _service_status(recording: Recording, arguments: Arguments) -> str:
    return recording.ask("CheckNodeServiceStatus", node_name=arguments["node"], service_name=arguments["service"])


def _kind(arguments: Arguments) -> str:
    kind = str(arguments.get("kind", "")).lower()
    return PLURALS.get(kind) or (kind if kind.endswith("s") else f"{kind}s")


def _namespace(recording: Recording, arguments: Arguments) -> str:
    return str(arguments.get("namespace") or recording.case.namespace)
