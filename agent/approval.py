"""Calls that wait for somebody else: a person who approves, or the client who runs them. The journal decides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.events import ApprovalAsked, Decided, Event, Paused, Waiting
from agent.progress import Pending, Progress
from agent.safeguards import call_key
from agent.tools import ResultStatus, Tool, ToolResult

Verdict = Literal["approved", "denied", "expired"]

DENIED = "Denied: {by} did not approve this call{reason}. Go on without it; don't ask for the same again."
EXPIRED = "Denied: nobody approved this call in time. Go on without it."
FORGED = "Denied: the decision was for other arguments than these."
MAY_HAVE_RUN = (
    "This call was approved and begun, and the run was interrupted before its result was kept. It is not run twice."
    " Look whether it took effect."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person decided of one call. `digest` is that of the `ApprovalAsked` that was shown to them: it binds the
    decision to the exact tool and arguments."""

    verdict: Verdict
    digest: str
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A pending call that was read and may run as soon as somebody allows it or gives its result."""

    pending: Pending
    tool: Tool
    params: dict[str, Any]

    @property
    def digest(self) -> str:
        return digest_of(self.pending.call.id, self.tool.name, self.params)


def digest_of(call_id: str, tool: str, params: Mapping[str, Any]) -> str:
    return hashlib.sha256(f"{call_id}:{call_key(tool, params)}".encode()).hexdigest()


def client_tool(name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
    """A tool that the caller runs: each call pauses the run until the caller gives its result."""
    return Tool(name=name, description=description, parameters=parameters, run=_paused)


def _paused(_arguments: Any, _context: Any) -> ToolResult:
    return ToolResult(status=ResultStatus.CLIENT_PAUSE)


def decided(asked: Sequence[Asked], decisions: Mapping[str, Decision]) -> Iterator[Decided]:
    """What is new of the decisions; one for a call that nobody asked about, or in other words, decides nothing."""
    for one in asked:
        decision = decisions.get(one.pending.call.id)
        if decision is None or not one.tool.restricted:
            continue
        verdict = decision.verdict if decision.digest == one.digest else "forged"
        yield Decided(
            ref=one.pending.ref, call_id=one.pending.call.id, verdict=verdict, by=decision.by, reason=decision.reason
        )


def pause(asked: Sequence[Asked], progress: Progress, client: Callable[[str], bool]) -> Iterator[Event]:
    """Ask about the calls nobody was asked about yet, then stop."""
    waiting = []
    for one in asked:
        ref, call = one.pending.ref, one.pending.call
        kind = ResultStatus.CLIENT_PAUSE if client(one.tool.name) else ResultStatus.APPROVAL_REQUIRED
        waiting.append(
            Waiting(
                ref=ref, call_id=call.id, tool=one.tool.name, params=one.params, status=kind.value, digest=one.digest
            )
        )
        if kind is ResultStatus.APPROVAL_REQUIRED and ref not in progress.asked:
            yield ApprovalAsked(
                step=progress.step, ref=ref, call_id=call.id, tool=one.tool.name, params=one.params, digest=one.digest
            )
    yield Paused(step=progress.step, waiting=waiting)


def refusal(progress: Progress, ref: str) -> str:
    """Why a restricted call of which something was decided is not run; "" where it may run, once."""
    found = progress.decisions.get(ref)
    if found is None:
        return "Not run: this tool needs a person's approval, which can't be given in this run."
    match found.verdict:
        case "approved":
            return MAY_HAVE_RUN if ref in progress.begun else ""
        case "denied":
            return DENIED.format(by=found.by or "the person asked", reason=f": {found.reason}" if found.reason else "")
        case "expired":
            return EXPIRED
        case "forged":
            return FORGED


def as_client_result(given: ToolResult) -> ToolResult:
    """A result from outside; a status that only the loop gives would leave the call unanswered."""
    final = given.status in (ResultStatus.SUCCESS, ResultStatus.NO_DATA, ResultStatus.ERROR)
    return given if final else replace(given, status=ResultStatus.ERROR)
