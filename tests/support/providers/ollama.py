"""Ollama chat: what it refuses and how it answers. It has no call ids, and cuts what does not fit `num_ctx`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.providers.turn import Turn, refuse_unknown, refuse_unless


@dataclass(slots=True)
class Ollama:
    """The real one cuts a long prompt silently; this one refuses it, so that no test passes by luck."""

    name: str = "ollama_chat/qwen3"
    base: str = ""

    def check(self, body: dict[str, Any]) -> None:
        refuse_unknown("request", body, "model messages tools options stream format think keep_alive")
        refuse_unless(body["options"].get("num_ctx"), "no num_ctx: the prompt would be cut to 4096 tokens")
        due = 0
        for message in body["messages"]:
            refuse_unknown("messages", message, "role content images tool_calls thinking tool_name tool_call_id")
            if message["role"] == "tool":
                due -= 1
                refuse_unless(due >= 0, "tool message without a call")
            else:
                refuse_unless(due == 0, "a call was not answered")
            due += len(message.get("tool_calls") or ())
            for call in message.get("tool_calls") or ():
                refuse_unless(
                    isinstance(call["function"]["arguments"], dict),
                    "json: cannot unmarshal string into Go struct field .arguments",
                )
        refuse_unless(due == 0, "a call was not answered")

    def answer(self, turn: Turn, number: int, tokens: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text}
        if turn.thinking:
            message["thinking"] = turn.thinking
        if turn.calls:
            message["tool_calls"] = [
                {"function": {"name": name, "arguments": dict(given)}} for name, given in turn.calls
            ]
        return {
            "model": "qwen3",
            "created_at": "2026-01-01T00:00:00Z",
            "message": message,
            "done": True,
            "done_reason": turn.finish or "stop",
            "prompt_eval_count": tokens,
            "eval_count": 20,
        }

    def error(self, status: int, words: str) -> dict[str, Any]:
        return {"error": words}

    def overflow(self, tokens: int, window: int) -> str:
        return f"the prompt exceeds the context length ({tokens} > {window})"
