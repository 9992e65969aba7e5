"""What differs between providers behind LiteLLM: what of a message goes back, what is marked, what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.model import Message, ToolSchema

# Take the documented fields of a message and no other. All other providers get messages as LiteLLM gave them,
# because reasoning and its signatures must go back unaltered there.
_PLAIN = frozenset(
    {"openai", "azure", "hosted_vllm", "groq", "mistral", "together_ai", "fireworks_ai", "custom_openai"}
)
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "assistant": ("role", "content", "tool_calls"),
    "tool": ("role", "content", "tool_call_id"),
}
_CALL_FIELDS = ("id", "type", "function")
_OVERFLOW = (
    "context length",
    "context window",
    "maximum context",
    "prompt is too long",
    "too many tokens",
    "input is too long",
    "exceeds the maximum number of tokens",  # Gemini
    "exceeds the available context",  # llama.cpp
    "maximum number of tokens allowed",
    "request too large",
)


def provider_of(name: str) -> str:
    """What a LiteLLM name begins with; `openai` where nothing does."""
    provider, slash, _ = name.partition("/")
    return provider if slash else "openai"


def sendable(name: str, messages: Sequence[Message]) -> list[Message]:
    """The messages as this model takes them back; made for one request, so nothing adds up in the history."""
    if "claude" in name.lower():
        return _marked(messages)
    if provider_of(name) in _PLAIN and not name.startswith("openai/responses/"):
        return [_documented(message) for message in messages]
    return list(messages)


def sendable_tools(name: str, tools: Sequence[ToolSchema]) -> list[ToolSchema]:
    """The tools as this model takes them: Gemini refuses parameters without any property."""
    if provider_of(name) not in ("gemini", "vertex_ai"):
        return list(tools)
    return [_bare(tool) if not tool["function"]["parameters"].get("properties") else tool for tool in tools]


def _bare(tool: ToolSchema) -> ToolSchema:
    return {**tool, "function": {name: part for name, part in tool["function"].items() if name != "parameters"}}


def extra_parameters(name: str, window_tokens: int) -> dict[str, Any]:
    """Ollama cuts the prompt at its default of a few thousand tokens, silently, unless it is told the window."""
    return {"num_ctx": window_tokens} if provider_of(name) in ("ollama", "ollama_chat") else {}


def is_overflow(words: str) -> bool:
    """Whether a refusal says that the request is larger than the window; each provider has its own words."""
    lowered = words.lower()
    return any(sign in lowered for sign in _OVERFLOW)


def _documented(message: Message) -> Message:
    fields = _FIELDS.get(message["role"])
    if fields is None or message.keys() <= {*fields}:
        return _with_plain_calls(message)
    return _with_plain_calls({name: message[name] for name in fields if name in message})


def _with_plain_calls(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls or all(call.keys() <= {*_CALL_FIELDS} for call in calls):
        return message
    plain = [{name: call[name] for name in _CALL_FIELDS if name in call} for call in calls]
    return {**message, "tool_calls": plain}


def _marked(messages: Sequence[Message]) -> list[Message]:
    """The messages with what Anthropic may cache marked: the system prompt and all up to the last message.

    Two marks of at most four, none on blank text.
    """
    marked = list(messages)
    for index in {0, len(marked) - 1} if marked else ():
        text = marked[index].get("content")
        if marked[index]["role"] != "assistant" and isinstance(text, str) and text.strip():
            part = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
            marked[index] = {**marked[index], "content": [part]}
    return marked
