"""The tools the loop itself brings: hand in the report, read a long result on."""

from __future__ import annotations

from typing import Any

from agent.errors import ToolError
from agent.spill import Results
from agent.tools import Arguments, Tool, ToolContext, ToolResult

REPORT = "report"
READ_RESULT = "read_result"
MAX_LINES = 200
MAX_LINE_CHARS = 2_000
_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_IDS = {"type": "array", "items": _TEXT, "description": "evidence ids, e.g. E1"}
_TIME = {"type": "string", "description": "ISO 8601, UTC"}


def core_tools(results: Results) -> tuple[Tool, ...]:
    return report_tool(), read_result_tool(results)


def report_tool() -> Tool:
    """The loop takes the arguments of this call for the answer; `run` is never called by it."""
    return Tool(
        name=REPORT,
        description=(
            "Finish: hand in the root-cause analysis. Every claim cites evidence ids; every evidence names the call"
            " (T1, T2, ...) and quotes its result verbatim (<= 300 characters). Quotes are compared with the recorded"
            " results by code; claims without matching evidence are dropped. 'inconclusive' is a good answer when the"
            " data does not show the cause."
        ),
        parameters=_REPORT_SCHEMA,
        run=lambda _arguments, _context: ToolResult.success("Report received."),
        core=True,
    )


def read_result_tool(results: Results) -> Tool:
    def run(arguments: Arguments, _context: ToolContext) -> ToolResult:
        ref = str(arguments["ref"]).strip().upper()
        text = results.get(ref)
        if text is None:
            raise ToolError(f"There is no stored result {ref!r}; refs look like T3.")
        return _read(text, ref, arguments)

    return Tool(
        name=READ_RESULT,
        description=(
            "Read an earlier result again or further: lines that hold a text (grep), or a range of lines."
            " Costs nothing at the data source."
        ),
        parameters={
            "type": "object",
            "properties": {
                "ref": {"type": "string", "description": "of the call, e.g. T3"},
                "grep": {"type": "string", "description": "plain text, case ignored; a|b for either"},
                "context": {"type": "integer", "description": "lines around each match (default 0)"},
                "start": {"type": "integer", "description": "first line, from 1; negative counts from the end"},
                "lines": {"type": "integer", "description": f"how many (default 50, at most {MAX_LINES})"},
            },
            "required": ["ref"],
        },
        run=run,
        core=True,
    )


def _read(text: str, ref: str, arguments: Arguments) -> ToolResult:
    lines = text.splitlines()
    if grep := str(arguments.get("grep") or ""):
        numbers = _matching(lines, grep, min(20, max(0, arguments.get("context") or 0)))
        what = f"{ref}: grep {grep!r}"
        if not numbers:
            return ToolResult.no_data(f"{what}: no line of {len(lines)} matches.", query=what)
    else:
        start = int(arguments.get("start") or 1)
        numbers = list(range(max(0, start - 1 if start > 0 else len(lines) + start), len(lines)))
        what = f"{ref}: lines from {start}"
        if not numbers:
            return ToolResult.no_data(f"{what}: the result has {len(lines)} lines.", query=what)
    wanted = min(MAX_LINES, max(1, arguments.get("lines") or 50))
    shown = [f"{number + 1}: {lines[number][:MAX_LINE_CHARS]}" for number in numbers[:wanted]]
    more = f"\n[{len(numbers) - wanted} more of {len(lines)} lines]" if len(numbers) > wanted else ""
    return ToolResult.success("\n".join(shown) + more, query=what)


def _matching(lines: list[str], grep: str, context: int) -> list[int]:
    """Line numbers. Plain text, not a pattern: a hostile pattern could hold the whole process."""
    words = [word.lower() for word in grep.split("|") if word.strip()]
    hits = [number for number, line in enumerate(lines) if any(word in line.lower() for word in words)]
    around = {near for hit in hits for near in range(hit - context, hit + context + 1) if 0 <= near < len(lines)}
    return sorted(around)


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_REPORT_SCHEMA: dict[str, Any] = _object(
    ("finding", "headline", "evidence"),
    finding=_one_of("root_cause", "not_an_issue", "inconclusive"),
    headline={"type": "string", "description": "<= 140 characters: component did X because Y, since T"},
    body={"type": "string", "description": "the explanation in a few sentences, Markdown, evidence ids in brackets"},
    impact=_object(
        (),
        symptom_confirmed={"type": "boolean", "description": "a result shows the alert's symptom itself"},
        affected=_TEXT,
        user_facing=_one_of("yes", "no", "unknown"),
        scope=_TEXT,
        since=_TIME,
        until=_TIME,
    ),
    root_cause=_object(
        ("component", "mechanism", "evidence"),
        component=_TEXT,
        mechanism=_TEXT,
        category=_TEXT,
        trigger=_one_of("change", "load", "dependency", "capacity", "config", "code", "external", "unknown"),
        onset_at=_TIME,
        evidence=_IDS,
    ),
    causal_chain=_array(
        _object(("from", "to", "evidence"), **{"from": _TEXT, "to": _TEXT}, relation=_TEXT, evidence=_IDS)
    ),
    evidence=_array(
        _object(
            ("id", "call", "quote"),
            id={"type": "string", "description": "E1, E2, ..."},
            call={"type": "string", "description": "T1, T2, ..."},
            kind=_one_of("log", "metric", "event", "object", "change", "trace", "doc"),
            quote={"type": "string", "description": "verbatim from the result of that call"},
            weight=_one_of("decisive", "supporting", "context", "contradicting"),
        )
    ),
    ruled_out=_array(_object(("hypothesis", "why", "evidence"), hypothesis=_TEXT, why=_TEXT, evidence=_IDS)),
    not_checked=_array(_object(("what",), what=_TEXT, reason=_one_of("no_access", "timeout", "no_data", "budget"))),
    timeline=_array(_object(("at", "what", "evidence"), at=_TIME, what=_TEXT, evidence=_IDS)),
    recent_changes=_array(
        _object(("what",), at=_TIME, what=_TEXT, url=_TEXT, relation=_one_of("suspected", "unrelated", "unknown"))
    ),
    next_steps=_array(
        _object(
            ("title",),
            title=_TEXT,
            why=_TEXT,
            command=_TEXT,
            kind=_one_of("diagnostic", "mitigation", "fix"),
            mutating=_FLAG,
            risk=_TEXT,
            undo=_TEXT,
            precondition_checked=_FLAG,
        )
    ),
)
