"""What the conversation says so far: the alert as it was given, and every tool result with the call it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.model import Message
from agent.tools import compact_json

CALL_ID_PREFIX = "rules_"  # our own calls, as against those a language model made before it failed

_HEAD = re.compile(r"(T\d{1,6}) (success|error|no_data|approval_required|client_pause)\s*")
# What the digest of a long result puts before a line that stands for others; it is no part of the result.
_ALIKE = re.compile(r"^\[\d{1,9} like this\] ", re.MULTILINE)
_ALERT_OPENS = "<alert>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One tool result. `ref` is empty where the content has not the form `ToolResult.to_model` gives."""

    tool: str
    arguments: Mapping[str, Any]
    ref: str
    status: str
    query: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    alert: Mapping[str, Any]
    readings: tuple[Reading, ...]
    asked: frozenset[str]  # `signature` of every call made, answered or not
    rounds: int  # of our own
    calls: int  # of our own


def signature(tool: str, arguments: Mapping[str, Any]) -> str:
    """The same for two calls that ask the same."""
    return f"{tool} {compact_json(arguments)}"


def read_transcript(messages: Sequence[Message]) -> Transcript:
    """Never raises: what can't be read is as if it had not been said."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    readings: list[Reading] = []
    rounds = 0
    for message in messages:
        made = dict(_calls(message))
        rounds += any(call_id.startswith(CALL_ID_PREFIX) for call_id in made)
        calls |= made
        if message.get("role") == "tool" and (call := calls.get(str(message.get("tool_call_id")))):
            readings.append(_reading(*call, _text(message)))
    return Transcript(
        alert=_alert(messages),
        readings=tuple(readings),
        asked=frozenset(signature(*call) for call in calls.values()),
        rounds=rounds,
        calls=sum(call_id.startswith(CALL_ID_PREFIX) for call_id in calls),
    )


def _calls(message: Message) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    tool_calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    for call in tool_calls or ():
        function = call.get("function") or {}
        yield str(call.get("id")), (str(function.get("name")), _arguments(function.get("arguments")))


def _arguments(raw: object) -> dict[str, Any]:
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError:
            return {}
    return raw if isinstance(raw, dict) else {}


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _reading(tool: str, arguments: Mapping[str, Any], content: str) -> Reading:
    """Only the first line is the head: the same form further down is data."""
    first, _, rest = content.partition("\n")
    head = _HEAD.fullmatch(first)
    if head is None:
        return Reading(tool=tool, arguments=arguments, ref="", status="error", query="", body=content)
    query = ""
    if rest.startswith("query: "):
        query, _, rest = rest.removeprefix("query: ").partition("\n\n")
    body = _ALIKE.sub("", rest.lstrip("\n"))
    return Reading(tool=tool, arguments=arguments, ref=head[1], status=head[2], query=query, body=body)


def _alert(messages: Sequence[Message]) -> Mapping[str, Any]:
    """The JSON after the first `<alert>`. The decoder finds its end, so that a closing tag in the text can't."""
    for message in messages:
        text = _text(message) if message.get("role") == "user" else ""
        if _ALERT_OPENS in text:
            start = text.partition(_ALERT_OPENS)[2].lstrip()
            try:
                alert, _ = json.JSONDecoder().raw_decode(start)
            except ValueError:
                return {}
            return alert if isinstance(alert, dict) else {}
    return {}
