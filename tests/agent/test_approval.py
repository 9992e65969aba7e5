"""Calls that wait: for a person's decision, or for the caller's result. Each is answered once, and run at most once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.approval import Decision, client_tool
from agent.events import ApprovalAsked, Event, Paused
from agent.loop import Investigator
from agent.scripted import ScriptedModel, calls, says
from agent.tools import ResultStatus, ToolResult
from tests.support.cases import a_case, a_tool, an_investigator, report_of, results_of, stored

RESTART = ("kubernetes_restart", {"query": "checkout"})
LOOK = ("loki_query", {"query": "a"})


class Bench:
    """An investigator with one restricted tool, and what it ran."""

    def __init__(self, *script: Any) -> None:
        self.ran: list[dict[str, Any]] = []
        self.model = ScriptedModel(script or [calls(LOOK, RESTART), says("It is the disk.")])
        restricted = replace(a_tool("kubernetes_restart", asked=self.ran), restricted=True)
        self.investigator: Investigator = an_investigator(self.model, tools=[a_tool(), restricted], approvals=True)

    def run(self, journal: Sequence[Event] = (), **given: Any) -> list[Event]:
        return list(self.investigator.run(a_case(), stored(journal), **given))


def asked_in(events: Sequence[Event]) -> ApprovalAsked:
    (asked,) = [event for event in events if isinstance(event, ApprovalAsked)]
    return asked


def approved(asked: ApprovalAsked, **changes: Any) -> dict[str, Decision]:
    return {asked.call_id: replace(Decision(verdict="approved", digest=asked.digest, by="ann"), **changes)}


def test_a_restricted_call_pauses_the_run_before_anything_of_its_turn_is_run() -> None:
    bench = Bench()
    events = bench.run()
    asked = asked_in(events)
    assert (asked.tool, asked.params) == RESTART
    last = events[-1]
    assert isinstance(last, Paused)
    assert [(one.call_id, one.status) for one in last.waiting] == [(asked.call_id, "approval_required")]
    assert bench.ran == []
    assert results_of(events) == []


def test_an_approved_call_runs_and_all_calls_are_answered_in_order_before_the_model_goes_on() -> None:
    bench = Bench()
    journal = bench.run()
    events = bench.run(journal, decisions=approved(asked_in(journal)))
    assert bench.ran == [RESTART[1]]
    assert [done.ref for done in results_of(events)] == ["T1", "T2"]
    assert report_of(events).body == "It is the disk."
    assert len(bench.model.requests) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"verdict": "denied", "reason": "not at night"}, "ann did not approve this call: not at night"),
        ({"verdict": "expired"}, "nobody approved"),
        ({"digest": "0" * 64}, "for other arguments"),
    ],
)
def test_denial_expiry_and_forgery_are_results_the_model_reads(changes: dict[str, Any], words: str) -> None:
    bench = Bench()
    journal = bench.run()
    events = bench.run(journal, decisions=approved(asked_in(journal), **changes))
    assert bench.ran == []
    assert words in results_of(events)[1].content
    assert results_of(events)[1].content.startswith("T2 error")
    assert words in str(bench.model.requests[1].messages[-1])
    report_of(events)


def test_a_decision_for_another_call_decides_nothing_and_nobody_is_asked_twice() -> None:
    bench = Bench()
    journal = bench.run()
    events = bench.run(journal, decisions={"other": Decision(verdict="approved", digest=asked_in(journal).digest)})
    assert [event.kind for event in events] == ["paused"]
    assert bench.run(journal)[-1].kind == "paused"


def test_the_first_decision_holds() -> None:
    bench = Bench()
    journal = bench.run()
    denied = bench.run(journal, decisions=approved(asked_in(journal), verdict="denied"))[:1]
    events = bench.run([*journal, *denied], decisions=approved(asked_in(journal)))
    assert bench.ran == []
    assert "did not approve" in results_of(events)[1].content


def test_an_approved_call_runs_once_however_often_and_wherever_the_run_is_cut_and_resumed() -> None:
    bench = Bench()
    journal = bench.run()
    rest = [says("It is the disk.")] * 2
    whole = Bench(*rest).run(journal, decisions=approved(asked_in(journal)))
    for cut in range(len(whole)):
        bench = Bench(*rest)
        before = bench.investigator.run(a_case(), stored(journal), decisions=approved(asked_in(journal)))
        kept = [next(before) for _ in range(cut)]
        before.close()  # type: ignore[attr-defined]
        events = bench.run([*journal, *kept], decisions=approved(asked_in(journal)))
        assert len(bench.ran) <= 1
        report_of(events)
        answered = [done.call_id for done in results_of([*kept, *events])]
        assert len(answered) == len(set(answered)) == 2


def test_without_anybody_to_ask_a_restricted_call_is_refused() -> None:
    bench = Bench()
    restricted = replace(a_tool("kubernetes_restart", asked=bench.ran), restricted=True)
    events = list(an_investigator(bench.model, tools=[a_tool(), restricted]).run(a_case()))
    assert "can't be given in this run" in results_of(events)[1].content
    assert bench.ran == []


def test_a_call_that_can_not_run_is_not_asked_about() -> None:
    bench = Bench(calls(("kubernetes_restart", "{'x'")), says("It is the disk."))
    assert [event.kind for event in bench.run() if event.kind in ("approval_asked", "paused")] == []


OPEN_PAGE = client_tool("open_page", "Shows a page.", {"type": "object", "properties": {"url": {"type": "string"}}})


def test_a_tool_of_the_callers_pauses_the_run_and_its_result_goes_on_from_there() -> None:
    model = ScriptedModel([calls(LOOK, ("open_page", {"url": "/x"})), says("It is the disk.")])
    shared = an_investigator(model, tools=[a_tool()])
    own = shared.with_tools([OPEN_PAGE])
    journal = list(own.run(a_case()))
    last = journal[-1]
    assert isinstance(last, Paused)
    assert [(one.tool, one.status) for one in last.waiting] == [("open_page", "client_pause")]
    given = {last.waiting[0].call_id: ToolResult.success("a red button")}
    events = list(own.run(a_case(), stored(journal), client_results=given))
    assert [done.content for done in results_of(events)][1] == "T2 success\n\na red button"
    assert report_of(events).body == "It is the disk."


def test_the_shared_instance_never_changes() -> None:
    model = ScriptedModel([says("One is enough."), says("Two is enough.")])
    shared = an_investigator(model, tools=[a_tool()])
    own = shared.with_tools([OPEN_PAGE, a_tool("loki_query")])
    report_of(list(shared.run(a_case())))
    report_of(list(own.run(a_case())))
    assert [request.tools for request in model.requests] == [
        ("report", "read_result", "loki_query"),
        ("report", "read_result", "loki_query", "open_page"),
    ]


def test_a_client_can_not_leave_a_call_unanswered_by_its_status() -> None:
    model = ScriptedModel([calls(("open_page", {"url": "/x"})), says("It is the disk.")])
    own = an_investigator(model).with_tools([OPEN_PAGE])
    journal = list(own.run(a_case()))
    given = {journal[-1].waiting[0].call_id: ToolResult(status=ResultStatus.CLIENT_PAUSE)}  # type: ignore[union-attr]
    events = list(own.run(a_case(), stored(journal), client_results=given))
    assert results_of(events)[0].status == "error"
