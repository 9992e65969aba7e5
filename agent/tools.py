"""The port to everything an investigation can look at: tool, result, toolset."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from agent.alert import Alert
from agent.deadline import Deadline

Arguments = Mapping[str, Any]
JsonSchema = Mapping[str, Any]


class ResultStatus(StrEnum):
    """`no_data` is not `error`: "I looked and found nothing" lets the model correct itself."""

    SUCCESS = "success"
    ERROR = "error"
    NO_DATA = "no_data"
    APPROVAL_REQUIRED = "approval_required"
    CLIENT_PAUSE = "client_pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What one call gave. `data` is the text the model reads; `value` the same as JSON, where the tool has structure.

    `query` is the exact query that ran, in the data source's own language; `url` opens it for a person.
    """

    status: ResultStatus
    data: str = ""
    error: str = ""
    value: Any = None
    query: str = ""
    url: str = ""
    params: Arguments = field(default_factory=dict)

    @classmethod
    def success(cls, data: str, *, value: Any = None, query: str = "", url: str = "") -> ToolResult:
        return cls(status=ResultStatus.SUCCESS, data=data, value=value, query=query, url=url)

    @classmethod
    def no_data(cls, message: str, *, query: str = "", url: str = "") -> ToolResult:
        return cls(status=ResultStatus.NO_DATA, data=message, query=query, url=url)

    @classmethod
    def failed(cls, message: str, *, query: str = "", url: str = "") -> ToolResult:
        return cls(status=ResultStatus.ERROR, error=message, query=query, url=url)

    def with_params(self, params: Arguments) -> ToolResult:
        return replace(self, params=params)

    def to_model(self, ref: str, body: str | None = None) -> str:
        """One compact, stable form: `T3 success`, the query, a blank line, then the data (or `body` in its place).

        `ref` is what a report cites the call by.
        """
        head = f"{ref} {self.status}" + (f"\nquery: {self.query}" if self.query else "")
        text = body if body is not None else "\n".join(part for part in (self.error, self.data) if part)
        return f"{head}\n\n{text}" if text else head

    def to_client(self) -> dict[str, Any]:
        """The whole result as JSON, for the API and the pages."""
        return {
            "status": self.status.value,
            "data": self.data,
            "error": self.error,
            "query": self.query,
            "url": self.url,
            "params": dict(self.params),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SubCall:
    """A call that a tool makes of another one. `ref` is what it is cited by: T3.1 is the first of T3.
    `refusal` says why it must not run; "" where it may."""

    ref: str
    tool: str
    params: Arguments
    refusal: str = ""


class SubCalls(Protocol):
    """How a tool that calls other tools tells the loop, which guards, records and shows each of these calls.

    Safe from any thread.
    """

    def begin(self, tool: str, params: Arguments) -> SubCall: ...

    def finish(self, call: SubCall, result: ToolResult, seconds: float) -> None: ...

    def redact(self, text: str) -> str:
        """The text without secrets, before it is handed to anything that may recode it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What the loop hands every call: how long it may take and which alert it is for.

    Tools take their default time window from `alert.starts_at`. `sub_calls` is for tools that call other tools.
    """

    deadline: Deadline
    alert: Alert
    sub_calls: SubCalls | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One read-only act. `parameters` is a JSON schema restricted to what every provider takes:
    object, string, number, integer, boolean, array, enum, required, description.

    `run` may raise `ToolError`; anything else it raises is a bug that costs this call only.
    `restricted` calls wait for a person; `core` tools belong to the loop and never run inside code mode.
    `seconds` is how long a call may take, where that is not what the loop gives every call.
    """

    name: str
    description: str
    parameters: JsonSchema
    run: Callable[[Arguments, ToolContext], ToolResult]
    restricted: bool = False
    core: bool = False
    seconds: float | None = None

    def schema(self) -> dict[str, Any]:
        """The OpenAI function form, which LiteLLM takes for every provider."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


class HealthState(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The outcome of a prerequisites check, with what to do about it."""

    state: HealthState
    reason: str = ""
    remedy: str = ""

    @classmethod
    def ok(cls, reason: str = "") -> Health:
        return cls(state=HealthState.OK, reason=reason)

    @classmethod
    def failed(cls, reason: str, remedy: str = "") -> Health:
        return cls(state=HealthState.FAILED, reason=reason, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """Tools that share a backend. `instructions` go into the prompt when it is enabled; keep them short."""

    name: str
    tools: tuple[Tool, ...]
    check: Callable[[Deadline], Health]
    instructions: str = ""


def compact_json(value: Any) -> str:
    """JSON without spaces, keys in order, non-ASCII kept: the form used wherever a model or a hash reads it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
