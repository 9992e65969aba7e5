"""OpenAI chat completions, and vLLM, which has the same form: what it refuses and how it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.providers.schemas import check_json_schema
from tests.support.providers.turn import Refused, Turn, refuse_unknown, refuse_unless

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_ID_CHARS = 40
_TOP = "model messages max_tokens max_completion_tokens temperature tools tool_choice stream n parallel_tool_calls"
_KEYS = {
    "system": "role content name",
    "developer": "role content name",
    "user": "role content name",
    "assistant": "role content name tool_calls refusal",
    "tool": "role content tool_call_id",
}


@dataclass(slots=True)
class OpenAIChat:
    """`max_tokens` refused (`young`) as the reasoning models do, which also take no temperature."""

    name: str = "openai/gateway-model"
    base: str = "/v1"
    young: bool = False

    def check(self, body: dict[str, Any]) -> None:
        refuse_unknown("request", body, _TOP)
        if self.young and "max_tokens" in body:
            raise Refused(
                "Unsupported parameter: 'max_tokens' is not supported with this model."
                " Use 'max_completion_tokens' instead."
            )
        refuse_unless(not (self.young and "temperature" in body), "Unsupported value: 'temperature' does not support")
        _check_tools(body.get("tools"))
        refuse_unless(body["messages"], "[] is too short - 'messages'")
        _check_messages(body["messages"])

    def answer(self, turn: Turn, number: int, tokens: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
        if turn.thinking:
            message["reasoning_content"] = turn.thinking
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{number}_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                for index, (name, given) in enumerate(turn.calls)
            ]
        finish = turn.finish or ("tool_calls" if turn.calls else "stop")
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": "gateway-model",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20},
        }

    def error(self, status: int, words: str) -> dict[str, Any]:
        return {"error": {"message": words, "type": "invalid_request_error" if status == 400 else "server_error"}}

    def overflow(self, tokens: int, window: int) -> str:
        told = f"However, your messages resulted in {tokens} tokens."
        return f"This model's maximum context length is {window} tokens. {told}"


def _check_tools(tools: Any) -> None:
    if tools is None:
        return
    refuse_unless(tools, "[] is too short - 'tools'")
    names = [tool["function"]["name"] for tool in tools]
    refuse_unless(len(names) == len(set(names)) and len(names) <= 128, "Tool names must be unique, at most 128.")
    for tool in tools:
        refuse_unknown("tools", tool, "type function")
        refuse_unknown("tools.function", tool["function"], "name description parameters strict")
        refuse_unless(NAME.fullmatch(tool["function"]["name"]), "Invalid 'tools[0].function.name': does not match")
        check_json_schema(tool["function"]["parameters"])


def _check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    due: list[str] = []
    for index, message in enumerate(messages):
        role = message["role"]
        refuse_unless(role in _KEYS, f"Invalid value: {role!r}")
        refuse_unknown(f"messages.{index}", message, _KEYS[role])
        if role == "tool":
            refuse_unless(
                message["tool_call_id"] in due,
                "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
            )
            due.remove(message["tool_call_id"])
        else:
            _refuse_due(due)
        if role == "assistant":
            due = _check_calls(message.get("tool_calls"))
            refuse_unless(due or message.get("content"), f"messages.{index}: content or tool_calls is required")
        else:
            refuse_unless(message.get("content"), f"Invalid value for 'content': expected a string, got null ({index})")
    _refuse_due(due)


def _refuse_due(due: Sequence[str]) -> None:
    refuse_unless(
        not due,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    )


def _check_calls(calls: Any) -> list[str]:
    if calls is None:
        return []
    refuse_unless(calls, "[] is too short - 'tool_calls'")
    for call in calls:
        refuse_unknown("tool_calls", call, "id type function")
        refuse_unknown("tool_calls.function", call["function"], "name arguments")
        refuse_unless(len(call["id"]) <= MAX_ID_CHARS, "Invalid 'tool_calls[0].id': string too long, maximum length 40")
        refuse_unless(NAME.fullmatch(call["function"]["name"]), "Invalid 'tool_calls[0].function.name'")
        refuse_unless(isinstance(call["function"]["arguments"], str), "arguments is not of type 'string'")
    ids = [call["id"] for call in calls]
    refuse_unless(len(ids) == len(set(ids)), "Duplicate tool_call ids")
    return ids
