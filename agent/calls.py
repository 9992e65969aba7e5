"""The tool calls of one assistant turn: each is answered exactly once, in call order, whatever happens."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any

from agent import bounded
from agent.approval import Asked, as_client_result, refusal
from agent.arguments import read
from agent.budget import RunLimits
from agent.case import Case
from agent.core_tools import REPORT
from agent.deadline import Clock, Deadline
from agent.errors import RootcausedError, ToolError
from agent.events import Event, ToolFinished, ToolStarted
from agent.plain import plain
from agent.progress import Pending, Progress
from agent.safeguards import call_key
from agent.spill import BYTES_PER_TOKEN, Results, digest, storable
from agent.subcalls import RecordedCalls
from agent.toolbox import Toolbox
from agent.tools import ResultStatus, Tool, ToolContext, ToolResult

GRACE_SECONDS = 0.2  # for a tool that keeps its deadline to say so itself
MIN_RESULT_TOKENS = 100

Told = SimpleQueue[Event | None]
Given = Mapping[str, ToolResult]
NOTHING_GIVEN: Given = {}
Accept = Callable[[dict[str, Any]], ToolResult]  # looks at a handed-in report


@dataclass(frozen=True, slots=True)
class Planned:
    """A call ready to run, or `refused`. A call that asks the same as another of its turn is the `twin` of that ref."""

    pending: Pending
    tool: str
    params: dict[str, Any]
    run: Callable[[], ToolResult] | None = None
    seconds: float = 0.0
    close: Callable[[], None] = lambda: None  # its own calls of other tools are over
    refused: str = ""
    twin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    toolbox: Toolbox
    results: Results
    limits: RunLimits
    clock: Clock
    now: Callable[[], datetime]
    approvals: bool = False  # whether somebody can be asked; else restricted calls are refused
    client: frozenset[str] = frozenset()  # tools that the caller runs

    def waiting(self, progress: Progress, given: Given) -> list[Asked]:
        """The calls of the turn that a person or the caller has to answer before any of it is run."""
        found = []
        for pending in progress.pending:
            read_call = self._read(progress, pending)
            if isinstance(read_call, Asked) and self._waits(progress, read_call, given):
                found.append(read_call)
        return found

    def _waits(self, progress: Progress, asked: Asked, given: Given) -> bool:
        if asked.tool.name in self.client:
            return asked.pending.call.id not in given
        return asked.tool.restricted and self.approvals and asked.pending.ref not in progress.decisions

    def answer(
        self, case: Case, progress: Progress, accept: Accept, window_tokens: int, given: Given = NOTHING_GIVEN
    ) -> Iterator[Event]:
        """Run what is pending, some at a time; the events of a call that ran are ready to be stored at once.

        `given` are results from outside by call id, of the tools that the caller runs.
        """
        told: Told = SimpleQueue()
        planned = self._plan(case, progress, accept, told, given)
        step = progress.step
        for plan in planned:
            yield ToolStarted(
                step=step, ref=plan.pending.ref, call_id=plan.pending.call.id, tool=plan.tool, params=plan.params
            )
        gave: dict[str, ToolResult] = {done.ref: self._again(done) for done in progress.turn}
        for first in range(0, len(planned), self.limits.parallel_calls):
            batch = planned[first : first + self.limits.parallel_calls]
            begun = self.clock()
            deadlines = {plan.pending.ref: case.deadline.within(plan.seconds) for plan in batch}
            running = {
                plan.pending.ref: bounded.start(plan.run, f"tool-{plan.tool}")
                for plan in batch
                if plan.run is not None and plan.tool != REPORT
            }
            for plan in batch:
                ref = plan.pending.ref
                if ref in running:
                    yield from _told(told, running[ref], deadlines[ref])
                    gave[ref] = _outcome(running[ref], plan.tool, deadlines[ref])
                    plan.close()
                elif plan.run is not None:  # a report is looked at by our own code, also when the time is up
                    gave[ref] = plan.run()
                elif plan.twin:
                    gave[ref] = gave[plan.twin]
                else:
                    gave[ref] = ToolResult.failed(plan.refused)
                room = self._room(progress, window_tokens)
                ran = plan.run is not None or bool(plan.twin)
                yield self._finished(case, plan, gave[ref], step=step, ran=ran, room=room, seconds=self.clock() - begun)

    def _plan(self, case: Case, progress: Progress, accept: Accept, told: Told, given: Given) -> list[Planned]:
        first: dict[str, str] = {
            call_key(done.tool, done.params): done.ref for done in progress.turn if done.result_sha256
        }
        planned: list[Planned] = []
        for pending in progress.pending:
            plan = self._plan_one(case, progress, pending, accept, told, given)
            key = call_key(plan.tool, plan.params)
            if plan.run is not None and key in first:
                plan = Planned(pending, plan.tool, plan.params, twin=first[key])
            elif plan.run is not None:
                first[key] = pending.ref
            planned.append(plan)
        return planned

    def _read(self, progress: Progress, pending: Pending) -> Asked | Planned:
        """The call as it would run, or why it does not, whatever anybody decides."""
        name = pending.call.name
        tool = self.toolbox.get(name)
        if tool is None:
            return Planned(pending, name, {}, refused=self.toolbox.unknown(name))
        try:
            params = read(pending.call.arguments, _lenient(tool))
        except ToolError as error:
            return Planned(pending, name, {}, refused=str(error))
        if reason := self._refusal(progress, pending, tool, params):
            return Planned(pending, name, params, refused=reason)
        return Asked(pending, tool, params)

    def _plan_one(
        self, case: Case, progress: Progress, pending: Pending, accept: Accept, told: Told, given: Given
    ) -> Planned:
        asked = self._read(progress, pending)
        if isinstance(asked, Planned):
            return asked
        tool, params, name = asked.tool, asked.params, asked.tool.name
        if name == REPORT:
            return Planned(pending, name, params, run=lambda: accept(params))
        if name in self.client:
            result = as_client_result(given[pending.call.id])
            return Planned(pending, name, params, run=lambda: result, seconds=self.limits.tool_seconds)
        if tool.restricted and (reason := refusal(progress, pending.ref)):
            return Planned(pending, name, params, refused=reason)

        seconds = tool.seconds or self.limits.tool_seconds
        sub_calls = RecordedCalls(
            parent=pending.ref,
            call_id=pending.call.id,
            step=progress.step,
            guard=progress.guard,
            results=self.results,
            redact=case.redact,
            now=self.now,
            tell=told.put,
        )

        def run() -> ToolResult:  # the time starts when the call does
            deadline = case.deadline.within(seconds)
            return tool.run(params, ToolContext(deadline=deadline, alert=case.alert, sub_calls=sub_calls))

        return Planned(pending, name, params, run=run, seconds=seconds, close=sub_calls.close)

    def _refusal(self, progress: Progress, pending: Pending, tool: Tool, params: dict[str, Any]) -> str:
        if tool.name == REPORT:
            return ""
        if progress.limit is not None:
            return "Not run: this was the last step."
        if pending.index >= self.limits.calls_per_turn:
            return f"Not run: more than {self.limits.calls_per_turn} calls in one turn. Ask again if you still need it."
        return progress.guard.refusal(call_key(tool.name, params), progress.step)

    def _room(self, progress: Progress, window_tokens: int) -> int:
        """Tokens for the next result: bounded for itself, and by its share of what is left to the turn."""
        turn = min(self.limits.turn_tokens, window_tokens // 4)
        left = turn - progress.turn_bytes // BYTES_PER_TOKEN
        share = left // max(1, len(progress.pending))
        return max(MIN_RESULT_TOKENS, min(self.limits.result_tokens, share))

    def _finished(
        self, case: Case, plan: Planned, result: ToolResult, *, step: int, ran: bool, room: int, seconds: float
    ) -> ToolFinished:
        ref = plan.pending.ref
        whole = "\n".join(part for part in (result.error, result.data) if part)
        text = case.redact(plain(storable(whole))) or "(empty)"
        if ran and plan.tool != REPORT:
            self.results.put(ref, text)
        query = case.redact(plain(result.query))
        shown = ToolResult(status=result.status, query=query).to_model(ref, digest(text, room, ref))
        return ToolFinished(
            step=step,
            ref=ref,
            call_id=plan.pending.call.id,
            tool=plan.tool,
            params=plan.params,
            status=result.status.value,
            content=shown,
            query=query,
            url=case.redact(plain(result.url)),
            result_sha256=hashlib.sha256(text.encode()).hexdigest() if ran else "",
            result_chars=len(text),
            captured_at=self.now(),
            seconds=round(seconds, 3),
        )

    def _again(self, done: ToolFinished) -> ToolResult:
        """What a call of this turn gave before the run was interrupted."""
        text = self.results.get(done.ref) or done.content.partition("\n\n")[2]
        return ToolResult(status=ResultStatus(done.status), data=text, query=done.query, url=done.url)


def _told(told: Told, future: Future[ToolResult], deadline: Deadline) -> Iterator[Event]:
    """What running calls tell of the calls that they make, until this one is done or out of time."""
    future.add_done_callback(lambda _: told.put(None))  # wakes us
    limit = Deadline(deadline.at + GRACE_SECONDS, deadline.clock)
    while not (limit.passed or (future.done() and told.empty())):
        try:
            event = told.get(timeout=min(limit.remaining, threading.TIMEOUT_MAX))
        except Empty:
            return
        if event is not None:
            yield event


def _outcome(future: Future[ToolResult], tool: str, deadline: Deadline) -> ToolResult:
    """The result of a running call; a crash or a hang costs this call only."""
    try:
        error = bounded.wait(future, deadline, GRACE_SECONDS)
    except TimeoutError:
        return ToolResult.failed(f"{tool} gave no answer in time and was given up. Ask for less, or look elsewhere.")
    if isinstance(error, RootcausedError):
        return ToolResult.failed(str(error))
    if error is not None:
        return ToolResult.failed(f"{tool} failed by a fault of its own ({type(error).__name__}: {str(error)[:200]}).")
    result: Any = future.result()
    return result if isinstance(result, ToolResult) else ToolResult.success(str(result))


def _lenient(tool: Tool) -> Tool:
    """A report is read with all its flaws (see `agent.grounding`): none of them may cost it."""
    if tool.name != REPORT:
        return tool
    return Tool(name=tool.name, description="", parameters={"type": "object"}, run=tool.run, core=True)
