"""The model's own to-do list. It keeps no state: the model sends the whole list, and reads it back in order."""

from __future__ import annotations

import json
from typing import Any

from agent.deadline import Deadline
from agent.errors import ToolError
from agent.tools import Arguments, Health, Tool, ToolContext, ToolResult, Toolset
from toolsets.configs import PlanConfig

MAX_STEPS = 30
MAX_TITLE_CHARS = 200
MAX_FINDING_CHARS = 500
MARKS = {"pending": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}

_STEP = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "string", "enum": list(MARKS)},
        "finding": {"type": "string"},
    },
    "required": ["title", "status"],
}
_PARAMETERS = {
    "type": "object",
    "properties": {"steps": {"type": "array", "items": _STEP}},
    "required": ["steps"],
}


def build(name: str, config: PlanConfig) -> Toolset:  # noqa: ARG001 - every toolset is built with its configuration
    """One tool, named as the toolset is."""
    tool = Tool(
        name=name,
        description="Your to-do list: send all steps each time, with what each found",
        parameters=_PARAMETERS,
        run=write,
        core=True,
    )
    return Toolset(name=name, tools=(tool,), check=_check)


def write(arguments: Arguments, context: ToolContext) -> ToolResult:  # noqa: ARG001 - the port's signature
    """The list as it will be read. A step that is only text is pending; an unknown status is too."""
    try:
        steps = [_step(one) for one in _steps(arguments.get("steps"))]
    except ToolError as error:
        return ToolResult.failed(str(error))
    left = sum(step["status"] in ("pending", "doing") for step in steps)
    lines = [_line(index, step) for index, step in enumerate(steps, 1)]
    return ToolResult.success("\n".join([*lines, f"{left} of {len(steps)} left"]), value=steps)


def _check(deadline: Deadline) -> Health:  # noqa: ARG001 - the port's signature
    return Health.ok()


def _steps(value: Any) -> list[Any]:
    if isinstance(value, str):  # some models send the list as JSON in a string
        try:
            value = json.loads(value)
        except ValueError:
            value = [line for line in value.splitlines() if line.strip()]
    if not isinstance(value, list) or not value:
        raise ToolError('steps must be a list: [{"title": "...", "status": "pending"}]')
    if len(value) > MAX_STEPS:
        raise ToolError(f"{len(value)} steps are too many: at most {MAX_STEPS}; merge or drop some")
    return value


def _step(one: Any) -> dict[str, str]:
    fields = one if isinstance(one, dict) else {"title": one}
    title = _short(fields.get("title"), MAX_TITLE_CHARS)
    if not title:
        raise ToolError("every step needs a title")
    status = str(fields.get("status") or "pending").strip().lower()
    step = {"title": title, "status": status if status in MARKS else "pending"}
    if finding := _short(fields.get("finding"), MAX_FINDING_CHARS):
        step["finding"] = finding
    return step


def _short(value: Any, limit: int) -> str:
    text = " ".join(str(value if value is not None else "").split())
    return text if len(text) <= limit else f"{text[:limit]}…"


def _line(index: int, step: dict[str, str]) -> str:
    found = f": {step['finding']}" if "finding" in step else ""
    return f"{MARKS[step['status']]} {index}. {step['title']}{found}"
