"""Anthropic messages: what it refuses and how it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.providers.schemas import check_json_schema
from tests.support.providers.turn import Turn, refuse_unknown, refuse_unless

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_TOP = "model messages max_tokens system tools tool_choice temperature thinking stream metadata"
_BLOCKS = {
    "text": "type text cache_control",
    "tool_use": "type id name input cache_control",
    "tool_result": "type tool_use_id content is_error cache_control",
    "thinking": "type thinking signature",
}
MAX_MARKS = 4


@dataclass(slots=True)
class Anthropic:
    """Remembers what it thought: a turn that called tools must come back with its thinking, unchanged."""

    name: str = "anthropic/claude-sonnet-4-5"
    base: str = ""
    thought: dict[str, str] = field(default_factory=dict)  # signature -> thinking
    owed: dict[str, str] = field(default_factory=dict)  # tool_use id -> signature

    def check(self, body: dict[str, Any]) -> None:
        refuse_unknown("request", body, _TOP)
        messages = body["messages"]
        refuse_unless(messages and messages[0]["role"] == "user", "messages: first message must use the user role")
        refuse_unless(messages[-1]["role"] == "user", "This model does not support assistant message prefill.")
        for tool in body.get("tools", ()):
            refuse_unknown("tools", tool, "type name description input_schema cache_control")
            refuse_unless(NAME.fullmatch(tool["name"]), "tools.0.custom.name: String should match pattern")
            check_json_schema(tool["input_schema"])
        refuse_unless(
            json.dumps(body).count('"cache_control"') <= MAX_MARKS, "A maximum of 4 blocks with cache_control"
        )
        for block in body.get("system", ()):
            _check_block(block, "system")
        traffic = self._check_messages(messages)
        refuse_unless(
            body.get("tools") or not traffic,
            "Requests which have `tool_use` or `tool_result` blocks in `messages` must define tools.",
        )

    def _check_messages(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        due: set[str] = set()
        seen: set[str] = set()
        for message in messages:
            blocks = _blocks(message["content"])
            refuse_unless(blocks, "messages: content must not be empty")
            for block in blocks:
                _check_block(block, "messages")
            answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            refuse_unless(
                set(answered) <= due, "messages: unexpected `tool_use_id` found in `tool_result` blocks: no tool_use"
            )
            refuse_unless(len(answered) == len(set(answered)), "each tool_use must have a single result")
            refuse_unless(
                set(answered) == due, "`tool_use` ids were found without `tool_result` blocks immediately after"
            )
            due = {block["id"] for block in blocks if block["type"] == "tool_use"}
            refuse_unless(not due & seen, "messages: `tool_use` ids must be unique")
            refuse_unless(len(due) == sum(block["type"] == "tool_use" for block in blocks), "ids must be unique")
            seen |= due
            self._check_thinking(blocks)
        refuse_unless(not due, "`tool_use` ids were found without `tool_result` blocks immediately after")
        return bool(seen)

    def _check_thinking(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        there = [block for block in blocks if block["type"] == "thinking"]
        for block in there:
            refuse_unless(
                self.thought.get(block["signature"]) == block["thinking"], "Invalid `signature` in `thinking` block"
            )
        signatures = {block["signature"] for block in there}
        for block in blocks:
            if block["type"] == "tool_use" and block["id"] in self.owed:
                refuse_unless(
                    self.owed[block["id"]] in signatures and blocks[0]["type"] == "thinking",
                    "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
                )

    def answer(self, turn: Turn, number: int, tokens: int) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if turn.thinking:
            signature = f"c2ln{number}"
            self.thought[signature] = turn.thinking
            content.append({"type": "thinking", "thinking": turn.thinking, "signature": signature})
        if turn.text:
            content.append({"type": "text", "text": turn.text})
        for index, (name, given) in enumerate(turn.calls):
            identity = f"toolu_{id(self)}_{number}_{index}"
            if turn.thinking:
                self.owed[identity] = f"c2ln{number}"
            content.append({"type": "tool_use", "id": identity, "name": name, "input": dict(given)})
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": turn.finish or ("tool_use" if turn.calls else "end_turn"),
            "usage": {"input_tokens": tokens, "output_tokens": 20},
        }

    def error(self, status: int, words: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}

    def overflow(self, tokens: int, window: int) -> str:
        return f"prompt is too long: {tokens} tokens > {window} maximum"


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _check_block(block: Mapping[str, Any], where: str) -> None:
    kind = block["type"]
    refuse_unless(kind in _BLOCKS, f"{where}: Input tag {kind!r} found")
    refuse_unknown(f"{where}.{kind}", block, _BLOCKS[kind])
    if kind == "text":
        refuse_unless(block["text"].strip(), f"{where}: text content blocks must be non-empty")
    if kind == "tool_use":
        refuse_unless(NAME.fullmatch(block["name"]), f"{where}: tool_use.name: String should match pattern")
        refuse_unless(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), f"{where}: tool_use.id: should match pattern")
        refuse_unless(isinstance(block["input"], dict), f"{where}: tool_use.input: Input should be a valid dictionary")
