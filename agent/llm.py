"""A language model through LiteLLM: the only module that imports it, and only when a model is first asked."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent import bounded
from agent.deadline import Deadline
from agent.dialects import extra_parameters, is_overflow, sendable, sendable_tools
from agent.errors import ContextOverflow, Permanent, RootcausedError, Transient
from agent.http import RETRIABLE, retry_after
from agent.model import Message, Reply, ToolCall, ToolSchema, Usage
from agent.plain import fold, plain
from agent.redaction import Redactor
from agent.safeguards import text_of

WINDOW_TOKENS: Final = 32_000  # of a model that nobody knows
TIMEOUT_STEPS: Final = (1.0, 5.0, 20.0, 60.0, 180.0, 600.0, 3_600.0)
GRACE_SECONDS: Final = 0.5  # for the client's own time-out to speak first
_FINISH = {"stop", "tool_calls", "length", "content_filter"}
_OPTIONAL = ("temperature", "max_completion_tokens", "max_tokens")
_loading = threading.Lock()


@dataclass(slots=True, kw_only=True)
class LiteLLMModel:
    """`name` is any LiteLLM name. Prices are in US dollars per million tokens; unset, LiteLLM's table is asked.

    No call streams, and none is retried here. What a provider refuses among the optional parameters is left out
    from then on.
    """

    name: str
    api_key: str | None = field(default=None, repr=False)
    api_base: str | None = None
    window: int | None = None
    max_output_tokens: int = 8_000
    temperature: float | None = None
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    _refused: set[str] = field(default_factory=set, init=False, repr=False)
    _lane: bounded.Lane = field(default_factory=lambda: bounded.Lane("model-call"), init=False, repr=False)

    @property
    def window_tokens(self) -> int:
        return self.window or _known_window(self.name) or WINDOW_TOKENS

    def reply(self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, deadline: Deadline) -> Reply:
        while True:
            optional = self._optional()
            answer = self._call(messages, tools, optional, deadline)
            if not isinstance(answer, BaseException):
                return self._reply(answer)
            refused = _refused_parameter(answer, optional)
            if refused is None:
                raise self._converted(answer) from None  # the original holds the request, and can't be pickled
            self._refused.add(refused)

    def _optional(self) -> dict[str, Any]:
        """The parameters that some models refuse, without those this one did. `max_tokens` has a younger name."""
        given: dict[str, Any] = {}
        if self.temperature is not None:
            given["temperature"] = self.temperature
        given["max_tokens"] = self.max_output_tokens
        if "max_tokens" in self._refused:
            given["max_completion_tokens"] = self.max_output_tokens
        return {name: value for name, value in given.items() if name not in self._refused}

    def _call(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], optional: dict[str, Any], deadline: Deadline
    ) -> Any:
        """The response or what was raised. A provider that stalls or drips is left behind in its thread."""
        seconds = deadline.remaining
        if seconds <= 0:
            return Transient(f"{self.name}: no time left")
        litellm = _litellm()
        request: dict[str, Any] = {"model": self.name, "messages": sendable(self.name, messages), **optional}
        request |= extra_parameters(self.name, self.window_tokens)
        if tools:
            request["tools"] = sendable_tools(self.name, tools)
        if self.api_base:
            request["api_base"] = self.api_base
        if self.api_key:
            request["api_key"] = self.api_key
        request |= {"timeout": _coarse(seconds), "num_retries": 0, "max_retries": 0, "stream": False}
        future = self._lane.start(lambda: litellm.completion(**request))
        try:
            error = bounded.wait(future, deadline, GRACE_SECONDS)
        except TimeoutError:
            return Transient(f"{self.name}: no complete answer within {seconds:.0f} s")
        return error if error is not None else future.result()

    def _reply(self, response: Any) -> Reply:
        usage = self._usage(response)
        if not response.choices:
            message: Message = {"role": "assistant", "content": None}
            return Reply(message=message, finish="malformed", usage=usage, model=self.name)
        choice = response.choices[0]
        message = {"content": None, **choice.message.model_dump(mode="json", exclude_none=True)}
        calls = tuple(_call_of(call) for call in message.get("tool_calls") or ())
        text = text_of(message.get("content"))
        finish = _finish(choice, bool(calls))
        return Reply(message=message, text=text, calls=calls, finish=finish, usage=usage, model=self.name)

    def _usage(self, response: Any) -> Usage:
        usage = getattr(response, "usage", None)
        given, wrote = _number(usage, "prompt_tokens"), _number(usage, "completion_tokens")
        return Usage(
            input_tokens=given,
            cached_tokens=_number(getattr(usage, "prompt_tokens_details", None), "cached_tokens"),
            output_tokens=wrote,
            reasoning_tokens=_number(getattr(usage, "completion_tokens_details", None), "reasoning_tokens"),
            cost_usd=self._cost(given, wrote, response),
        )

    def _cost(self, given: int, wrote: int, response: Any) -> float | None:
        if self.input_usd_per_million is not None or self.output_usd_per_million is not None:
            return (given * (self.input_usd_per_million or 0) + wrote * (self.output_usd_per_million or 0)) / 1e6
        cost = getattr(response, "_hidden_params", {}).get("response_cost")
        return float(cost) if isinstance(cost, int | float) else None

    def _converted(self, error: BaseException) -> RootcausedError:
        """By who must act. The message has the provider's words, without the key."""
        if isinstance(error, RootcausedError):
            return error
        said = str(error).partition("Traceback (most recent call last)")[0]  # LiteLLM puts its own stack into messages
        words = Redactor([self.api_key] if self.api_key else ())(fold(plain(said)))[:300]
        message = f"{self.name}: {words or type(error).__name__}"
        lowered = message.lower()
        kind = type(error).__name__
        code = getattr(error, "code", None)
        if "ContextWindow" in kind or code == "context_length_exceeded" or is_overflow(message):
            return ContextOverflow(message)
        status = getattr(error, "status_code", None)
        status = status if isinstance(status, int) else 0
        if "insufficient_quota" in lowered or "exceeded your current quota" in lowered:
            return Permanent(message)
        if status in RETRIABLE or status >= 500 or kind in ("Timeout", "APIConnectionError"):
            return Transient(message, retry_after=_told(error))
        return Permanent(message)


def _litellm() -> Any:
    """LiteLLM, set so that it does nothing but the call: no look-ups, callbacks, telemetry, debug output."""
    with _loading:
        os.environ["LITELLM_LOG"] = "ERROR"  # at debug level it prints requests to standard output
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import fetches a price table
        import litellm

        litellm.suppress_debug_info = True
        litellm.set_verbose = False
        litellm.telemetry = False
        litellm.drop_params = False
        litellm.callbacks = []
        for name in ("input_callback", "success_callback", "failure_callback", "_async_success_callback"):
            setattr(litellm, name, [])
        # At debug level these log whole requests.
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore"):
            logger = logging.getLogger(name)
            if logger.getEffectiveLevel() < logging.ERROR:
                logger.setLevel(logging.ERROR)
        return litellm


def _known_window(name: str) -> int | None:
    """The input window by LiteLLM's table, with and without the provider in front; None for an alias."""
    table: Mapping[str, Any] = _litellm().model_cost
    for key in (name, name.partition("/")[2]):
        window = table.get(key, {}).get("max_input_tokens") if key else None
        if isinstance(window, int) and window > 0:
            return window
    return None


def _coarse(seconds: float) -> float:
    """The next of a few time-outs: LiteLLM keeps a client, with its connections, for each value it ever saw. The exact
    time is kept outside."""
    return next((step for step in TIMEOUT_STEPS if step >= seconds), TIMEOUT_STEPS[-1])


def _refused_parameter(error: BaseException, sent: Mapping[str, Any]) -> str | None:
    """The optional parameter that the provider named when it refused the request."""
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    words = str(error).lower()
    if not any(sign in words for sign in ("unsupported", "not support", "unknown", "unrecognized", "does not")):
        return None
    named = [name for name in _OPTIONAL if name in sent and name in words]
    return min(named, key=words.index) if named else None


def _told(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not headers:
        return None
    return retry_after({str(name).lower(): str(value) for name, value in headers.items()})


def _call_of(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if isinstance(arguments, Mapping):
        arguments = json.dumps(arguments)
    return ToolCall(id=str(call.get("id") or ""), name=str(function.get("name") or ""), arguments=str(arguments or ""))


def _finish(choice: Any, called: bool) -> str:
    """Our five words. What LiteLLM maps to `stop` may have had another name at the provider."""
    native = (getattr(choice, "provider_specific_fields", None) or {}).get("native_finish_reason")
    reason = str(native or choice.finish_reason or "stop").lower()
    if "malformed" in reason:
        return "malformed"
    reason = str(choice.finish_reason or "stop")
    if called:
        return "length" if reason == "length" else "tool_calls"
    return reason if reason in _FINISH else "stop"


def _number(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return int(value) if isinstance(value, int | float) else 0
