"""Cases, tools and investigators for tests of the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent.alert import Alert, Severity
from agent.budget import RunLimits
from agent.case import Case
from agent.deadline import Deadline
from agent.events import EVENT, Event, Finished, ToolFinished
from agent.loop import Investigator
from agent.model import Model
from agent.report import Report
from agent.retrying import Patience
from agent.spill import MemoryResults, Results
from agent.tools import Tool, ToolResult

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
ALERT = Alert(
    source="pagerduty",
    id="P1",
    title="checkout: high error rate",
    service="checkout",
    severity=Severity.CRITICAL,
    labels={"namespace": "shop"},
    starts_at=datetime(2026, 12, 1, 9, 50, tzinfo=UTC),
)
LOG_LINE = "09:49:58 ERROR payments-db: FATAL: remaining connection slots are reserved"


def a_case(**changes: Any) -> Case:
    case = Case(alert=ALERT, investigation="inv-1", started_at=NOW, deadline=Deadline.after(60))
    return replace(case, **changes)


def a_tool(
    name: str = "loki_query",
    answer: Callable[[dict[str, Any]], ToolResult] | ToolResult | None = None,
    *,
    required: Sequence[str] = ("query",),
    asked: list[dict[str, Any]] | None = None,
    **properties: Any,
) -> Tool:
    """A tool that answers with one log line, or as told; `asked` collects its arguments."""

    def run(arguments: Any, _context: Any) -> ToolResult:
        if asked is not None:
            asked.append(dict(arguments))
        given = answer(dict(arguments)) if callable(answer) else answer
        return given or ToolResult.success(LOG_LINE, query=str(arguments.get("query", "")))

    shape = properties or {"query": {"type": "string"}, "limit": {"type": "integer"}}
    parameters = {"type": "object", "properties": shape, "required": list(required)}
    return Tool(name=name, description="Query logs.", parameters=parameters, run=run)


def an_investigator(
    *models: Model,
    tools: Iterable[Tool] = (),
    results: Results | None = None,
    patience: Patience | None = None,
    approvals: bool = False,
    **limits: Any,
) -> Investigator:
    return Investigator(
        models=models,
        tools=tuple(tools),
        limits=RunLimits(**limits),
        results=results or MemoryResults(),
        patience=patience or Patience(attempts=3, sleep=lambda _seconds: None, jitter=lambda: 0.0),
        clock=lambda: 0.0,
        now=lambda: NOW,
        approvals=approvals,
    )


def stored(events: Iterable[Event]) -> list[Event]:
    """The events as they come back from a store."""
    return [EVENT.validate_json(EVENT.dump_json(event)) for event in events]


def report_of(events: Sequence[Event]) -> Report:
    """The report of a run that ended as it must: with exactly one `Finished`, at the end."""
    last = events[-1]
    assert isinstance(last, Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1
    return last.report


def results_of(events: Iterable[Event]) -> list[ToolFinished]:
    return [event for event in events if isinstance(event, ToolFinished)]


def a_draft(quote: str = LOG_LINE, call: str = "T1", **changes: Any) -> dict[str, Any]:
    """What a model hands in: one cause, one decisive quote."""
    return {
        "finding": "root_cause",
        "headline": "checkout fails because payments-db has no connection slots left",
        "body": "The pool is exhausted [E1].",
        "impact": {"symptom_confirmed": True},
        "root_cause": {"component": "payments-db", "mechanism": "connections exhausted", "evidence": ["E1"]},
        "evidence": [{"id": "E1", "call": call, "kind": "log", "quote": quote, "weight": "decisive"}],
        **changes,
    }
