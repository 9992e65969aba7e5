"""Results too long for the conversation: the whole is stored, the model sees both ends and how to read on."""

from __future__ import annotations

import re
from typing import Protocol

BYTES_PER_TOKEN = 3  # conservative: English is about 4, logs and JSON about 3
MAX_STORED_CHARS = 4_000_000
CUT_MARK = "[cut: shown "
_NOTABLE = re.compile(
    r"error|fatal|panic|exception|traceback|oom|killed|fail|refused|timed? ?out|denied|no space|unhealthy|crash",
    re.IGNORECASE,
)
_VARYING = re.compile(r"[0-9a-f]*\d[0-9a-f]*", re.IGNORECASE)


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


def digest(text: str, tokens: int, ref: str) -> str:
    """The text, when longer than `tokens` its head, the telling lines of the middle and its tail."""
    limit = tokens * BYTES_PER_TOKEN
    size = len(text.encode())
    if size <= limit:
        return text
    room = max(limit - 250, 60)  # the line about the cut has to fit as well
    head = _head(text, room * 55 // 100)
    tail = _tail(text, room * 25 // 100)
    middle = text[len(head) : len(text) - len(tail)]
    notable = _notable(middle, room * 20 // 100)
    shown = len(head) + len(tail) + len(notable)
    how = f"read_result(ref={ref!r}, grep=... or start=..., lines=...)"
    mark = f"{CUT_MARK}{shown} of {len(text)} characters; the rest: {how}]"
    telling = f"[telling lines of the part left out]\n{notable}\n" if notable else ""
    return f"{head}\n{mark}\n{telling}[the end]\n{tail}"


def was_cut(content: str) -> bool:
    return f"\n{CUT_MARK}" in content


def _head(text: str, size: int) -> str:
    """At most `size` bytes from the start, whole lines where that loses little."""
    head = text[:size].encode()[:size].decode(errors="ignore")
    line = head.rfind("\n")
    return head[:line] if line > len(head) // 2 else head


def _tail(text: str, size: int) -> str:
    tail = text[-size:].encode()[-size:].decode(errors="ignore")
    line = tail.find("\n")
    return tail[line + 1 :] if 0 <= line < len(tail) // 2 else tail


def _notable(text: str, size: int) -> str:
    """Lines that speak of a fault, one of each kind (numbers apart), oldest first, while they fit."""
    seen: set[str] = set()
    lines: list[str] = []
    for whole in text.splitlines():
        if not _NOTABLE.search(whole[:1_000]):
            continue
        line = whole.strip()[:200]
        kind = _VARYING.sub("#", line)
        if kind in seen:
            continue
        seen.add(kind)
        size -= len(line.encode()) + 1
        if size < 0:
            break
        lines.append(line)
    return "\n".join(lines)
