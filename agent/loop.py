"""The loop: from an alert to a report, one model turn at a time; running out and resuming are ordinary paths."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent import budget
from agent.approval import Decision, decided, pause
from agent.budget import RunLimits
from agent.calls import NOTHING_GIVEN, Calls
from agent.case import Case
from agent.core_tools import REPORT, core_tools
from agent.deadline import Clock
from agent.drafts import looks_like_draft
from agent.ending import RULES, Ending
from agent.errors import ContextOverflow, Permanent, Transient
from agent.events import (
    Compacted,
    Event,
    Finished,
    LimitReached,
    ModelAnswered,
    ModelFailed,
    Nudged,
    Paused,
    Started,
    StepStarted,
)
from agent.history import FULL, TARGET, schema_bytes
from agent.model import Model, Reply
from agent.progress import LAST_STEP, Progress
from agent.prompt import first_messages
from agent.report import Stop
from agent.retrying import Patience, Retrying
from agent.safeguards import flaw, legal_message, publishable, text_of
from agent.spill import Results
from agent.summary import summarise
from agent.toolbox import Toolbox, legal_name
from agent.tools import Tool, ToolResult

__all__ = ["Case", "Investigator", "utc_now"]

LAST_NOTICE = "This is your last reply: no more data can be fetched. Call `report` now with what the results show."
NUDGE = "{flaw} Go on with a tool call, or finish by calling `report`."
NOTHING_DECIDED: Mapping[str, Decision] = {}
SCHEMA_SHARE = 4  # a fourth of the window at most
MAX_OVERFLOWS = 3  # in a row; each halves what is sent


def utc_now() -> datetime:
    return datetime.now(UTC)


class Investigator:
    """Investigates one case at a time and holds no state between runs. `models` are asked in order of preference;
    `guides` are the instructions of the enabled toolsets by name. With `approvals` a restricted call pauses the run
    until a person has decided; without, it is refused."""

    def __init__(
        self,
        *,
        models: Sequence[Model],
        tools: Sequence[Tool],
        limits: RunLimits,
        results: Results,
        guides: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        clock: Clock = time.monotonic,
        now: Callable[[], datetime] = utc_now,
        approvals: bool = False,
    ) -> None:
        names = labels([model.name for model in models])
        self._models = [
            Retrying(model, patience or Patience(), limits.model_seconds, name)
            for model, name in zip(models, names, strict=True)
        ]
        self._toolbox = Toolbox((*core_tools(results), *tools), limits.schema_tokens)
        self._limits = limits
        self._guides = guides or {}
        self._clock, self._now = clock, now
        self._calls = Calls(
            toolbox=self._toolbox, results=results, limits=limits, clock=clock, now=now, approvals=approvals
        )
        self._ending = Ending(results=results, now=now)

    def with_tools(self, extra: Sequence[Tool]) -> Investigator:
        """A copy that offers tools of the caller's own as well: a call of one pauses the run until the caller gives
        its result. This instance does not change."""
        other = copy.copy(self)
        other._toolbox = self._toolbox.extended(extra)
        names = frozenset(legal_name(tool.name) for tool in extra) - frozenset(self._toolbox.names())
        other._calls = replace(self._calls, toolbox=other._toolbox, client=self._calls.client | names)
        return other

    def run(
        self,
        case: Case,
        journal: Sequence[Event] = (),
        *,
        decisions: Mapping[str, Decision] = NOTHING_DECIDED,
        client_results: Mapping[str, ToolResult] = NOTHING_GIVEN,
    ) -> Iterator[Event]:
        """The events of a run, each yielded right after it happened; the last is `Finished`, exactly once, or `Paused`.

        `journal` holds the events of an interrupted or paused run of the same case: what was paid for is not asked
        again. `decisions` and `client_results` answer what a paused run waits for, by call id.
        """
        yield from self._fitted()._run(case, journal, decisions, client_results)

    def _fitted(self) -> Investigator:
        """With tool schemas that leave room in the smallest window. Not decided when built: looking a window up may
        take seconds."""
        smallest = min((model.window_tokens for model in self._models), default=0)
        toolbox = self._toolbox.within(smallest // SCHEMA_SHARE)
        if toolbox is self._toolbox:
            return self
        other = copy.copy(self)
        other._toolbox, other._calls = toolbox, replace(self._calls, toolbox=toolbox)
        return other

    def _run(
        self,
        case: Case,
        journal: Sequence[Event],
        decisions: Mapping[str, Decision],
        client_results: Mapping[str, ToolResult],
    ) -> Iterator[Event]:
        progress = Progress(repeats=self._limits.repeats, overhead_bytes=schema_bytes(self._toolbox.schemas))
        progress.replay(journal)
        reserve = min(self._limits.answer_seconds, case.deadline.remaining / 5)
        for decision in decided(self._calls.waiting(progress, client_results), decisions):
            progress.apply(decision)
            yield decision
        while True:
            for event in self._advance(case, progress, reserve, client_results):
                progress.apply(event)
                yield event
                if isinstance(event, Finished | Paused):
                    return

    def _advance(
        self, case: Case, progress: Progress, reserve: float, given: Mapping[str, ToolResult]
    ) -> Iterator[Event]:
        """What comes next from here: always at least one event."""
        model = self._model(progress)
        if progress.report is not None:  # the journal was complete
            yield Finished(report=progress.report)
        elif not progress.started:
            yield self._start(case)
        elif progress.pending:
            yield from self._answer(case, progress, model, given)
        elif progress.draft is not None:
            yield self._finish(case, progress, progress.limit or Stop.ANSWERED)
        elif progress.reply is not None:
            yield self._judge(case, progress, progress.reply)
        elif model is None:
            yield self._finish(case, progress, progress.limit or Stop.MODEL_FAILED)
        elif over := self._over(case, progress):
            yield from self._end(case, progress, over)
        elif limit := self._last_step(case, progress, reserve):
            yield limit
        else:
            yield from self._ask(case, progress, model)

    def _answer(
        self, case: Case, progress: Progress, model: Model | None, given: Mapping[str, ToolResult]
    ) -> Iterator[Event]:
        """The results of a turn, or a pause where some of its calls wait for somebody; then none of it is run yet."""
        if waiting := self._calls.waiting(progress, given):
            yield from pause(waiting, progress, self._calls.client.__contains__)
            return
        window = model.window_tokens if model else 0
        accept = lambda draft: self._ending.accept(progress, draft)  # noqa: E731
        yield from self._calls.answer(case, progress, accept, window, given)

    def _start(self, case: Case) -> Event:
        window = min((model.window_tokens for model in self._models), default=32_000)
        messages = first_messages(case, self._guides, now=self._now(), window_tokens=window)
        names = [model.name for model in self._models]
        return Started(at=self._now(), model=names[0] if names else "", messages=messages)

    def _model(self, progress: Progress) -> Model | None:
        return next((model for model in self._models if model.name not in progress.failed_models), None)

    def _over(self, case: Case, progress: Progress) -> Stop | None:
        """The limit that ends the run without another model call."""
        if progress.last_answered:
            return progress.limit
        return budget.exhausted(self._limits, progress.spent, case.deadline)

    def _end(self, case: Case, progress: Progress, over: Stop) -> Iterator[Event]:
        """Out of budget without an answer: the rules cost nothing, so they have the last word if they are at hand."""
        rules = next((model for model in self._models if model.name == RULES), None)
        if rules is None or progress.models[-1:] == [RULES] or RULES in progress.failed_models:
            yield self._finish(case, progress, over)
        elif progress.limit is None:
            yield LimitReached(limit=over.value)
        else:
            yield from self._ask(case, progress, rules)

    def _last_step(self, case: Case, progress: Progress, reserve: float) -> Event | None:
        """Near a limit: say so once, then tell the model that its next reply is the last."""
        if progress.limit is None:
            tokens = progress.history.tokens
            limit = budget.near(self._limits, progress.spent, tokens, case.deadline, reserve)
            return LimitReached(limit=limit.value) if limit else None
        if progress.last_notice:
            return None
        return Nudged(step=progress.step, reason=LAST_STEP, message={"role": "user", "content": LAST_NOTICE})

    def _ask(self, case: Case, progress: Progress, model: Model) -> Iterator[Event]:
        """One model call. At the last step only `report` is left of the tools."""
        tokens, window = progress.history.tokens, model.window_tokens
        if tokens > window * FULL and progress.compacted_at != progress.answered:
            yield self._make_room(case, progress, model)
            return
        if progress.step == progress.answered:
            yield StepStarted(step=progress.answered + 1)
        tools = self._toolbox.schemas_of(REPORT) if progress.limit else self._toolbox.offered(progress.found)
        begun = self._clock()
        try:
            reply = model.reply(list(progress.history.messages), tools, deadline=case.deadline)
        except ContextOverflow as error:
            yield self._overflow(progress, model, error)
        except (Transient, Permanent) as error:
            yield ModelFailed(step=progress.step, model=model.name, error=case.redact(str(error))[:500])
        else:
            yield _answered(progress.step, model, reply, self._clock() - begun, progress.call_ids)

    def _make_room(self, case: Case, progress: Progress, model: Model) -> Event:
        """Near the window: old results are cleared; where whole turns must go, the model is asked to sum them up."""
        compacted = _compacted(progress, "near_window", int(model.window_tokens * TARGET))
        left_out = progress.history.left_out(compacted.target_tokens)
        if not left_out or progress.limit is not None or model.name == RULES:
            return compacted
        room = int(model.window_tokens * TARGET)
        summary, usage = summarise(model, left_out, room_tokens=room, deadline=case.deadline)
        spent = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost_usd": usage.cost_usd}
        return compacted.model_copy(update={"summary": case.redact(summary), "model": model.name, **spent})

    def _overflow(self, progress: Progress, model: Model, error: ContextOverflow) -> Event:
        if progress.overflows >= MAX_OVERFLOWS:
            return ModelFailed(step=progress.step, model=model.name, error=str(error)[:500])
        return _compacted(progress, "overflow", min(model.window_tokens, progress.history.tokens) // 2)

    def _judge(self, case: Case, progress: Progress, reply: ModelAnswered) -> Event:
        """A reply without calls: an answer, or something to ask about again, a few times."""
        text = text_of(reply.message.get("content"))
        names = self._toolbox.names()
        fault = "" if looks_like_draft(text) and reply.finish != "malformed" else flaw(text, reply.finish, names)
        if not fault or (progress.nudges >= self._limits.nudges and publishable(text)):  # a cut answer is one
            return self._finish(case, progress, progress.limit or Stop.ANSWERED, text)
        if progress.nudges < self._limits.nudges and not progress.last_answered:
            message = {"role": "user", "content": NUDGE.format(flaw=fault)}
            return Nudged(step=progress.step, reason=fault, message=message)
        return ModelFailed(step=progress.step, model=reply.model, error=f"no usable answer: {fault}")

    def _finish(self, case: Case, progress: Progress, stop: Stop, text: str = "") -> Finished:
        return Finished(report=self._ending.report(case, progress, stop, text or progress.last_text))


def labels(names: Sequence[str]) -> list[str]:
    """The names, told apart: one model at two addresses is two models; the second may work where the first fails."""
    return [
        name if names[:at].count(name) == 0 else f"{name} ({names[:at].count(name) + 1})"
        for at, name in enumerate(names)
    ]


def _compacted(progress: Progress, reason: Any, target_tokens: int) -> Compacted:
    return Compacted(
        step=progress.step, reason=reason, before_tokens=progress.history.tokens, target_tokens=target_tokens
    )


def _answered(step: int, model: Model, reply: Reply, seconds: float, taken: Collection[str]) -> ModelAnswered:
    usage = reply.usage
    return ModelAnswered(
        step=step,
        model=model.name,
        message=legal_message(reply, step, taken),
        finish=reply.finish,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=usage.cost_usd,
        seconds=round(seconds, 3),
    )
