"""The port to a language model (or what stands in for one): messages and tool schemas in, one reply out.

Messages are plain dicts in the OpenAI chat form, because LiteLLM takes that form for every provider
and assistant messages must go back verbatim (reasoning fields and signatures included).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.deadline import Deadline

Message = dict[str, Any]
ToolSchema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of one model call, or the sum of many. `input_tokens` includes `cached_tokens`;
    `output_tokens` includes `reasoning_tokens`. `cost_usd` is None where the price is not known."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost_usd=sum(known) if known else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is unparsed text, which may be invalid or cut."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One model turn. `message` is what goes back into the history, unchanged; `text` is always a string."""

    message: Message
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"  # stop | tool_calls | length | content_filter | malformed
    usage: Usage = field(default_factory=Usage)
    model: str = ""


class Model(Protocol):
    """Raises `Transient` (rate limit, overload, network; `retry_after` when told), `ContextOverflow`,
    or `Permanent` (wrong key, unknown model, refused request). Never another exception."""

    @property
    def name(self) -> str:
        """As configured, for the report: `openai/gpt-5`, `rules`."""
        ...

    @property
    def window_tokens(self) -> int:
        """The context window; a conservative default where it is not known."""
        ...

    def reply(self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, deadline: Deadline) -> Reply:
        """One turn. With no `tools` the model must answer in text."""
        ...
