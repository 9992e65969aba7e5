"""A finished run again, offline, from its journal: the same calls get the same answers, and the difference is told."""

from __future__ import annotations

from typing import Any

from agent.events import Event
from agent.replay import Recording, compared, report_in
from agent.scripted import ScriptedModel, calls, says
from agent.spill import MemoryResults
from agent.tools import ToolResult
from tests.support.cases import LOG_LINE, a_case, a_draft, a_tool, an_investigator, report_of, results_of, stored

ASK = ("loki_query", {"query": "a"})
LONG = "\n".join([*(f"line {number}" for number in range(2_000)), LOG_LINE])


def recorded() -> tuple[list[Event], MemoryResults]:
    results = MemoryResults()
    tool = a_tool(answer=lambda arguments: ToolResult.success(LONG if arguments["query"] == "a" else LOG_LINE))
    script = [calls(ASK), calls(("loki_query", {"query": "b"})), calls(("report", a_draft()))]
    return list(an_investigator(ScriptedModel(script), tools=[tool], results=results).run(a_case())), results


def again(journal: list[Event], results: MemoryResults | None, *script: Any, known: Any = ()) -> list[Event]:
    recording = Recording.of(stored(journal), results)
    model = ScriptedModel(script, name="other")
    return list(an_investigator(model, tools=recording.tools(known)).run(a_case()))


def test_the_same_run_again_differs_in_nothing_but_the_model() -> None:
    journal, results = recorded()
    events = again(journal, results, calls(ASK), calls(("loki_query", {"query": "b"})), calls(("report", a_draft())))
    before = report_in(journal)
    assert before is not None
    difference = compared(before, report_of(events))
    assert difference.changed == ("model",)
    assert difference.shared == (LOG_LINE,)
    assert [done.content for done in results_of(events)] == [done.content for done in results_of(journal)]


def test_what_another_model_says_stands_beside_it() -> None:
    journal, results = recorded()
    events = again(journal, results, calls(ASK), calls(("report", a_draft("line 7", headline="disk is full"))))
    before = report_in(journal)
    assert before is not None
    difference = compared(before, report_of(events))
    assert {"model", "headline", "steps", "tool calls"} <= set(difference.changed)
    assert (difference.only_before, difference.only_after) == ((LOG_LINE,), ("line 7",))
    told = "\n".join(difference.lines())
    assert "* steps " in told
    assert f"- evidence      {LOG_LINE}" in told


def test_a_call_that_was_not_recorded_is_an_error_that_names_those_that_were() -> None:
    journal, results = recorded()
    events = again(journal, results, calls(("loki_query", {"query": "z"})), says("It is the disk."))
    assert '{"query":"a"}; {"query":"b"}' in results_of(events)[0].content
    assert results_of(events)[0].status == "error"


def test_without_the_results_what_the_model_saw_is_given_and_schemas_may_be_passed_in() -> None:
    journal, _ = recorded()
    events = again(journal, None, calls(ASK), says("It is the disk."), known=[a_tool()])
    assert "[cut: shown" in results_of(events)[0].content
