"""The tools the loop itself brings: hand in the report, read a long result on."""

from __future__ import annotations

from typing import Any

from agent.read_result import READ_RESULT, read_result_tool
from agent.spill import Results
from agent.tools import Tool, ToolResult

__all__ = ["READ_RESULT", "REPORT", "core_tools", "read_result_tool", "report_tool"]

REPORT = "report"
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
