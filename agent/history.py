"""The conversation: its size is counted as it grows, and it is made smaller in rare, big, deterministic steps."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Sequence
from typing import Any

from agent.model import Message
from agent.safeguards import text_of
from agent.spill import BYTES_PER_TOKEN

FULL = 0.8  # of the window: from here on the history is compacted ...
TARGET = 0.4  # ... to this, so that the provider's prompt cache is lost seldom
MESSAGE_BYTES = 12  # role and separators
LEFT_OUT = "[Earlier turns were left out to save room.]"
CLEARED = "[cleared to save room; read it again with read_result(ref={ref!r})]"


class History:
    """Messages with a running estimate in tokens. The first messages (`pin`) are never touched.

    The estimate is bytes over three, scaled by what the provider counted for the last request; between two
    replies it never goes down as messages are added. Assistant messages are kept verbatim or dropped whole.
    """

    def __init__(self, overhead_bytes: int = 0) -> None:
        self.messages: list[Message] = []
        self._refs: dict[int, str] = {}  # index in messages -> ref of the tool result that stands there
        self._pinned = 0
        self._overhead = overhead_bytes
        self._bytes = overhead_bytes
        self._scale = 1.0

    @property
    def tokens(self) -> int:
        """What the next request will about cost, tool schemas included."""
        return int(self._bytes / BYTES_PER_TOKEN * self._scale) + 1

    def pin(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.add(message)
        self._pinned = len(self.messages)

    def add(self, message: Message, ref: str = "") -> None:
        if ref:
            self._refs[len(self.messages)] = ref
        self.messages.append(message)
        self._bytes += _size(message)

    def hand_over(self) -> None:
        """Another model goes on from here: what only the one that wrote it can read (signed reasoning) is left out,
        since it would be refused."""
        for index, message in enumerate(self.messages):
            if message["role"] == "assistant":
                self.messages[index] = _neutral(message)
                self._bytes += _size(self.messages[index]) - _size(message)

    def counted(self, input_tokens: int) -> None:
        """The provider counted what stands here now: scale the estimate by it, within reason."""
        if input_tokens > 0:
            self._scale = min(3.0, max(0.5, input_tokens * BYTES_PER_TOKEN / max(1, self._bytes)))

    def left_out(self, target_tokens: int) -> list[Message]:
        """The messages that `compact` would drop: none where clearing old results is enough."""
        trial = copy.copy(self)
        trial.messages, trial._refs = list(self.messages), dict(self._refs)
        trial._clear_results(target_tokens, trial._last_turn())
        return self.messages[self._pinned : trial._cut(target_tokens)]

    def compact(self, target_tokens: int, *, spare_last: bool = True, note: str = LEFT_OUT) -> None:
        """Clear the oldest tool results, then drop the oldest whole turns, until the target is met.

        The last turn stays, because the model has not answered it yet; without `spare_last` its results are cleared.
        `note` stands where turns were dropped.
        """
        self._clear_results(target_tokens, self._last_turn())
        self._drop_turns(target_tokens, note)
        if not spare_last:
            self._clear_results(target_tokens, len(self.messages))

    def _last_turn(self) -> int:
        starts = self._starts()
        return starts[-1] if starts else len(self.messages)

    def _clear_results(self, target_tokens: int, last: int) -> None:
        for index, ref in sorted(self._refs.items()):
            if self.tokens <= target_tokens or index >= last:
                return
            old = self.messages[index]
            text = str(old.get("content", ""))
            head = text.split("\n\n", 1)[0]
            new = {**old, "content": f"{head}\n\n{CLEARED.format(ref=ref)}"}
            if len(new["content"]) < len(text):
                self.messages[index] = new
                self._bytes += _size(new) - _size(old)

    def _cut(self, target_tokens: int) -> int:
        """Up to which message turns have to go. A turn is an assistant message with all that follows up to the next
        one: call and result stay together."""
        cut, freed = self._pinned, 0
        for start, following in itertools.pairwise(self._starts()):
            if int((self._bytes - freed) / BYTES_PER_TOKEN * self._scale) <= target_tokens:
                break
            freed += sum(_size(message) for message in self.messages[start:following])
            cut = following
        return cut

    def _drop_turns(self, target_tokens: int, text: str) -> None:
        cut = self._cut(target_tokens)
        if cut == self._pinned:
            return
        note: Message = {"role": "user", "content": text}
        freed = sum(_size(message) for message in self.messages[self._pinned : cut])
        gone = cut - self._pinned - 1
        self.messages[self._pinned : cut] = [note]
        self._refs = {index - gone: ref for index, ref in self._refs.items() if index >= cut}
        self._bytes += _size(note) - freed

    def _starts(self) -> list[int]:
        return [
            index for index in range(self._pinned, len(self.messages)) if self.messages[index]["role"] == "assistant"
        ]


def _neutral(message: Message) -> Message:
    """What every provider takes of an assistant message."""
    neutral: Message = {"role": "assistant", "content": text_of(message.get("content")) or None}
    calls = []
    for call in message.get("tool_calls") or ():
        function = {name: call["function"][name] for name in ("name", "arguments")}
        calls.append({"id": call["id"], "type": "function", "function": function})
    if calls:
        neutral["tool_calls"] = calls
    return neutral


def _size(message: Message) -> int:
    return len(_json(message).encode("utf-8", "replace")) + MESSAGE_BYTES


def schema_bytes(schemas: Sequence[dict[str, Any]]) -> int:
    return sum(len(_json(schema).encode()) for schema in schemas)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
