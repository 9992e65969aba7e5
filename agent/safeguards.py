"""Replies that are no answer, and calls that go round in circles."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from agent.arguments import legal, strict_json
from agent.model import Message, Reply, ToolCall
from agent.plain import plain, well_formed
from agent.toolbox import legal_name
from agent.tools import compact_json

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_LEFTOVER = re.compile(r"^.*?</(?:think|thinking)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^```[\w-]*\n(.*?)\n?```$", re.DOTALL)
_CALL_TAG = re.compile(r"^<(tool_call|function_call|function|invoke)\b.*>$", re.DOTALL)
# OpenAI has the shortest limit, Anthropic the fewest characters. Gemini's longer ids only repeat its signature.
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_CALL_KEYS = {"name", "tool", "tool_name", "function", "tool_calls", "recipient_name", "action"}


def text_of(content: Any) -> str:
    """The visible text of a message: None, text or a list of parts in, always text out; reasoning is left out."""
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _part_text(part) for part in content]
        content = "\n".join(part for part in parts if part)
    if not isinstance(content, str):
        return ""
    text = _THINKING.sub("", content)
    if "</think" in text.lower():  # some servers swallow the opening tag
        text = _LEFTOVER.sub("", text)
    return plain(text).strip()


def _part_text(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
        text = part.get("text", "")
        return text if isinstance(text, str) else ""
    return ""


def legal_message(reply: Reply, turn: int, earlier: Collection[str] = ()) -> Message:
    """The assistant message as it goes into the history: verbatim, but for call names, ids and arguments that
    a provider would refuse when they are sent back. `earlier` are the call ids of the turns before."""
    message = {**well_formed(reply.message), "role": "assistant"}
    message.setdefault("content", well_formed(reply.text) or None)
    if not reply.calls:
        message.pop("tool_calls", None)
        return message
    raw = message.get("tool_calls")
    written = raw if isinstance(raw, list) and len(raw) == len(reply.calls) else [{}] * len(reply.calls)
    taken: set[str] = set()
    calls = []
    for index, (call, as_written) in enumerate(zip(reply.calls, written, strict=True)):
        fits = _ID.fullmatch(call.id or "") and call.id not in taken and call.id not in earlier
        identity = call.id if fits else f"rc_{turn}_{index}"
        taken.add(identity)
        extra = as_written if isinstance(as_written, dict) else {}
        old = extra.get("function")
        function = {**(old if isinstance(old, dict) else {}), "name": legal_name(call.name or "")}
        function["arguments"] = well_formed(legal(call.arguments))
        calls.append({**extra, "id": identity, "type": "function", "function": function})
    message["tool_calls"] = calls
    return message


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The calls of a message that `legal_message` made."""
    return tuple(
        ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    )


def flaw(text: str, finish: str, tools: Collection[str]) -> str:
    """Why a reply without calls is no answer, in words for the model; "" for an answer."""
    if finish == "malformed":
        return "Your tool call could not be read."
    if not text:
        return "Your reply had no text."
    if is_call_shape(text, tools):
        return "You wrote a tool call as text. Use the tool-call interface."
    if _is_bare_json(text):
        return "You answered with bare JSON."
    if finish == "content_filter":
        return "Your answer was stopped by a content filter. Give it in other words."
    if finish == "length":
        return "Your answer was cut at the output limit. Give a shorter one."
    return ""


def is_call_shape(text: str, tools: Collection[str]) -> bool:
    """Whether the text is nothing but a call; a report that quotes such JSON is not."""
    if _CALL_TAG.match(text):
        return True
    value = _json_value(text)
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict) or not _CALL_KEYS & value.keys():
        return False
    inner = value.get("function")
    names = [value.get(key) for key in _CALL_KEYS] + (list(inner.values()) if isinstance(inner, dict) else [])
    return "tool_calls" in value or any(isinstance(name, str) and name in tools for name in names)


def publishable(text: str) -> bool:
    """Whether a text may stand in a report: not blank, not bare JSON, not a call."""
    return bool(text) and not _is_bare_json(text) and not is_call_shape(text, ())


def json_object(text: str) -> dict[str, Any] | None:
    """The object, when the text is one JSON object and nothing else, fenced or not."""
    value = _json_value(text)
    return value if isinstance(value, dict) else None


def _json_value(text: str) -> Any:
    """The value of a text that is JSON (an object or an array) and nothing else; None for everything else."""
    text = _unfenced(text)
    return strict_json(text) if text.startswith(("{", "[")) else None


def _is_bare_json(text: str) -> bool:
    text = _unfenced(text)
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _unfenced(text: str) -> str:
    fenced = _FENCE.match(text.strip())
    return (fenced.group(1) if fenced else text).strip()


def call_key(tool: str, params: Mapping[str, Any]) -> str:
    """One key for calls that ask the same, however the arguments were written."""
    return f"{tool}:{hashlib.sha256(compact_json(params).encode('utf-8', 'replace')).hexdigest()}"


class RepeatGuard:
    """Remembers calls and results outside the conversation, so that compaction can't erase that they were made."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._seen: dict[str, list[tuple[int, str, str]]] = defaultdict(list)  # key -> (step, ref, result hash)

    def note(self, key: str, step: int, ref: str, sha256: str) -> None:
        seen = self._seen[key]
        if seen and seen[-1][0] == step:
            return  # one turn counts once, however often it asks the same
        if seen and seen[-1][2] != sha256:
            seen.clear()  # the answer changed: looking again made sense
        seen.append((step, ref, sha256))

    def forget(self, tool: str) -> None:
        """Let the calls of one tool run again: what they gave was cleared from the conversation."""
        for key in [key for key in self._seen if key.startswith(f"{tool}:")]:
            del self._seen[key]

    def refusal(self, key: str, step: int) -> str:
        """Why this call is not run again; "" when it may run."""
        before = [ref for then, ref, _ in self._seen.get(key, ()) if then < step]
        if len(before) < self._repeats:
            return ""
        return (
            f"Not run: this call gave the same result before ({', '.join(before)}). Read it with"
            f" read_result(ref={before[-1]!r}), ask something else, or report what you have."
        )
