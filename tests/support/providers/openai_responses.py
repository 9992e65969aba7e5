"""OpenAI responses: what it refuses and how it answers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.support.providers.schemas import check_json_schema
from tests.support.providers.turn import Turn, refuse_unknown, refuse_unless

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ITEMS = {
    "message": "type role content id status",
    "function_call": "type call_id name arguments id status",
    "function_call_output": "type call_id output id status",
    "reasoning": "type id summary encrypted_content content status",
}


@dataclass(slots=True)
class OpenAIResponses:
    name: str = "openai/responses/gpt-5"
    base: str = "/v1"
    reasoned: dict[str, str] = field(default_factory=dict)  # id -> encrypted content

    def check(self, body: dict[str, Any]) -> None:
        refuse_unknown(
            "request",
            body,
            "model input max_output_tokens stream tools tool_choice instructions temperature include store reasoning",
        )
        refuse_unless(
            "temperature" not in body, "Unsupported parameter: 'temperature' is not supported with this model."
        )
        for tool in body.get("tools", ()):
            refuse_unless(NAME.fullmatch(tool["name"]), "Invalid 'tools[0].name': string does not match pattern")
            check_json_schema(tool["parameters"])
        asked: list[str] = []
        answered: list[str] = []
        for item in body["input"]:
            kind = item.get("type", "message")
            refuse_unless(kind in _ITEMS, f"Invalid value: {kind!r}")
            refuse_unknown(f"input.{kind}", item, _ITEMS[kind])
            if kind == "message":
                refuse_unless(item["content"], "Invalid 'input[0].content': empty")
            if kind == "function_call":
                refuse_unless(len(item["call_id"]) <= 64 and NAME.fullmatch(item["name"]), "Invalid 'input[1].call_id'")
                asked.append(item["call_id"])
            if kind == "function_call_output":
                refuse_unless(
                    item["call_id"] in asked, f"No tool call found for function call output {item['call_id']}."
                )
                answered.append(item["call_id"])
        refuse_unless(len(asked) == len(set(asked)), "Duplicate call_id")
        refuse_unless(sorted(asked) == sorted(answered), "No tool output found for function call.")

    def answer(self, turn: Turn, number: int, tokens: int) -> dict[str, Any]:
        output: list[dict[str, Any]] = []
        if turn.thinking:
            output.append({"type": "reasoning", "id": f"rs_{number}", "summary": []})
        if turn.text:
            part = {"type": "output_text", "text": turn.text, "annotations": []}
            message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
            output.append({**message, "content": [part]})
        output += [
            {
                "type": "function_call",
                "id": f"fc_{number}_{index}",
                "call_id": f"call_{number}_{index}",
                "name": name,
                "arguments": json.dumps(given),
                "status": "completed",
            }
            for index, (name, given) in enumerate(turn.calls)
        ]
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5",
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tools": [],
            "tool_choice": "auto",
            "usage": {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20},
        }

    def error(self, status: int, words: str) -> dict[str, Any]:
        return {"error": {"message": words, "type": "invalid_request_error"}}

    def overflow(self, tokens: int, window: int) -> str:
        return "Your input exceeds the context window of this model. Please adjust your input and try again."
