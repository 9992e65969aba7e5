"""Tools too many to describe: named, found, and then offered, with what stood before unchanged."""

from __future__ import annotations

from typing import Any

from agent.finding import best
from agent.scripted import ScriptedModel, calls, says
from agent.toolbox import Toolbox
from agent.tools import Tool
from tests.support.cases import a_case, a_tool, an_investigator, report_of, results_of, stored

CORE = ("report", "read_result")


def many(count: int = 40) -> list[Tool]:
    words = "long words about what it does " * 20
    named = [a_tool(f"vendor_{number}") for number in range(count)]
    padded = [Tool(name=t.name, description=words, parameters=t.parameters, run=t.run) for t in named]
    logs = Tool(name="pod_logs", description="Logs of a pod.", parameters=a_tool().parameters, run=a_tool().run)
    return [*padded, logs]


def run(*script: Any, journal: Any = (), **limits: Any) -> tuple[list[Any], ScriptedModel]:
    model = ScriptedModel(script)
    return list(an_investigator(model, tools=many(), schema_tokens=3_000, **limits).run(a_case(), journal)), model


def test_past_the_budget_only_names_are_shown_and_what_is_found_is_offered() -> None:
    events, model = run(
        calls(("find_tools", {"query": "logs of a pod"})), calls(("pod_logs", {"query": "a"})), says("It is the disk.")
    )
    first, second, third = (request.tools for request in model.requests)
    assert first == (*CORE, "find_tools")
    assert second == third == (*CORE, "find_tools", "pod_logs")
    assert "pod_logs: Logs of a pod." in results_of(events)[0].content
    assert "ERROR payments-db" in results_of(events)[1].content
    report_of(events)


def test_a_resumed_run_still_knows_what_was_found() -> None:
    events, _ = run(calls(("find_tools", {"query": "pod_logs, vendor_3"})), says("It is the disk."))
    cut = next(number for number, event in enumerate(events) if event.kind == "tool_finished") + 1
    _, model = run(says("It is the disk."), journal=stored(events[:cut]))
    assert model.requests[0].tools == (*CORE, "find_tools", "vendor_3", "pod_logs")


def test_nothing_that_fits_is_an_error_with_the_names() -> None:
    events, _ = run(calls(("find_tools", {"query": "zzz"})), says("It is the disk."))
    assert "There are: vendor_0, vendor_1" in results_of(events)[0].content


def test_a_deferred_tool_that_is_called_all_the_same_runs() -> None:
    events, _ = run(calls(("vendor_7", {"query": "a"})), says("It is the disk."))
    assert results_of(events)[0].status == "success"


def test_within_the_budget_nothing_is_deferred() -> None:
    toolbox = Toolbox(many())
    assert "find_tools" not in toolbox.names()
    assert len(toolbox.offered(["pod_logs"])) == len(many())


def test_names_come_before_words() -> None:
    assert [tool.name for tool in best("vendor_2 `vendor_4`", many())] == ["vendor_2", "vendor_4"]
    assert best("logs", many())[0].name == "pod_logs"


def test_in_a_small_window_tools_are_named_although_the_budget_would_allow_more() -> None:
    model = ScriptedModel([says("It is the disk.")], window_tokens=16_000)
    report_of(list(an_investigator(model, tools=many()).run(a_case())))
    assert model.requests[0].tools == (*CORE, "find_tools")
    wide = ScriptedModel([says("It is the disk.")], window_tokens=200_000)
    report_of(list(an_investigator(wide, tools=many(), schema_tokens=50_000).run(a_case())))
    assert len(wide.requests[0].tools) == 43
