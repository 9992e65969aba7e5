"""The calls that a tool makes of other tools, as the loop records them."""

from __future__ import annotations

from typing import Any

from agent.events import Event, ToolFinished, ToolStarted
from agent.safeguards import RepeatGuard, call_key
from agent.spill import MemoryResults
from agent.subcalls import MAX_ALL_STORED_CHARS, MAX_STORED_CHARS, RecordedCalls
from agent.tools import ToolResult
from tests.support.cases import NOW


def recorded(**changes: Any) -> tuple[RecordedCalls, list[Event], MemoryResults]:
    told: list[Event] = []
    results = MemoryResults()
    options: dict[str, Any] = {"guard": RepeatGuard(2), "redact": lambda text: text.replace("hunter2", "***")}
    calls = RecordedCalls(
        parent="T4", call_id="c1", step=3, results=results, now=lambda: NOW, tell=told.append, **{**options, **changes}
    )
    return calls, told, results


def test_a_call_is_told_when_it_begins_and_when_it_ends() -> None:
    calls, told, results = recorded()
    call = calls.begin("logs", {"pod": "x"})
    assert (call.ref, call.refusal) == ("T4.1", "")
    calls.finish(call, ToolResult.success("a line with hunter2", query="q hunter2"), 0.5)
    begun, done = told
    assert isinstance(begun, ToolStarted)
    assert isinstance(done, ToolFinished)
    assert (done.ref, done.parent, done.step, done.seconds) == ("T4.1", "T4", 3, 0.5)
    assert done.content == "T4.1 success\nquery: q ***\n\na line with ***"
    assert results.get("T4.1") == "a line with ***"


def test_the_guard_of_the_loop_refuses_and_that_is_told_too() -> None:
    guard = RepeatGuard(1)
    guard.note(call_key("logs", {"pod": "x"}), 1, "T1", "hash")
    calls, told, _ = recorded(guard=guard)
    call = calls.begin("logs", {"pod": "x"})
    assert call.refusal.startswith("Not run: this call gave the same result before (T1)")
    assert [event.kind for event in told] == ["tool_started", "tool_finished"]
    assert told[1].result_sha256 == ""  # type: ignore[union-attr]


def test_once_the_loop_has_moved_on_nothing_is_run_or_told() -> None:
    calls, told, results = recorded()
    running = calls.begin("logs", {})
    calls.close()
    calls.finish(running, ToolResult.success("late"), 1.0)
    assert calls.begin("logs", {}).refusal == "Not run: the time of this run is over."
    assert len(told) == 1
    assert results.get("T4.1") is None


def test_what_is_stored_is_bounded_for_one_call_and_for_all() -> None:
    calls, told, results = recorded()
    for number in range(MAX_ALL_STORED_CHARS // MAX_STORED_CHARS + 5):
        call = calls.begin("logs", {"n": number, "blob": "x" * 50_000})
        calls.finish(call, ToolResult.success("y" * 1_000_000), 0.1)
    kept = [results.get(f"T4.{number}") for number in range(1, 30)]
    assert all(len(text) < MAX_STORED_CHARS + 100 for text in kept if text)
    assert sum(len(text) for text in kept if text) <= MAX_ALL_STORED_CHARS
    assert max(len(event.model_dump_json()) for event in told) < 25_000
