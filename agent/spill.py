"""Results too long for the conversation: the whole is stored, the model sees a digest (`agent.digest`)."""

from __future__ import annotations

from typing import Protocol

from agent.digest import BYTES_PER_TOKEN, CUT_MARK, digest, was_cut

__all__ = ["BYTES_PER_TOKEN", "CUT_MARK", "MemoryResults", "Results", "digest", "storable", "was_cut"]

MAX_STORED_CHARS = 4_000_000


class Results(Protocol):
    """Where the whole (redacted) results of one investigation are kept, by the reference of the call."""

    def put(self, ref: str, text: str) -> None: ...

    def get(self, ref: str) -> str | None:
        """The text, or None when there was none or it has expired."""
        ...


class MemoryResults:
    """Results in a dict: for tests and one-off runs."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def put(self, ref: str, text: str) -> None:
        self._texts[ref] = text

    def get(self, ref: str) -> str | None:
        return self._texts.get(ref)


def storable(text: str) -> str:
    """The text, or its two ends where it is too long to keep at all."""
    if len(text) <= MAX_STORED_CHARS:
        return text
    head, tail = MAX_STORED_CHARS * 3 // 4, MAX_STORED_CHARS // 4
    return f"{text[:head]}\n[{len(text) - head - tail} of {len(text)} characters were not kept]\n{text[-tail:]}"
