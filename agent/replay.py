"""A finished investigation run again from its journal, offline, against another model or prompt, and how it differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.events import Event, Finished, ToolFinished
from agent.plain import fold, shorten
from agent.report import Report
from agent.safeguards import call_key
from agent.spill import Results
from agent.tools import Arguments, JsonSchema, ResultStatus, Tool, ToolContext, ToolResult, compact_json

NOT_RECORDED = "Nothing was recorded for this call. What was recorded of {tool}: {calls}"
MAX_TOLD = 12
COLUMN_CHARS = 56


@dataclass(frozen=True, slots=True)
class Recording:
    """The calls of a journal by what they asked; `results` has the whole of what they gave, where it is still kept."""

    calls: Mapping[str, ToolFinished]
    results: Results | None = None

    @classmethod
    def of(cls, journal: Sequence[Event], results: Results | None = None) -> Recording:
        ran = (event for event in journal if isinstance(event, ToolFinished) and event.result_sha256)
        return cls({call_key(event.tool, event.params): event for event in ran}, results)

    def answer(self, tool: str, params: Arguments) -> ToolResult:
        call = self.calls.get(call_key(tool, params))
        if call is None:
            asked = [compact_json(other.params) for other in self.calls.values() if other.tool == tool]
            return ToolResult.failed(NOT_RECORDED.format(tool=tool, calls="; ".join(asked[:MAX_TOLD]) or "nothing"))
        kept = self.results.get(call.ref) if self.results else None
        body = kept if kept is not None else call.content.partition("\n\n")[2]
        return ToolResult(status=ResultStatus(call.status), data=body, query=call.query, url=call.url)

    def tools(self, known: Sequence[Tool] = ()) -> tuple[Tool, ...]:
        """Tools that answer from the recording: those given, else those that were called, as they were called."""
        if known:
            return tuple(_recorded(tool.name, tool.description, tool.parameters, self) for tool in known)
        names = dict.fromkeys(call.tool for call in self.calls.values())
        return tuple(_recorded(name, f"{name}, as it was recorded.", self._shape(name), self) for name in names)

    def _shape(self, name: str) -> JsonSchema:
        properties: dict[str, Any] = {}
        for call in self.calls.values():
            if call.tool == name:
                properties |= {key: {"type": _kind(value)} for key, value in call.params.items()}
        return {"type": "object", "properties": properties, "required": []}


def _recorded(name: str, description: str, parameters: JsonSchema, recording: Recording) -> Tool:
    def run(arguments: Arguments, _context: ToolContext) -> ToolResult:
        return recording.answer(name, arguments)

    return Tool(name=name, description=description, parameters=parameters, run=run)


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "string"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two runs side by side: what each said and cost, and which evidence both, or only one of them, found."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    shared: tuple[str, ...] = ()
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    changed: tuple[str, ...] = field(default=())

    def lines(self) -> Iterator[str]:
        """For a terminal: a mark, a name, and both columns."""
        for name, old in self.before.items():
            mark = "*" if name in self.changed else " "
            new = shorten(self.after[name], COLUMN_CHARS)
            yield f"{mark} {name:<13} {shorten(old, COLUMN_CHARS):<{COLUMN_CHARS}} {new}"
        for mark, quotes in (("=", self.shared), ("-", self.only_before), ("+", self.only_after)):
            yield from (f"{mark} evidence      {shorten(quote, 2 * COLUMN_CHARS)}" for quote in quotes)


def report_in(journal: Sequence[Event]) -> Report | None:
    return next((event.report for event in reversed(journal) if isinstance(event, Finished)), None)


def compared(before: Report, after: Report) -> Difference:
    old, new = _figures(before), _figures(after)
    first, second = _quotes(before), _quotes(after)
    return Difference(
        before=old,
        after=new,
        shared=tuple(quote for quote in first if quote in second),
        only_before=tuple(quote for quote in first if quote not in second),
        only_after=tuple(quote for quote in second if quote not in first),
        changed=tuple(name for name in old if old[name] != new[name]),
    )


def _figures(report: Report) -> dict[str, str]:
    run, cause = report.run, report.root_cause
    return {
        "model": run.model,
        "outcome": report.outcome.value,
        "confidence": report.confidence.level,
        "headline": report.headline,
        "component": cause.component if cause else "",
        "mechanism": cause.mechanism if cause else "",
        "stop": report.stop.value,
        "steps": str(run.steps),
        "tool calls": str(run.tool_calls),
        "tokens": str(run.tokens_in + run.tokens_out),
        "cost": "unknown" if run.cost_usd is None else f"${run.cost_usd:.4f}",
        "failed quotes": str(report.checks.quotes_failed),
    }


def _quotes(report: Report) -> list[str]:
    return list(dict.fromkeys(fold(item.quote) for item in report.evidence if item.verified))
