"""Long results: both ends and the telling lines are shown, the rest can be read."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import ToolError
from agent.read_result import MAX_CHARS, MAX_LINES, read_result_tool
from agent.spill import BYTES_PER_TOKEN, MAX_STORED_CHARS, MemoryResults, digest, storable, was_cut
from agent.tools import ResultStatus, ToolContext, ToolResult

CONTEXT = ToolContext(deadline=Deadline.never(), alert=Alert(source="s", id="1", title="t"))
LINES = [f"line {number} is fine" for number in range(5_000)]
LINES[2_500] = "line 2500 FATAL: out of memory"
for number in range(2_600, 2_700):
    LINES[number] = f"line {number} FATAL: out of memory"
TEXT = "\n".join(LINES)


def test_a_short_result_is_shown_whole() -> None:
    assert digest("all of it", 100, "T1") == "all of it"


def test_a_long_result_shows_both_ends_the_telling_lines_and_how_to_read_on() -> None:
    shown = digest(TEXT, 1_000, "T7")
    assert shown.startswith("[5000 lines]\n")
    for line in ("line 0 is fine", "line 4999 is fine", "[101 like this] line 2500 FATAL: out of memory"):
        assert line.removeprefix("[101 like this] ") in shown
    assert shown.index("line 2500") < shown.index("line 4999")
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
    assert read(grep="fatal", lines=2).data == (
        "2501: line 2500 FATAL: out of memory\n2601: line 2600 FATAL: out of memory\n[99 more of 101 lines]"
    )
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


def read_json(value: object, **arguments: object) -> ToolResult:
    results = MemoryResults()
    results.put("T7", value if isinstance(value, str) else json.dumps(value))
    return read_result_tool(results).run({"ref": "T7", **arguments}, CONTEXT)


PODS = {"items": [{"name": f"p{n}", "status": {"phase": "Failed" if n == 7 else "Running"}} for n in range(9)]}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (".items[7].status", '1: {"phase":"Failed"}'),
        (".items[-1].name", "1: p8"),
        ("items[0].name", "1: p0"),
        ('.["items"][1].name', "1: p1"),
        (".items[7].status[]", "1: Failed"),
    ],
)
def test_a_path_selects_in_json(path: str, data: str) -> None:
    assert read_json(PODS, path=path).data == data


def test_what_a_path_selects_can_be_counted_searched_and_made_distinct() -> None:
    assert read_json(PODS, path=".items[].status.phase", show="unique").data == "8 x Running\n1 x Failed"
    assert read_json(PODS, path=".items[]", grep="failed", show="count").data == "1 lines, 1 distinct"
    assert read_json('{"a": 1}\nnoise\n{"a": 2}', path=".[].a").data == "1: 1\n2: 2"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".nope", "there are: items"),
        (".items.name", "a list of 9"),
        (".items[99]", "a list of 9"),
        (".a b |", "Can't read"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(path: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        read_json(PODS, path=path)
    with pytest.raises(ToolError, match="not JSON"):
        read_json("plain text", path=".a")


def test_characters_are_read_where_a_line_has_no_end() -> None:
    assert read_json("x" * 10_000, offset=9_999).data == "x"
    shown = read_json("x" * 10_000, offset=0).data
    assert shown == "x" * MAX_CHARS + f"\n[{10_000 - MAX_CHARS} more of 10000 characters]"


def test_the_odd_row_of_a_table_is_shown_with_its_statistics() -> None:
    rows = [f"ts-{n}-service-{n:05x}   1/1     Running            0          {n}m" for n in range(300)]
    rows[140] = "ts-140-service-0008c   0/1     ImagePullBackOff   0          3m"
    shown = digest("\n".join(["NAME                   READY   STATUS    RESTARTS   AGE", *rows]), 500, "T1")
    assert "ts-140-service-0008c  0/1  ImagePullBackOff  0  3m" in shown.replace("   ", "  ")
    assert "[table: 300 rows; READY 1/1 299, 0/1 1; STATUS Running 299, ImagePullBackOff 1; RESTARTS 0 300]" in shown
    assert "\nNAME  READY  STATUS  RESTARTS  AGE\n" in shown


def test_lines_that_differ_in_a_number_only_are_all_shown_when_they_are_few() -> None:
    filler = [f"Mounted volume {chr(97 + n % 26)}{chr(97 + n // 26)} as it was declared" for n in range(400)]
    lines = [*filler[:200], "Exit Code:    0", *filler[200:300], "Exit Code:    137", *filler[300:]]
    assert "Exit Code:  137" in digest("\n".join(lines), 300, "T1")


def test_json_says_what_it_holds_and_a_line_of_a_megabyte_shows_its_fault() -> None:
    items = [{"pod": f"p{n}", "message": "all is well here"} for n in range(20_000)]
    items[12_345]["message"] = "OOMKilled by the kernel"
    shown = digest(json.dumps({"status": "success", "items": items}), 500, "T1")
    assert '[json: {status: "success", items: 20000 x {pod: "p0", message: "all is well here"}}]' in shown
    assert "OOMKilled by the kernel" in shown


def test_two_routes_to_one_service_are_told_from_two_hundred_that_are_right() -> None:
    routes = [f"- id: r{n}\n  uri: http://service-{'five' if n in (5, 99) else n}:80" for n in range(200)]
    shown = digest("\n".join(routes), 500, "T1")
    assert "- id: r99\n  uri: http://service-five:80" in shown
