"""How a run ends: from the last answer, or from its absence, to the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agent.case import Case
from agent.drafts import draft_of, draft_of_text
from agent.grounding import ground, problems
from agent.progress import Progress
from agent.report import Draft, NotChecked, Report, Run, Stop
from agent.spill import Results
from agent.tools import ToolResult

CODE_TOOL = "run_python"
RULES = "rules"
REPAIR = (
    "The report was not accepted, because its citations don't match the recorded results:\n{problems}\n"
    "Call `report` once more: quote verbatim from the result you name, or leave the claim out."
)
_WHY = {
    Stop.ANSWERED: "the model gave no conclusion",
    Stop.STEP_LIMIT: "the step limit was reached",
    Stop.TOKEN_LIMIT: "the token limit was reached",
    Stop.TIME_LIMIT: "the time limit was reached",
    Stop.COST_LIMIT: "the cost limit was reached",
    Stop.MODEL_FAILED: "no model could answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Accepts a handed-in report and makes the final one; what it makes depends on the recorded run alone."""

    results: Results
    now: Callable[[], datetime]

    def accept(self, progress: Progress, given: dict[str, Any]) -> ToolResult:
        """The answer to a `report` call: once per run the model is asked to repair citations that don't hold."""
        if not progress.repair_asked and progress.limit is None:
            found = problems(draft_of(given), progress.ledger, self.results)
            if found:
                return ToolResult.failed(REPAIR.format(problems="\n".join(f"- {line}" for line in found[:20])))
        return ToolResult.success("Report received.")

    def report(self, case: Case, progress: Progress, stop: Stop, text: str = "") -> Report:
        """The report from what was handed in, else from `text`, else from the bare record."""
        now = self.now()
        if progress.draft is not None:
            draft = draft_of(progress.draft)
        elif text:
            draft = draft_of_text(text)
        else:
            draft = _nothing(progress, stop)
        run = _run(case, progress, (now - case.started_at).total_seconds())
        return ground(draft, case=case, run=run, ledger=progress.ledger, results=self.results, stop=stop, now=now)


def _nothing(progress: Progress, stop: Stop) -> Draft:
    """What can be said where no model said anything: why, and what was looked at."""
    looked = [
        f"- {call.ref} {call.tool} {call.status}" + (f": `{call.query[:160]}`" if call.query else "")
        for call in progress.ledger
    ]
    failures = [f"- {model}: {error.removeprefix(f'{model}: ')}" for model, error in progress.failed_models.items()]
    parts = [f"No conclusion: {_WHY[stop]}."]
    parts += ["What was looked at:\n" + "\n".join(looked[:50])] if looked else []
    parts += ["Models that failed:\n" + "\n".join(failures)] if failures else []
    return Draft(
        headline=f"Could not investigate to an end: {_WHY[stop]}",
        body="\n\n".join(parts),
        not_checked=(NotChecked(what="the cause of this alert", reason="budget"),) if stop is not Stop.ANSWERED else (),
    )


def _run(case: Case, progress: Progress, seconds: float) -> Run:
    usage = progress.usage
    return Run(
        investigation=case.investigation,
        generation=case.generation,
        attempt=case.attempt,
        started_at=case.started_at,
        duration_s=round(max(0.0, seconds), 1),
        model=", ".join(progress.models),
        steps=progress.answered,
        tool_calls=len(progress.ledger),
        tokens_in=usage.input_tokens,
        tokens_cached=usage.cached_tokens,
        tokens_out=usage.output_tokens,
        cost_usd=None if usage.cost_usd is None else round(usage.cost_usd, 6),
        mode=_mode(progress),
    )


def _mode(progress: Progress) -> Literal["rules", "tools", "code", "mixed"]:
    if progress.models == [RULES]:
        return "rules"
    code = [call.tool == CODE_TOOL for call in progress.ledger if not call.parent]
    if RULES in progress.models or (any(code) and not all(code)):
        return "mixed"
    return "code" if any(code) else "tools"
