"""A model that answers from a script: the stand-in for a language model in tests, demos and dry runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.deadline import Deadline
from agent.errors import Permanent
from agent.model import Message, Reply, ToolCall, ToolSchema, Usage


@dataclass(frozen=True, slots=True)
class Request:
    """What the model was asked. `messages` is a copy of the list, not of the messages."""

    messages: tuple[Message, ...]
    tools: tuple[str, ...]


Line = Reply | Exception | Callable[[Request], Reply]


class ScriptedModel:
    """Gives the lines of its script in order; an exception in it is raised. Past the end it fails for good.

    With a callable for a script, every request is answered by it. Requests without tools (for a summary) get
    `without_tools`, where it is given.
    """

    def __init__(
        self,
        script: Iterable[Line] | Callable[[Request], Reply],
        *,
        name: str = "scripted",
        window_tokens: int = 128_000,
        without_tools: Reply | None = None,
    ) -> None:
        self.name = name
        self.window_tokens = window_tokens
        self.without_tools = without_tools
        self.requests: list[Request] = []
        self._answer = script if callable(script) else None
        self._lines = iter(()) if callable(script) else iter(script)
        self._lock = threading.Lock()

    def reply(self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, deadline: Deadline) -> Reply:  # noqa: ARG002
        request = Request(tuple(messages), tuple(tool["function"]["name"] for tool in tools))
        with self._lock:
            self.requests.append(request)
            if not tools and self.without_tools is not None:
                return self.without_tools
            line: Line | None = self._answer or next(self._lines, None)
        if line is None:
            raise Permanent(f"{self.name}: the script is over")
        if isinstance(line, Exception):
            raise line
        return line(request) if callable(line) else line


def says(text: str, *, finish: str = "stop", usage: Usage | None = None) -> Reply:
    """A reply in prose."""
    message = {"role": "assistant", "content": text}
    return Reply(message=message, text=text, finish=finish, usage=usage or Usage(output_tokens=5))


def calls(*wanted: tuple[str, Mapping[str, Any] | str], text: str = "", usage: Usage | None = None) -> Reply:
    """A reply that calls tools: `calls(("kubernetes_get", {"kind": "pod"}))`."""
    made = tuple(
        ToolCall(id=f"c{index}", name=name, arguments=given if isinstance(given, str) else json.dumps(given))
        for index, (name, given) in enumerate(wanted)
    )
    tool_calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in made
    ]
    message = {"role": "assistant", "content": text or None, "tool_calls": tool_calls}
    usage = usage or Usage(output_tokens=5)
    return Reply(message=message, text=text, calls=made, finish="tool_calls", usage=usage)
