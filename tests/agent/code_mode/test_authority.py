"""What a script may call is decided in the parent, for each call."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agent.code_mode.authority import INSISTING, Authority, Memory
from agent.code_mode.bridge import TEXT, Answer, TooMany
from agent.code_mode.tool import Unrecorded
from agent.deadline import Deadline
from agent.errors import ToolError
from agent.tools import ResultStatus, Tool, ToolContext, ToolResult
from tests.support.cases import ALERT, a_tool


class Redacting(Unrecorded):
    def redact(self, text: str) -> str:
        return text.replace("hunter2", "<redacted:1>")


def an_authority(*tools: Tool, sub_calls: Any = None, **changes: Any) -> Authority:
    context = ToolContext(deadline=Deadline.after(60), alert=ALERT)
    options: dict[str, Any] = {"limit": 100, "result_bytes": 10_000, "call_seconds": 5.0}
    return Authority(tools, context, sub_calls or Unrecorded(), **{**options, **changes})


def said(answer: Answer) -> tuple[str, Any]:
    """Kind and value, as a script would get it."""
    return ("r", answer.body) if answer.kind == TEXT else (answer.kind, json.loads(answer.body))


def test_structure_comes_as_structure() -> None:
    rows = [{"pod": "a", "restarts": 3}]
    tool = a_tool("pods", ToolResult.success("a restarts=3", value=rows), required=())
    assert said(an_authority(tool).ask("pods", {})) == ("r", rows)


def test_text_that_is_json_comes_parsed_and_other_text_as_it_is() -> None:
    tool = a_tool("get", lambda given: ToolResult.success(given["query"]))
    authority = an_authority(tool)
    assert said(authority.ask("get", {"query": '{"a": [1]}'})) == ("r", {"a": [1]})
    assert said(authority.ask("get", {"query": "{not json"})) == ("r", "{not json")
    assert said(authority.ask("get", {"query": "12"})) == ("r", "12")


def test_nothing_found_is_not_a_failure() -> None:
    tool = a_tool("get", ToolResult.no_data("no line"))
    assert said(an_authority(tool).ask("get", {"query": "x"})) == ("n", "no line")


@pytest.mark.parametrize("name", ["report", "danger", "bash", "run_python", "elsewhere", "", "get\0", "Get"])
def test_what_is_not_on_the_list_is_not_run(name: str) -> None:
    ran: list[Any] = []

    def run(*_: Any) -> ToolResult:
        ran.append(1)
        return ToolResult.success("")

    tools = [
        a_tool("get"),
        Tool(name="report", description="", parameters={}, run=run, core=True),
        Tool(name="danger", description="", parameters={}, run=run, restricted=True),
        Tool(name="bash", description="", parameters={}, run=run),
        Tool(name="run_python", description="", parameters={}, run=run),
    ]
    authority = an_authority(*tools)
    kind, words = said(authority.ask(name, {}))
    assert kind == "e"
    assert words.startswith("Not run: ")
    assert ran == []
    assert [spec["name"] for spec in authority.specs()] == ["get"]


def test_a_tool_that_needs_approval_is_denied_with_what_to_do() -> None:
    asks = a_tool("get", ToolResult(status=ResultStatus.APPROVAL_REQUIRED))
    words = said(an_authority(asks).ask("get", {"query": "x"}))[1]
    assert words == "Not run: get needs a person's approval. Call it directly, not from a script."


def test_arguments_are_checked_against_the_schema_before_the_tool_runs() -> None:
    asked: list[dict[str, Any]] = []
    authority = an_authority(a_tool("get", asked=asked))
    wrong: tuple[dict[str, Any], ...] = ({}, {"query": []}, {"query": "x", "other": 1})
    for arguments in wrong:
        assert said(authority.ask("get", arguments))[0] == "e"
    assert asked == []
    authority.ask("get", {"query": 5})
    assert asked == [{"query": "5"}]


def test_failures_are_told_and_never_raised() -> None:
    def fail(given: dict[str, Any]) -> ToolResult:
        raise {"ours": ToolError("the API says no"), "bug": KeyError("secret")}[given["query"]]

    authority = an_authority(a_tool("get", fail))
    assert said(authority.ask("get", {"query": "ours"})) == ("e", "the API says no")
    assert said(authority.ask("get", {"query": "bug"})) == ("e", "get failed by a fault of its own (KeyError).")


def test_past_the_limit_calls_are_refused_and_in_the_end_the_run_is_stopped() -> None:
    asked: list[dict[str, Any]] = []
    authority = an_authority(a_tool("get", asked=asked), limit=2)
    for index in range(2 + INSISTING):
        authority.ask("get", {"query": str(index)})
    assert len(asked) == 2
    assert authority.exceeded
    with pytest.raises(TooMany):
        authority.ask("get", {"query": "more"})


def test_the_same_call_with_the_same_result_is_made_twice_and_then_remembered() -> None:
    asked: list[dict[str, Any]] = []
    memory = Memory()
    for _ in range(3):  # three scripts of one investigation
        authority = an_authority(a_tool("get", ToolResult.success("same"), asked=asked), memory=memory)
        assert {said(authority.ask("get", {"query": "x"})) for _ in range(5)} == {("r", "same")}
    assert len(asked) == 2


def test_a_call_whose_result_changes_is_made_again() -> None:
    count = iter(range(100))
    authority = an_authority(a_tool("get", lambda _given: ToolResult.success(f"state {next(count)}")))
    assert [said(authority.ask("get", {"query": "x"}))[1] for _ in range(4)] == [f"state {n}" for n in range(4)]


def test_equal_calls_at_the_same_time_are_one() -> None:
    both, asked = threading.Barrier(2), []

    def slow(given: dict[str, Any]) -> ToolResult:
        asked.append(given)
        both.wait(5)
        return ToolResult.success("once")

    authority = an_authority(a_tool("get", slow))
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(authority.ask, "get", {"query": "x"}) for _ in range(8)]
        both.wait(5)
        assert {said(one.result())[1] for one in waiting} == {"once"}
    assert len(asked) == 1


def test_secrets_are_out_before_a_script_can_recode_them() -> None:
    text = a_tool("text", ToolResult.success("password=hunter2 here"))
    rows = a_tool("rows", ToolResult.success("", value=[{"password": "hunter2"}]))
    authority = an_authority(text, rows, sub_calls=Redacting())
    assert said(authority.ask("text", {"query": "x"})) == ("r", "password=<redacted:1> here")
    assert said(authority.ask("rows", {"query": "x"})) == ("r", [{"password": "<redacted:1>"}])


def test_a_result_too_large_is_refused_with_its_size() -> None:
    kind, words = said(an_authority(a_tool("get", ToolResult.success("x" * 20_000))).ask("get", {"query": "x"}))
    assert (kind, "20000" in words) == ("e", True)


def test_numbers_that_json_has_no_word_for_become_null() -> None:
    rows = [{"value": float("nan")}, {"value": float("inf")}, {"value": 1.5}]
    tool = a_tool("get", ToolResult.success("", value=rows))
    assert said(an_authority(tool).ask("get", {"query": "x"}))[1] == [{"value": None}, {"value": None}, {"value": 1.5}]
