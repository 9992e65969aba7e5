"""The calls that a tool makes of other tools: guarded, numbered under their parent, stored, told as they happen."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent.case import Redact
from agent.events import Event, ToolFinished, ToolStarted
from agent.plain import plain, shorten, well_formed
from agent.safeguards import RepeatGuard, call_key
from agent.spill import Results
from agent.tools import Arguments, SubCall, ToolResult, compact_json

PREVIEW_CHARS = 300
MAX_STORED_CHARS = 200_000  # of one result: enough to look at again; the script had the whole
MAX_PARAMS_CHARS = 20_000
MAX_ALL_STORED_CHARS = 4_000_000  # of one parent's calls together


@dataclass(slots=True, kw_only=True)
class RecordedCalls:
    """Implements `agent.tools.SubCalls` for one call of the model's, `parent` with the id `call_id`.

    `tell` takes the events, from any thread. Once closed, calls are refused and nothing is told any more: the loop
    has moved on.
    """

    parent: str
    call_id: str
    step: int
    guard: RepeatGuard
    results: Results
    redact: Redact
    now: Callable[[], datetime]
    tell: Callable[[Event], None]
    _count: int = 0
    _room: int = MAX_ALL_STORED_CHARS
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def begin(self, tool: str, params: Arguments) -> SubCall:
        refusal = self.guard.refusal(call_key(tool, params), self.step)
        with self._lock:
            self._count += 1
            ref = f"{self.parent}.{self._count}"
            if self._closed:
                return SubCall(ref=ref, tool=tool, params=params, refusal="Not run: the time of this run is over.")
            self.tell(
                ToolStarted(
                    step=self.step,
                    ref=ref,
                    call_id=self.call_id,
                    tool=tool,
                    params=_bounded(params),
                    parent=self.parent,
                )
            )
            if refusal:
                self.tell(self._event(ref, tool, params, ToolResult.failed(refusal), refusal, seconds=0.0, ran=False))
        return SubCall(ref=ref, tool=tool, params=params, refusal=refusal)

    def finish(self, call: SubCall, result: ToolResult, seconds: float) -> None:
        text = self.redact(plain("\n".join(part for part in (result.error, result.data) if part))) or "(empty)"
        kept = text if len(text) <= MAX_STORED_CHARS else f"{text[:MAX_STORED_CHARS]}\n[cut: {len(text)} in all]"
        with self._lock:
            if self._closed:
                return
            stored = len(kept) <= self._room
            self._room -= len(kept) if stored else 0
        if stored:
            self.results.put(call.ref, kept)
        event = self._event(call.ref, call.tool, call.params, result, text, seconds=seconds, ran=True)
        with self._lock:
            if not self._closed:
                self.tell(event)

    def _event(
        self, ref: str, tool: str, params: Arguments, result: ToolResult, text: str, *, seconds: float, ran: bool
    ) -> ToolFinished:
        query = self.redact(plain(result.query))
        preview = ToolResult(status=result.status, query=query).to_model(ref, shorten(text, PREVIEW_CHARS))
        return ToolFinished(
            step=self.step,
            ref=ref,
            call_id=self.call_id,
            tool=tool,
            params=_bounded(params),
            status=result.status.value,
            content=preview,
            query=query,
            url=self.redact(plain(result.url)),
            result_sha256=hashlib.sha256(text.encode()).hexdigest() if ran else "",
            result_chars=len(text),
            captured_at=self.now(),
            seconds=round(seconds, 3),
            parent=self.parent,
        )


def _bounded(params: Arguments) -> dict[str, Any]:
    """For the journal: a script may send a megabyte of arguments, two hundred times."""
    text = compact_json(params)
    return well_formed(dict(params)) if len(text) <= MAX_PARAMS_CHARS else {"cut": shorten(text, MAX_PARAMS_CHARS)}
