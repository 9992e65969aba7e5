"""What an investigation tells as it goes: journal, checkpoint, cost and tracing all read these events.

The journal is the checkpoint: folding the events of an interrupted run gives the loop the state it had,
so nothing else is stored, and each event is written once, however long the run.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agent.report import Report


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True)


class Started(_Event):
    """The first event of a run; `messages` is the pinned prefix (system prompt and alert), stored so that a
    resumed run continues the conversation it had, even if the prompt has changed in between."""

    kind: Literal["started"] = "started"
    at: datetime
    model: str
    messages: list[dict[str, Any]]


class StepStarted(_Event):
    kind: Literal["step_started"] = "step_started"
    step: int


class ModelAnswered(_Event):
    """`message` is the assistant message verbatim; paid for, so it is stored before anything else happens."""

    kind: Literal["model_answered"] = "model_answered"
    step: int
    model: str
    message: dict[str, Any]
    finish: str = "stop"
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0


class ToolStarted(_Event):
    """`parent` is the ref of the call that made this one (T3 for T3.1); "" for the model's own calls."""

    kind: Literal["tool_started"] = "tool_started"
    step: int
    ref: str
    call_id: str
    tool: str
    params: dict[str, Any]
    parent: str = ""


class ToolFinished(_Event):
    """`content` is what the model sees; the whole result lies in the results store under `ref`.

    With a `parent` (see `ToolStarted`) the model sees nothing of it, and `content` is a short preview.
    """

    kind: Literal["tool_finished"] = "tool_finished"
    step: int
    ref: str
    call_id: str
    tool: str
    params: dict[str, Any]
    status: str
    content: str
    query: str = ""
    url: str = ""
    result_sha256: str = ""
    result_chars: int = 0
    captured_at: datetime
    seconds: float = 0.0
    parent: str = ""


class Nudged(_Event):
    """The loop said something to the model: a repair request, a reminder, the last-step notice."""

    kind: Literal["nudged"] = "nudged"
    step: int
    reason: str
    message: dict[str, Any]


class Compacted(_Event):
    """The history was cut to about `target_tokens`: near the window, or after the model refused the request.

    `summary` is what a model said of the turns that were left out, and the rest what that cost.
    """

    kind: Literal["compacted"] = "compacted"
    step: int
    reason: Literal["near_window", "overflow"]
    before_tokens: int
    target_tokens: int
    summary: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


class LimitReached(_Event):
    kind: Literal["limit_reached"] = "limit_reached"
    limit: str


class ModelFailed(_Event):
    """One model of the list failed for good; the next takes over the conversation."""

    kind: Literal["model_failed"] = "model_failed"
    step: int
    model: str
    error: str


class ApprovalAsked(_Event):
    """A restricted call waits for a person. `digest` binds a decision to this call and these arguments."""

    kind: Literal["approval_asked"] = "approval_asked"
    step: int
    ref: str
    call_id: str
    tool: str
    params: dict[str, Any]
    digest: str


class Decided(_Event):
    """What was decided of a restricted call. `forged`: the decision was for something else than what was asked."""

    kind: Literal["decided"] = "decided"
    ref: str
    call_id: str
    verdict: Literal["approved", "denied", "expired", "forged"]
    by: str = ""
    reason: str = ""


class Waiting(BaseModel):
    """A call that the run waits for: `status` says for whom, `approval_required` or `client_pause`."""

    model_config = ConfigDict(frozen=True)

    ref: str
    call_id: str
    tool: str
    params: dict[str, Any]
    status: Literal["approval_required", "client_pause"]
    digest: str


class Paused(_Event):
    """The last event of a run that waits for somebody: run it again with the journal and the answers."""

    kind: Literal["paused"] = "paused"
    step: int
    waiting: list[Waiting]


class Finished(_Event):
    """Always the last event of a run that did not pause, exactly once."""

    kind: Literal["finished"] = "finished"
    report: Report


Event = Annotated[
    Started
    | StepStarted
    | ModelAnswered
    | ToolStarted
    | ToolFinished
    | Nudged
    | Compacted
    | LimitReached
    | ModelFailed
    | ApprovalAsked
    | Decided
    | Paused
    | Finished,
    Field(discriminator="kind"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
