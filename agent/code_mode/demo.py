"""Made-up tools with large, regular results, to try scripts with: a little shop and its logs."""

from __future__ import annotations

import time

from agent.tools import Arguments, Tool, ToolContext, ToolResult

SERVICES = ("cart", "checkout", "payment", "shipping")
PODS_EACH = 25
LOG_LINES = 2_000
BROKEN = "payment"


def demo_tools() -> tuple[Tool, ...]:
    """`demo_pods` (rows), `demo_logs` (text), `demo_slow` (takes its time)."""
    return (
        Tool(
            name="demo_pods",
            description="Pods with restarts and memory, as rows. Without a service, those of all.",
            parameters=_object(service={"type": "string", "enum": list(SERVICES)}),
            run=_pods,
        ),
        Tool(
            name="demo_logs",
            description="The last log lines of one pod, as text.",
            parameters=_object(("pod",), pod={"type": "string", "description": "as demo_pods names it"}),
            run=_logs,
        ),
        Tool(
            name="demo_slow",
            description="Waits, then answers.",
            parameters=_object(("seconds",), seconds={"type": "number"}),
            run=_slow,
        ),
    )


def _object(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _pods(arguments: Arguments, _context: ToolContext) -> ToolResult:
    wanted = arguments.get("service")
    rows = [
        {
            "name": f"{service}-{index}",
            "service": service,
            "restarts": 7 if service == BROKEN and index % 5 == 0 else 0,
            "memory_mb": 120 + (index * 37) % 90,
        }
        for service in SERVICES
        for index in range(PODS_EACH)
        if wanted in (None, service)
    ]
    lines = [f"{row['name']} restarts={row['restarts']} memory={row['memory_mb']}Mi" for row in rows]
    return ToolResult.success("\n".join(lines), value=rows)


def _logs(arguments: Arguments, _context: ToolContext) -> ToolResult:
    pod = str(arguments["pod"])
    service, _, number = pod.rpartition("-")
    if service not in SERVICES or not number.isdigit() or int(number) >= PODS_EACH:
        return ToolResult.no_data(f"there is no pod {pod!r}")
    broken = service == BROKEN and int(number) % 5 == 0
    lines = [
        f"2031-02-03T04:{line // 60 % 60:02}:{line % 60:02}Z "
        + ("ERROR connection pool exhausted (20 of 20 in use)" if broken and line % 97 == 0 else f"INFO served {line}")
        for line in range(LOG_LINES)
    ]
    return ToolResult.success("\n".join(lines))


def _slow(arguments: Arguments, context: ToolContext) -> ToolResult:
    seconds = min(float(arguments["seconds"]), context.deadline.remaining)
    time.sleep(max(0.0, seconds))
    return ToolResult.success(f"waited {seconds:g} s")
