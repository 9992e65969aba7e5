"""What a script may call, decided here for every single call, and how each is checked, bounded and recorded."""

from __future__ import annotations

import difflib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from agent.arguments import checked
from agent.code_mode.bridge import TEXT, Answer, TooMany
from agent.deadline import Clock
from agent.errors import RootcausedError, ToolError
from agent.safeguards import call_key
from agent.toolbox import legal_name
from agent.tools import ResultStatus, SubCalls, Tool, ToolContext, ToolResult, compact_json

CODE_TOOL = "run_python"
NEVER = frozenset({CODE_TOOL, "bash", "shell"})  # no recursion, and nothing that takes commands
INSISTING = 50  # refused calls past the limit before the run is ended
MAX_KEY_CHARS = 200
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str, allow_nan=False)
SAME_RESULTS = 2  # of one call; from then on the result is remembered and the call not made again
MAX_REMEMBERED_BYTES = 20_000_000


class Awaited:
    """An answer that is still to come; lighter than a `Future`, of which every call would need one."""

    __slots__ = ("_answer", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._answer: Answer | None = None

    def fulfil(self, answer: Answer) -> None:
        self._answer = answer
        self._lock.release()

    def answer(self) -> Answer:
        with self._lock:
            assert self._answer is not None
            return self._answer


class Memory:
    """Calls that are under way, and results of those that gave the same again and again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Awaited] = {}
        self._seen: dict[str, tuple[int, int]] = {}  # how often in a row, hash
        self._kept: dict[str, Awaited] = {}
        self._bytes = 0

    def take(self, key: str) -> tuple[Awaited | None, Awaited | None]:
        """What is known or under way, or else the caller's own to fulfil."""
        with self._lock:
            known = self._kept.get(key) or self._running.get(key)
            if known is not None:
                return known, None
            mine = Awaited()
            self._running[key] = mine
            return None, mine

    def give(self, key: str, mine: Awaited, answer: Answer) -> None:
        mark = hash((answer.kind, answer.body))
        with self._lock:
            self._running.pop(key, None)
            times, before = self._seen.get(key, (0, 0))
            times = times + 1 if mark == before else 1
            self._seen[key] = (times, mark)
            if times >= SAME_RESULTS and self._bytes + len(answer.body) <= MAX_REMEMBERED_BYTES:
                self._bytes += len(answer.body)
                self._kept[key] = mine
        mine.fulfil(answer)


def allow_list(tools: Sequence[Tool]) -> tuple[dict[str, Tool], dict[str, str]]:
    """The tools that a script may call, by name, and the others with the words that say why not."""
    named = {legal_name(tool.name): tool for tool in tools}
    denied = {name: why for name, tool in named.items() if (why := _why_denied(name, tool))}
    return {name: tool for name, tool in sorted(named.items()) if name not in denied}, denied


class Authority:
    """The allow-list of one run. `tools` are those of the request; what is left out of them can't be named back in.

    `memory` is shared by the scripts of an investigation: one that is mended and run again need not ask again.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        context: ToolContext,
        sub_calls: SubCalls,
        *,
        limit: int,
        result_bytes: int,
        call_seconds: float,
        memory: Memory | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._allowed, self._denied = allow_list(tools)
        self._context, self._sub_calls = context, sub_calls
        self._limit, self._result_bytes, self._call_seconds = limit, result_bytes, call_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._memory = memory or Memory()
        self.made = 0  # calls, refused ones included

    @property
    def exceeded(self) -> bool:
        return self.made > self._limit

    def specs(self) -> list[dict[str, Any]]:
        """What the script is told of its tools."""
        return [
            {"name": name, "description": tool.description, "parameters": dict(tool.parameters)}
            for name, tool in self._allowed.items()
        ]

    def ask(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Answer one call. Raises `TooMany` for a script that goes on past its limit."""
        with self._lock:
            self.made += 1
            made = self.made
        if made > self._limit + INSISTING:
            raise TooMany(f"it made more than {self._limit} calls of tools")
        if made > self._limit:
            return _error(f"Not run: a script may make {self._limit} calls, and this one has made them.")
        tool = self._allowed.get(name)
        if tool is None:
            return _error(self._denied.get(name) or self._unknown(name))
        try:
            params = checked(arguments, tool)
        except ToolError as error:
            return _error(str(error))
        return self._once(_key(name, params), name, tool, params)

    def _once(self, key: str, name: str, tool: Tool, params: dict[str, Any]) -> Answer:
        """The same call at the same time is made once; after some equal results, it is not made again."""
        known, mine = self._memory.take(key)
        if known is not None:
            return known.answer()
        assert mine is not None
        answer = None
        try:
            answer = self._made(name, tool, params)
        finally:
            self._memory.give(key, mine, answer or _error(f"{name} failed"))
        return answer

    def _made(self, name: str, tool: Tool, params: dict[str, Any]) -> Answer:
        call = self._sub_calls.begin(name, params)
        if call.refusal:
            return _error(call.refusal)
        begun = self._clock()
        deadline = self._context.deadline.within(self._call_seconds)
        result = _result(tool, params, ToolContext(deadline=deadline, alert=self._context.alert))
        self._sub_calls.finish(call, result, self._clock() - begun)
        return self._answer(name, result)

    def _answer(self, name: str, result: ToolResult) -> Answer:
        redact = self._sub_calls.redact
        words = redact(
            f"{result.error}\n{result.data}" if result.error and result.data else result.error or result.data
        )
        match result.status:
            case ResultStatus.SUCCESS:
                return self._success(name, result, words)
            case ResultStatus.NO_DATA:
                return Answer("n", json.dumps(words))
            case ResultStatus.APPROVAL_REQUIRED:
                return _error(_NEEDS_APPROVAL.format(name=name))
            case _:
                return _error(words or f"{name} failed without a word")

    def _success(self, name: str, result: ToolResult, words: str) -> Answer:
        """Structure where the tool has it, or where its text is JSON; else the text."""
        kind, body = TEXT, words
        if result.value is not None:
            kind, body = "r", self._redacted(_json(result.value))
        elif words.lstrip()[:1] in ("{", "[") and _is_json(words):
            kind = "r"
        if len(body) > self._result_bytes:
            return _error(
                f"{name} gave {len(body)} characters; a script is handed {self._result_bytes} at most. Ask for less."
            )
        return Answer(kind, body)

    def _redacted(self, body: str) -> str:
        """Over the JSON text, where key and value stand side by side. What is no JSON afterwards goes as text."""
        text = self._sub_calls.redact(body)
        return text if text == body or _is_json(text) else _json(text)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._allowed, n=3, cutoff=0.4) or list(self._allowed)[:20]
        return f"Not run: there is no tool {name!r} here. Closest: {', '.join(near) or 'none'}."


_NEEDS_APPROVAL = "Not run: {name} needs a person's approval. Call it directly, not from a script."


def _why_denied(name: str, tool: Tool) -> str:
    if tool.restricted:
        return _NEEDS_APPROVAL.format(name=name)
    if name == CODE_TOOL:
        return f"Not run: {name} can't be called from a script."
    if tool.core:
        return f"Not run: {name} belongs to the investigation itself. Call it directly, not from a script."
    return f"Not run: {name} can't be called from a script. Call it directly." if name in NEVER else ""


def _result(tool: Tool, params: Mapping[str, Any], context: ToolContext) -> ToolResult:
    try:
        result: Any = tool.run(params, context)
    except RootcausedError as error:
        return ToolResult.failed(str(error))
    except Exception as error:  # noqa: BLE001  a fault of the tool's own costs this call only
        return ToolResult.failed(f"{tool.name} failed by a fault of its own ({type(error).__name__}).")
    return result if isinstance(result, ToolResult) else ToolResult.success(str(result))


def _key(name: str, params: Mapping[str, Any]) -> str:
    """One for calls that ask the same; what is short need not be hashed."""
    text = compact_json(params)
    return f"{name}:{text}" if len(text) <= MAX_KEY_CHARS else call_key(name, params)


def _error(words: str) -> Answer:
    return Answer("e", json.dumps(words))


def _json(value: Any) -> str:
    """As compact as it gets; NaN, which JSON has no word for, as null."""
    try:
        return _ENCODER.encode(value)
    except ValueError:
        return compact_json(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
