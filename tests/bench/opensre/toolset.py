"""A scenario's evidence as toolsets: objects as our Kubernetes tables, logs and events of the cloud as log lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agent.tools import Arguments, Tool, ToolContext, ToolResult
from tests.bench.opensre.scenarios import Scenario

TEXT = {"type": "string"}


def scenario_tools(scenario: Scenario) -> tuple[Tool, ...]:
    evidence = scenario.evidence
    acts: Sequence[tuple[str, tuple[str, ...], tuple[str, ...], Callable[[Arguments], str]]] = (
        ("kubernetes_get", ("kind", "namespace"), ("kind",), lambda given: _get(evidence, given)),
        ("kubernetes_describe", ("kind", "name", "namespace"), ("kind", "name"), lambda given: _story(evidence, given)),
        ("kubernetes_events", ("namespace",), (), lambda _given: _events(evidence)),
        ("kubernetes_logs", ("name", "namespace"), ("name",), lambda given: _pod_logs(evidence, given)),
        ("loki_query", ("query", "limit"), ("query",), lambda _given: "\n".join(_lines(evidence))),
        ("prometheus_query_range", ("query",), ("query",), lambda _given: "\n".join(_series(evidence))),
        ("prometheus_alerts", (), (), lambda _given: "\n".join(_monitors(evidence))),
    )
    return tuple(
        Tool(
            name=name,
            description=f"{name} of a made-up scenario.",
            parameters={"type": "object", "properties": dict.fromkeys(keys, TEXT), "required": list(required)},
            run=_runner(act),
        )
        for name, keys, required, act in acts
    )


def _runner(act: Callable[[Arguments], str]) -> Callable[[Arguments, ToolContext], ToolResult]:
    def run(arguments: Arguments, _context: ToolContext) -> ToolResult:
        text = act(arguments)
        return ToolResult.success(text) if text else ToolResult.no_data("nothing is recorded")

    return run


def _table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [list(headers), *([str(cell) or "-" for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(headers))]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join(lines) if rows else ""


def _get(evidence: Mapping[str, Any], given: Arguments) -> str:
    kind = str(given.get("kind", ""))
    if kind.startswith("po"):
        rows = [_pod_row(pod) for pod in _of(evidence, "eks_pods", "pods")]
        return _table(("NAME", "READY", "STATUS", "RESTARTS", "CREATED", "NODE"), rows)
    if kind.startswith("deploy"):
        deployments = _of(evidence, "eks_deployments", "deployments")
        rows = [[one["name"], f"{one['ready']}/{one['desired']}", one["available"]] for one in deployments]
        return _table(("NAME", "READY", "AVAILABLE"), rows)
    if kind.startswith("no"):
        nodes = _of(evidence, "eks_node_health", "nodes")
        rows = [[one["name"], "Ready" if one["ready"] == "True" else "NotReady", one["capacity_cpu"]] for one in nodes]
        return _table(("NAME", "STATUS", "CPU"), rows)
    return ""


def _pod_row(pod: Mapping[str, Any]) -> list[object]:
    containers = pod.get("containers") or []
    ready = sum(bool(one.get("ready")) for one in containers)
    waiting = next((one["state"].get("reason") for one in containers if one["state"].get("waiting")), "")
    restarts = sum(int(one.get("restart_count", 0)) for one in containers)
    node = pod.get("node_name", "")
    where = node if node != "unscheduled" else ""
    return [pod["name"], f"{ready}/{len(containers)}", waiting or pod["phase"], restarts, pod["start_time"], where]


def _story(evidence: Mapping[str, Any], given: Arguments) -> str:
    """As our own describe tells a pod."""
    pod = next((one for one in _of(evidence, "eks_pods", "pods") if one["name"] == given["name"]), None)
    if pod is None:
        return ""
    lines = [f"Pod {pod['namespace']}/{pod['name']}, created {pod['start_time']}"]
    for container in pod.get("containers") or []:
        state = container["state"]
        how = (
            f"waiting {state.get('reason', '')}" if state.get("waiting") else f"running since {state.get('started_at')}"
        )
        said = f": {state['message']}" if state.get("message") else ""
        lines.append(f"container {container['name']}: -")
        lines.append(f"  state: {how}{said}; ready {container['ready']}; restarts {container['restart_count']}")
    lines += [f"condition {one['type']}={one['status']} {one['message']}" for one in pod.get("conditions") or []]
    return "\n".join(lines)


def _events(evidence: Mapping[str, Any]) -> str:
    events = _of(evidence, "eks_events", "warning_events")
    keys = ("last_time", "type", "reason", "involved_object")
    rows = [
        [*(one[key] for key in keys), f"{one['count']} since {one['first_time']}", one["message"]] for one in events
    ]
    return _table(("LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"), rows)


def _pod_logs(evidence: Mapping[str, Any], given: Arguments) -> str:
    told = evidence.get("eks_pod_logs") or {}
    return str(told.get("logs", "")) if told.get("pod_name") == given["name"] else ""


def _lines(evidence: Mapping[str, Any]) -> Iterator[str]:
    for one in _of(evidence, "datadog_logs", "logs"):
        yield f'{one["timestamp"]} {{app="{one["service"]}",pod="{one["host"]}"}} {one["status"]} {one["message"]}'
    for one in _of(evidence, "aws_rds_events", "events"):
        yield f'{one["date"]} {{app="{one["source_identifier"]}"}} {one["message"]}'


def _series(evidence: Mapping[str, Any]) -> Iterator[str]:
    for one in _of(evidence, "aws_cloudwatch_metrics", "metric_data_results"):
        if values := one.get("values"):
            labels = ",".join(f'{pair["Name"]}="{pair["Value"]}"' for pair in one.get("dimensions", ()))
            shown = f"first={values[0]} last={values[-1]} min={min(values)} max={max(values)}"
            yield f"{one['metric_name']}{{{labels}}} {shown}"


def _monitors(evidence: Mapping[str, Any]) -> Iterator[str]:
    for one in _of(evidence, "datadog_monitors", "monitors"):
        yield f"{one['name']} ({one['overall_state']}): {one['query']}"


def _of(evidence: Mapping[str, Any], name: str, key: str) -> list[Any]:
    told = evidence.get(name) or {}
    return list(told.get(key) or []) if isinstance(told, dict) else []
