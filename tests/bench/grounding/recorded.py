"""One investigation of the rules analyst as it was recorded: what grounding gets to see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.budget import RunLimits
from agent.case import Case
from agent.core_tools import REPORT
from agent.deadline import Deadline
from agent.drafts import draft_of
from agent.events import Finished, ToolFinished
from agent.grounding import ground
from agent.ledger import Ledger
from agent.loop import Investigator
from agent.redaction import Redactor
from agent.report import Draft, Report, Stop
from agent.rules.analyst import RESULT_TOKENS, RulesAnalyst
from agent.spill import MemoryResults
from tests.bench.cloudopsbench.cases import RecordedCase
from tests.bench.cloudopsbench.toolset import recorded_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A draft with the calls and results it cites."""

    draft: Draft
    report: Report
    case: Case
    ledger: Ledger
    results: MemoryResults
    now: datetime

    def check(self, draft: Draft) -> Report:
        """What grounding makes of another draft about the same record."""
        return ground(
            draft,
            case=self.case,
            run=self.report.run,
            ledger=self.ledger,
            results=self.results,
            stop=Stop.ANSWERED,
            now=self.now,
        )


def record(recorded: RecordedCase) -> Recorded | None:
    """None where the analyst gave no cause."""
    started = (recorded.collected_at or datetime.now(UTC)) + timedelta(days=1)  # recordings leave the zone out
    results, ledger = MemoryResults(), Ledger()
    limits = RunLimits(result_tokens=RESULT_TOKENS, turn_tokens=RESULT_TOKENS * 10)
    investigator = Investigator(
        models=[RulesAnalyst()], tools=recorded_tools(recorded), limits=limits, results=results, now=lambda: started
    )
    case = Case(
        alert=recorded.alert(),
        investigation="bench",
        started_at=started,
        deadline=Deadline.after(60),
        redact=Redactor(()).redact,
    )
    draft: Draft | None = None
    for event in investigator.run(case):
        if isinstance(event, ToolFinished):
            if event.tool == REPORT:
                draft = draft_of(dict(event.params))
            else:
                ledger.add(event)
        elif isinstance(event, Finished) and draft is not None and draft.root_cause is not None:
            return Recorded(draft=draft, report=event.report, case=case, ledger=ledger, results=results, now=started)
    return None
