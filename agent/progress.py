"""The state of a run: nothing but the fold of its events, so a resumed run stands where the interrupted one stood."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent.budget import Spent
from agent.core_tools import READ_RESULT, REPORT
from agent.events import (
    ApprovalAsked,
    Compacted,
    Decided,
    Event,
    Finished,
    LimitReached,
    ModelAnswered,
    ModelFailed,
    Nudged,
    Paused,
    Started,
    StepStarted,
    ToolFinished,
    ToolStarted,
)
from agent.finding import FIND_TOOLS
from agent.history import History
from agent.ledger import Ledger
from agent.model import ToolCall, Usage
from agent.report import Report, Stop
from agent.safeguards import RepeatGuard, call_key, calls_of, publishable, text_of
from agent.spill import BYTES_PER_TOKEN
from agent.tools import ResultStatus

NOTE = "[Earlier turns were left out to save room. Calls made so far; read_result gives their results:]\n{calls}"
SUMMARY = "[Notes on them; quote from results only]"


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for its result. `index` is its place in the turn, `ref` what its result is cited by."""

    ref: str
    index: int
    call: ToolCall


class Progress:
    """Changed by `apply` alone: live and on resume the same events lead to the same state."""

    def __init__(self, *, repeats: int, overhead_bytes: int = 0) -> None:
        self.history = History(overhead_bytes)
        self.guard = RepeatGuard(repeats)
        self.ledger = Ledger()
        self.usage = Usage()
        self.last_usage = Usage()
        self.step = 0  # the last step begun
        self.answered = 0  # the last step the model answered
        self.pending: list[Pending] = []
        self.turn: list[ToolFinished] = []  # results of the current turn so far
        self.turn_bytes = 0  # of these results
        self.reply: ModelAnswered | None = None  # an answer without calls that was not dealt with yet
        self.nudges = 0  # in a row
        self.fruitless = 0  # turns in a row in which no call ran
        self.overflows = 0  # in a row
        self.compacted_at = -1  # answers so far when the history was last made smaller
        self.failed_models: dict[str, str] = {}
        self.models: list[str] = []  # that answered, the last one last
        self.last_text = ""
        self.draft: dict[str, Any] | None = None
        self.repair_asked = False
        self.summary = ""  # of the turns that were left out
        self.limit: Stop | None = None
        self.last_notice = False  # the model was told that the next reply is the last
        self.last_answered = False
        self.report: Report | None = None
        self.begun: set[str] = set()  # refs of calls that may have run
        self.asked: set[str] = set()  # refs of calls that a person was asked about
        self.decisions: dict[str, Decided] = {}  # by ref; the first one holds
        self.found: list[str] = []  # queries of find_tools that found something
        self.call_ids: set[str] = set()  # of all turns: some servers count them from 0 in each
        self._refs = 0

    def replay(self, journal: Iterable[Event]) -> None:
        for event in journal:
            self.apply(event)

    @property
    def started(self) -> bool:
        return bool(self.history.messages)

    @property
    def spent(self) -> Spent:
        return Spent(steps=self.answered, usage=self.usage, last=self.last_usage, fruitless=self.fruitless)

    def apply(self, event: Event) -> None:  # noqa: C901  one case an event
        match event:
            case Started():
                if not self.started:  # a journal that was begun twice is one conversation
                    self.history.pin(event.messages)
            case StepStarted():
                self.step = event.step
            case ModelAnswered():
                self._answered(event)
            case ToolStarted():
                self.begun.add(event.ref)  # it may have run; what only reads is run again
            case ApprovalAsked():
                self.asked.add(event.ref)
            case Decided():
                self.decisions.setdefault(event.ref, event)
            case Paused():
                pass
            case ToolFinished():
                self._finished(event)
            case Nudged():
                self._nudged(event)
            case Compacted():
                self._compacted(event)
            case LimitReached():
                self.limit = Stop(event.limit)
            case ModelFailed():
                self.failed_models[event.model] = event.error
                self.history.hand_over()
                self.reply, self.nudges, self.overflows = None, 0, 0
            case Finished():
                self.report = event.report

    def _answered(self, event: ModelAnswered) -> None:
        self.history.counted(event.input_tokens)
        self.last_usage = _usage(event)
        self.usage = self.usage + self.last_usage
        self.answered = self.step = event.step
        self.last_answered = self.last_notice
        self.overflows = 0
        self.models = [*(name for name in self.models if name != event.model), event.model]
        calls = calls_of(event.message)
        text = text_of(event.message.get("content"))
        if publishable(text) and event.finish != "malformed":
            self.last_text = text
        # A reply with neither text nor calls is refused by some providers when it is sent back.
        if calls or (text and event.finish != "malformed"):
            self.history.add(event.message)
        self.reply = None if calls else event
        self.turn, self.turn_bytes = [], 0
        self.pending = [Pending(f"T{self._refs + n}", n - 1, call) for n, call in enumerate(calls, start=1)]
        self._refs += len(calls)
        self.call_ids.update(call.id for call in calls)

    def _finished(self, event: ToolFinished) -> None:
        if event.parent:  # made by a script: known to ledger and guard, not part of the conversation
            self.ledger.add(event)
            self._guarded(event)
            return
        self.pending = [pending for pending in self.pending if pending.ref != event.ref]
        self.turn.append(event)
        self.turn_bytes += len(event.content.encode())
        message = {"role": "tool", "tool_call_id": event.call_id, "name": event.tool, "content": event.content}
        self.history.add(message, ref=event.ref)
        if event.tool == REPORT:
            self.repair_asked = self.repair_asked or event.status == ResultStatus.ERROR
            self.draft = event.params if event.status == ResultStatus.SUCCESS else self.draft
        elif event.tool == FIND_TOOLS:
            self.found += [str(event.params.get("query", ""))] if event.status == ResultStatus.SUCCESS else []
        else:
            self.ledger.add(event)
        self._guarded(event)
        if not self.pending:
            self.nudges = 0
            ran = any(result.result_sha256 for result in self.turn)
            self.fruitless = 0 if ran else self.fruitless + 1

    def _guarded(self, event: ToolFinished) -> None:
        if event.result_sha256:  # it ran
            self.guard.note(call_key(event.tool, event.params), event.step, event.ref, event.result_sha256)

    def _compacted(self, event: Compacted) -> None:
        self.summary = event.summary or self.summary
        self.usage = self.usage + Usage(
            input_tokens=event.input_tokens, output_tokens=event.output_tokens, cost_usd=event.cost_usd
        )
        room = max(600, event.target_tokens * BYTES_PER_TOKEN // 4)
        note = NOTE.format(calls=self.ledger.told(room)) + (f"\n\n{SUMMARY}\n{self.summary}" if self.summary else "")
        self.history.compact(event.target_tokens, spare_last=event.reason == "near_window", note=note)
        self.compacted_at = self.answered
        self.guard.forget(READ_RESULT)
        self.overflows += event.reason == "overflow"

    def _nudged(self, event: Nudged) -> None:
        self.history.add(event.message)
        if event.reason == LAST_STEP:
            self.last_notice = True
        else:
            self.reply = None
            self.nudges += 1


LAST_STEP = "last_step"


def _usage(event: ModelAnswered) -> Usage:
    return Usage(
        input_tokens=event.input_tokens,
        cached_tokens=event.cached_tokens,
        output_tokens=event.output_tokens,
        reasoning_tokens=event.reasoning_tokens,
        cost_usd=event.cost_usd,
    )
