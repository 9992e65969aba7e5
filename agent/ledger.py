"""What was asked and what came back, outside the conversation: reports are checked against it."""

from __future__ import annotations

from collections.abc import Iterator

from agent.events import ToolFinished
from agent.plain import shorten
from agent.spill import was_cut
from agent.tools import ResultStatus, compact_json

MAX_ASKED_CHARS = 160


class Ledger:
    """The finished calls of a run by reference, in call order."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolFinished] = {}

    def add(self, call: ToolFinished) -> None:
        self._calls[call.ref] = call

    def __iter__(self) -> Iterator[ToolFinished]:
        return iter(self._calls.values())

    def __len__(self) -> int:
        return len(self._calls)

    def get(self, ref: str) -> ToolFinished | None:
        return self._calls.get(ref)

    def told(self, room: int) -> str:
        """The calls made so far, one a line, for the model: it must know them when the turns are gone. In at most
        `room` characters: of the oldest ones only how many."""
        lines = [_line(call) for call in self if not call.parent]
        kept: list[str] = []
        while lines and room - len(lines[-1]) - 1 > 0:
            room -= len(lines[-1]) + 1
            kept.insert(0, lines.pop())
        return "\n".join([*([f"({len(lines)} earlier calls)"] if lines else []), *kept])

    def sources_failed(self) -> tuple[str, ...]:
        """Tools of which every call failed, with the words of the last failure."""
        worked = {call.tool for call in self if call.status in (ResultStatus.SUCCESS, ResultStatus.NO_DATA)}
        failed = {call.tool: call for call in self if call.status == ResultStatus.ERROR and call.result_sha256}
        return tuple(f"{tool}: {_reason(call)}" for tool, call in failed.items() if tool not in worked)


def cut(call: ToolFinished) -> bool:
    """Whether the model saw a part of the result only."""
    return was_cut(call.content)


def _line(call: ToolFinished) -> str:
    asked = shorten(compact_json(call.params), MAX_ASKED_CHARS)
    return f"{call.ref} {call.tool} {asked}: {call.status}, {call.result_chars} characters"


def _reason(call: ToolFinished) -> str:
    body = call.content.partition("\n\n")[2].strip()
    return body.splitlines()[0][:160] if body else "no reason given"
