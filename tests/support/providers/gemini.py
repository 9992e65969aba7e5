"""Gemini generateContent: what it refuses and how it answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.providers.schemas import check_gemini_schema
from tests.support.providers.turn import Turn, refuse_unknown, refuse_unless

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


@dataclass(slots=True)
class Gemini:
    """A call that was signed must come back with its signature; calls and responses must be as many."""

    name: str = "gemini/gemini-3-pro-preview"
    base: str = "/v1beta"
    signed: dict[str, set[str]] = field(default_factory=dict)  # what a call looks like -> its signatures

    def check(self, body: dict[str, Any]) -> None:
        refuse_unknown(
            "request",
            body,
            "contents system_instruction systemInstruction tools toolConfig generationConfig safetySettings",
        )
        for tool in body.get("tools", ()):
            for declared in tool["function_declarations"]:
                refuse_unknown("function_declarations", declared, "name description parameters")
                refuse_unless(NAME.fullmatch(declared["name"]), "Invalid function name. Must start with a letter")
                if "parameters" in declared:
                    check_gemini_schema(declared["parameters"])
        contents = body["contents"]
        refuse_unless(contents and contents[0]["role"] == "user", "Please ensure that the first turn is a user turn.")
        due, before = 0, "model"
        for content in contents:
            refuse_unless(content["parts"], "contents.parts must not be empty.")
            calls = [call for part in content["parts"] if (call := _call(part)) is not None]
            responses = sum("function_response" in part or "functionResponse" in part for part in content["parts"])
            refuse_unless(
                responses == due,
                "Please ensure that the number of function response parts is equal to the number of function call parts"
                " of the function call turn.",
            )
            refuse_unless(
                not calls or before == "user",
                "Please ensure that function call turn comes immediately after a user turn or a function response",
            )
            for part in content["parts"]:
                self._check_part(part)
            due, before = len(calls), content["role"]
        refuse_unless(due == 0, "Please ensure that function response turn comes immediately after function call turn.")

    def _check_part(self, part: Mapping[str, Any]) -> None:
        if "text" in part:
            refuse_unless(part["text"], "Unable to submit request because it must have a text parameter.")
        call = _call(part)
        wanted = self.signed.get(str(call)) if call is not None else None
        if wanted is not None:
            refuse_unless(
                part.get("thoughtSignature", part.get("thought_signature")) in wanted,
                "Function call is missing a thought_signature in functionCall parts.",
            )

    def answer(self, turn: Turn, number: int, tokens: int) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        if turn.thinking:
            parts.append({"text": turn.thinking, "thought": True})
        if turn.text:
            parts.append({"text": turn.text})
        for index, (name, given) in enumerate(turn.calls):
            part: dict[str, Any] = {"functionCall": {"name": name, "args": dict(given)}}
            if turn.thinking and index == 0:  # only the first of parallel calls is signed
                signature = f"c2lnbmF0dXJl{number:04d}" + "QUJD" * 30
                part["thoughtSignature"] = signature
                self.signed.setdefault(str(part["functionCall"]), set()).add(signature)
            parts.append(part)
        return {
            "candidates": [
                {"content": {"role": "model", "parts": parts}, "finishReason": turn.finish or "STOP", "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": tokens,
                "candidatesTokenCount": 20,
                "totalTokenCount": tokens + 20,
            },
            "modelVersion": "gemini-3-pro-preview",
        }

    def error(self, status: int, words: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": words, "status": "INVALID_ARGUMENT"}}

    def overflow(self, tokens: int, window: int) -> str:
        return f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."


def _call(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The call of a part, less the id that clients add."""
    found = part.get("functionCall", part.get("function_call"))
    return None if found is None else {"name": found["name"], "args": dict(found.get("args") or {})}
