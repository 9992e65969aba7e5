"""The conversation: its size is counted as it grows, and it is made smaller in rare, big, deterministic steps."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from agent.model import Message
from agent.spill import BYTES_PER_TOKEN

FULL = 0.8  # of the window: from here on the history is compacted ...
TARGET = 0.4  # ... to this, so that the provider's prompt cache is lost seldom
MESSAGE_BYTES = 12  # role and separators
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

    def counted(self, input_tokens: int) -> None:
        """The provider counted what stands here now: scale the estimate by it, within reason."""
        if input_tokens > 0:
            self._scale = min(3.0, max(0.5, input_tokens * BYTES_PER_TOKEN / max(1, self._bytes)))

    def compact(self, target_tokens: int, *, spare_last: bool = True) -> None:
        """Clear the oldest tool results, then drop the oldest whole turns, until the target is met.

        The last turn stays, because the model has not answered it yet; without `spare_last` its results are cleared.
        """
        starts = self._starts()
        last = starts[-1] if starts else len(self.messages)
        self._clear_results(target_tokens, last)
        self._drop_turns(target_tokens)
        if not spare_last:
            self._clear_results(target_tokens, len(self.messages))

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

    def _drop_turns(self, target_tokens: int) -> None:
        """A turn is an assistant message with all that follows up to the next one: call and result stay together."""
        starts = self._starts()
        cut = self._pinned
        freed = 0
        for start, following in itertools.pairwise(starts):
            if int((self._bytes - freed) / BYTES_PER_TOKEN * self._scale) <= target_tokens:
                break
            freed += sum(_size(message) for message in self.messages[start:following])
            cut = following
        if cut == self._pinned:
            return
        first = starts[0]
        note: Message = {"role": "user", "content": "[Earlier turns were left out to save room.]"}
        if first > self._pinned and self.messages[self._pinned] == note:
            first = self._pinned
            freed += _size(note)
        gone = cut - first - 1
        self.messages[first:cut] = [note]
        self._refs = {index - gone: ref for index, ref in self._refs.items() if index >= cut}
        self._bytes += _size(note) - freed

    def _starts(self) -> list[int]:
        return [
            index for index in range(self._pinned, len(self.messages)) if self.messages[index]["role"] == "assistant"
        ]


def _size(message: Message) -> int:
    return len(_json(message).encode("utf-8", "replace")) + MESSAGE_BYTES


def schema_bytes(schemas: Sequence[dict[str, Any]]) -> int:
    return sum(len(_json(schema).encode()) for schema in schemas)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
