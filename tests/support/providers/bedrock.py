"""Bedrock Converse: what it refuses and how it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.support.providers.schemas import check_json_schema
from tests.support.providers.turn import Turn, refuse_unknown, refuse_unless

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
IDENTITY = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")


@dataclass(slots=True)
class Bedrock:
    """Remembers its reasoning as Anthropic does; turns must alternate, and tool traffic needs `toolConfig`."""

    name: str = "bedrock/converse/anthropic.claude-sonnet-4-5-20250929-v1:0"
    base: str = ""
    thought: dict[str, str] = field(default_factory=dict)

    def check(self, body: dict[str, Any]) -> None:
        refuse_unknown(
            "request", body, "messages inferenceConfig system toolConfig additionalModelRequestFields serviceTier"
        )
        messages = body["messages"]
        refuse_unless(messages and messages[0]["role"] == "user", "A conversation must start with a user message.")
        refuse_unless(
            all(one["role"] != other["role"] for one, other in pairwise(messages)),
            "A conversation must alternate between user and assistant roles.",
        )
        tools = body.get("toolConfig", {}).get("tools", ())
        for tool in tools:
            if "toolSpec" in tool:
                refuse_unless(NAME.fullmatch(tool["toolSpec"]["name"]), "toolSpec.name: must satisfy pattern")
                check_json_schema(tool["toolSpec"]["inputSchema"]["json"])
        for block in body.get("system", ()):
            _check_block(block)
        traffic = self._check_messages(messages)
        refuse_unless(
            tools or not traffic,
            "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        )
        refuse_unless(json.dumps(body).count('"cachePoint"') <= 4, "You invoked with more than 4 cachePoint blocks")

    def _check_messages(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        due: list[str] = []
        traffic = False
        for message in messages:
            blocks = message["content"]
            refuse_unless(blocks, "The content field in the Message object is empty.")
            for block in blocks:
                _check_block(block)
                self._check_reasoning(block)
            answered = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
            refuse_unless(
                sorted(answered) == sorted(due),
                "The number of toolResult blocks exceeds the number of toolUse blocks of previous turn."
                if len(answered) > len(due)
                else "Expected toolResult blocks for the following Ids",
            )
            due = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
            refuse_unless(len(due) == len(set(due)), "The toolUse blocks contain duplicate Ids")
            traffic = traffic or bool(due)
        refuse_unless(not due, "Expected toolResult blocks for the following Ids")
        return traffic

    def _check_reasoning(self, block: Mapping[str, Any]) -> None:
        if "reasoningContent" in block:
            told = block["reasoningContent"]["reasoningText"]
            refuse_unless(
                self.thought.get(told.get("signature")) == told["text"], "Invalid `signature` in `thinking` block"
            )

    def answer(self, turn: Turn, number: int, tokens: int) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if turn.thinking:
            self.thought[f"c2ln{number}"] = turn.thinking
            told = {"text": turn.thinking, "signature": f"c2ln{number}"}
            content.append({"reasoningContent": {"reasoningText": told}})
        if turn.text:
            content.append({"text": turn.text})
        content += [
            {"toolUse": {"toolUseId": f"tooluse_{number}_{index}", "name": name, "input": dict(given)}}
            for index, (name, given) in enumerate(turn.calls)
        ]
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": turn.finish or ("tool_use" if turn.calls else "end_turn"),
            "usage": {"inputTokens": tokens, "outputTokens": 20, "totalTokens": tokens + 20},
            "metrics": {"latencyMs": 1},
        }

    def error(self, status: int, words: str) -> dict[str, Any]:
        return {"message": words}

    def overflow(self, tokens: int, window: int) -> str:
        return "The model returned the following errors: Input is too long for requested model."


def _check_block(block: Mapping[str, Any]) -> None:
    refuse_unknown("content", block, "text toolUse toolResult reasoningContent cachePoint")
    if "text" in block:
        refuse_unless(block["text"].strip(), "The text field in the ContentBlock object is blank.")
    if "toolUse" in block:
        refuse_unknown("toolUse", block["toolUse"], "toolUseId name input")
        refuse_unless(NAME.fullmatch(block["toolUse"]["name"]), "toolUse.name failed to satisfy constraint")
        refuse_unless(IDENTITY.fullmatch(block["toolUse"]["toolUseId"]), "toolUse.toolUseId failed: length <= 64")
        refuse_unless(isinstance(block["toolUse"]["input"], dict), "toolUse.input is invalid: must be a JSON object")
    if "toolResult" in block:
        for part in block["toolResult"]["content"]:
            refuse_unless("text" not in part or part["text"], "The text field in the ContentBlock object is blank.")
