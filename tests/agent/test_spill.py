"""Long results: both ends and the telling lines are shown, the rest can be read."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.alert import Alert
from agent.core_tools import MAX_LINES, read_result_tool
from agent.deadline import Deadline
from agent.errors import ToolError
from agent.spill import BYTES_PER_TOKEN, MAX_STORED_CHARS, MemoryResults, digest, storable, was_cut
from agent.tools import ResultStatus, ToolContext, ToolResult

CONTEXT = ToolContext(deadline=Deadline.never(), alert=Alert(source="s", id="1", title="t"))
LINES = [f"line {number} is fine" for number in range(5_000)]
LINES[2_500] = "line 2500 FATAL: out of memory"
LINES[2_600] = "line 2600 FATAL: out of memory"
TEXT = "\n".join(LINES)


def test_a_short_result_is_shown_whole() -> None:
    assert digest("all of it", 100, "T1") == "all of it"


def test_a_long_result_shows_both_ends_the_telling_lines_and_how_to_read_on() -> None:
    shown = digest(TEXT, 1_000, "T7")
    assert shown.startswith("line 0 is fine")
    assert shown.endswith("line 4999 is fine")
    assert "line 2500 FATAL: out of memory" in shown
    assert "line 2600" not in shown  # the same but for its numbers
    assert f"of {len(TEXT)} characters; the rest: read_result(ref='T7'" in shown
    assert was_cut(shown)


@given(st.text(min_size=1), st.integers(1, 2_000), st.integers(90, 300))
def test_a_digest_fits_its_bound_and_is_valid_text(text: str, times: int, tokens: int) -> None:
    text = text.encode("utf-8", "replace").decode() * times
    shown = digest(text, tokens, "T12")
    assert len(shown.encode()) <= tokens * BYTES_PER_TOKEN
    assert shown == text or was_cut(shown)


@pytest.mark.parametrize("text", ["x" * 30_000_000, "\n" * 30_000_000, "日本" * 9_000_000])
def test_a_huge_result_is_bounded_in_store_and_view(text: str) -> None:
    begun = time.thread_time()
    kept = storable(text)
    shown = digest(kept, 1_500, "T1")
    assert len(kept) < MAX_STORED_CHARS + 200
    assert len(shown.encode()) <= 1_500 * BYTES_PER_TOKEN
    assert time.thread_time() - begun < 5


def read(**arguments: object) -> ToolResult:
    results = MemoryResults()
    results.put("T7", TEXT)
    return read_result_tool(results).run({"ref": "T7", **arguments}, CONTEXT)


def test_lines_are_found_by_plain_text() -> None:
    assert read(grep="fatal").data == "2501: line 2500 FATAL: out of memory\n2601: line 2600 FATAL: out of memory"
    assert read(grep="line 7 |line 9 ", context=1).data.splitlines()[:3] == [
        "7: line 6 is fine", "8: line 7 is fine", "9: line 8 is fine"
    ]  # fmt: skip
    assert read(grep="(a+)+$").status is ResultStatus.NO_DATA


def test_a_range_of_lines_is_read() -> None:
    assert read(start=3, lines=2).data == "3: line 2 is fine\n4: line 3 is fine\n[4996 more of 5000 lines]"
    assert read(start=-1).data == "5000: line 4999 is fine"
    assert read(start=9_999).status is ResultStatus.NO_DATA
    assert len(read(lines=99_999).data.splitlines()) == MAX_LINES + 1


def test_an_unknown_ref_is_an_error_the_model_can_read() -> None:
    with pytest.raises(ToolError, match="refs look like T3"):
        read_result_tool(MemoryResults()).run({"ref": "E1"}, CONTEXT)
