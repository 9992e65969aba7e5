"""The whole loop against strict fakes of the providers, over real HTTP through the real LiteLLM."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from agent.approval import Decision
from agent.deadline import Deadline
from agent.errors import ContextOverflow
from agent.events import ApprovalAsked, Event
from agent.report import Outcome, Stop
from agent.retrying import Patience
from agent.tools import ToolResult
from tests.support.cases import LOG_LINE, a_case, a_draft, a_tool, an_investigator, report_of, results_of, stored
from tests.support.providers.families import FAMILIES
from tests.support.providers.server import StrictProvider
from tests.support.providers.turn import Turn

# LiteLLM's own types for Gemini make pydantic warn once a process.
pytestmark = pytest.mark.filterwarnings("ignore:Item.* on TypedDict class")
ALL = pytest.mark.parametrize("family", FAMILIES)
CASE = a_case(deadline=Deadline.never())


ODD = {
    "type": "object",
    "properties": {
        "pod": {"anyOf": [{"$ref": "#/$defs/Name"}, {"type": "null"}], "default": None},
        "count": {"type": ["integer", "string"], "examples": [1]},
        "kinds": {"type": "array"},
    },
    "additionalProperties": False,
    "$defs": {"Name": {"type": "string", "pattern": "^[a-z]+$"}},
}


def ask(*queries: str, **given: Any) -> Turn:
    return Turn(calls=tuple(("loki_query", {"query": query}) for query in queries), **given)


def answer(arguments: dict[str, Any]) -> ToolResult:
    match arguments["query"]:
        case "crash":
            raise ZeroDivisionError("by zero")
        case "nothing":
            return ToolResult.no_data("0 lines")
        case "long":
            return ToolResult.success("\n".join(f"line {n}: connection refused by peer {n}" for n in range(2_000)))
    return ToolResult.success(LOG_LINE)


def investigate(*providers: StrictProvider, **limits: Any) -> list[Event]:
    tool = a_tool(answer=answer)
    restricted = replace(a_tool("kubernetes_exec", answer=answer), restricted=True)
    bare = replace(a_tool("plan_show"), parameters={"type": "object", "properties": {}})
    plugin = replace(a_tool("a plug-in's tool whose name is far longer than the sixty-four characters"), parameters=ODD)
    models = [provider.model() for provider in providers]
    patience = Patience(attempts=3, sleep=lambda _seconds: None, jitter=lambda: 0.0)
    return list(an_investigator(*models, tools=[tool, restricted, bare, plugin], patience=patience, **limits).run(CASE))


REPORT = Turn(calls=(("report", a_draft()),))
REPORT_T2 = Turn(calls=(("report", a_draft(call="T2")),))


@ALL
def test_a_run_with_all_that_can_go_wrong_with_calls_is_never_refused(family: str) -> None:
    script = [
        ask("first", "second", thinking="Logs first."),
        ask("first", "crash", "nothing", "long", text="Now the rest.", thinking="Look further."),
        Turn(calls=(("kubernetes_exec", {"query": "rm"}), ("nope", {}), ("loki_query", {"quarry": 1}))),
        Turn(text="", finish={"openai": "stop"}.get(family, "")),
        ask("third", thinking="Once more."),
        REPORT,
    ]
    with StrictProvider(FAMILIES[family](), script) as provider:
        events = investigate(provider)
    assert [words for words in provider.refusals if "Unsupported parameter: 'max_tokens'" not in words] == []
    report = report_of(events)
    assert (report.outcome, report.stop) == (Outcome.CONFIRMED, Stop.ANSWERED)
    assert len(provider.bodies) == len(script)
    assert len(results_of(events)) == 11


@ALL
def test_a_history_that_outgrows_the_window_is_made_smaller_and_the_run_goes_on(family: str) -> None:
    script = [*(ask(f"long{n}", f"more{n}", thinking=f"Step {n}.") for n in range(12)), REPORT]

    def long(arguments: dict[str, Any]) -> ToolResult:
        return ToolResult.success(LOG_LINE + "\n" + f"{arguments['query']} and so on " * 300)

    with StrictProvider(FAMILIES[family](), script, window=9_000) as provider:
        investigator = an_investigator(provider.model(), tools=[a_tool(answer=long)], result_tokens=1_500)
        events = list(investigator.run(CASE))
    assert "compacted" in {event.kind for event in events}
    assert [words for words in provider.refusals if "max_tokens" not in words] == []
    assert report_of(events).outcome is Outcome.CONFIRMED


@ALL
def test_a_window_smaller_than_we_were_told_is_met_by_sending_less(family: str) -> None:
    script = [*(ask(f"long{n}", thinking=f"Step {n}.") for n in range(6)), REPORT]

    def long(arguments: dict[str, Any]) -> ToolResult:
        return ToolResult.success(LOG_LINE + "\n" + f"{arguments['query']} and so on " * 400)

    with StrictProvider(FAMILIES[family](), script, window=5_500) as provider:
        events = list(
            an_investigator(provider.model(window=100_000), tools=[a_tool(answer=long)], result_tokens=1_500).run(CASE)
        )
    assert any(event.kind == "compacted" and event.reason == "overflow" for event in events)
    assert report_of(events).stop is Stop.ANSWERED


@ALL
def test_an_overflow_is_known_by_the_providers_own_words(family: str) -> None:
    with StrictProvider(FAMILIES[family](), [Turn(text="x")], window=100) as provider:
        model = provider.model(window=50_000)
        with pytest.raises(ContextOverflow):
            model.reply([{"role": "user", "content": "word " * 2_000}], [], deadline=Deadline.after(20))


@ALL
def test_at_the_last_step_the_report_tool_goes_with_the_tool_messages(family: str) -> None:
    script = [ask("first", thinking="Hm."), ask("second"), Turn(text="It is the disk. It is full.")]
    with StrictProvider(FAMILIES[family](), script) as provider:
        events = investigate(provider, steps=3)
    assert [words for words in provider.refusals if "max_tokens" not in words] == []
    assert report_of(events).stop is Stop.STEP_LIMIT
    assert report_of(events).body == "It is the disk. It is full."


@ALL
def test_a_paused_run_goes_on_with_its_denial_and_its_approval(family: str) -> None:
    script = [
        Turn(
            calls=(
                ("kubernetes_exec", {"query": "rm"}),
                ("loki_query", {"query": "a"}),
                ("kubernetes_exec", {"query": "ls"}),
            ),
            thinking="Both.",
        ),
        REPORT_T2,
    ]
    restricted = replace(a_tool("kubernetes_exec", answer=answer), restricted=True)
    with StrictProvider(FAMILIES[family](), script) as provider:
        investigator = an_investigator(provider.model(), tools=[a_tool(answer=answer), restricted], approvals=True)
        journal = list(investigator.run(CASE))
        first, second = (event for event in journal if isinstance(event, ApprovalAsked))
        decisions = {
            first.call_id: Decision(verdict="denied", digest=first.digest, reason="never"),
            second.call_id: Decision(verdict="approved", digest=second.digest),
        }
        events = list(investigator.run(CASE, stored(journal), decisions=decisions))
    assert [words for words in provider.refusals if "max_tokens" not in words] == []
    assert [done.status for done in results_of(events)] == ["error", "success", "success", "success"]
    assert report_of(events).outcome is Outcome.CONFIRMED


NAMES = list(FAMILIES)
# Each provider takes over from two others; with ROOTCAUSED_EXAMPLES set, from all.
PAIRS = [
    (first, NAMES[(place + step) % len(NAMES)])
    for place, first in enumerate(NAMES)
    for step in (range(len(NAMES)) if "ROOTCAUSED_EXAMPLES" in os.environ else (1, 3))
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_any_provider_can_take_over_from_any_other_in_mid_run(first: str, second: str) -> None:
    broken = Turn(status=401, error="the key was revoked")
    with (
        StrictProvider(
            FAMILIES[first](), [ask("a", "b", thinking="Secret."), ask("c", thinking="More."), broken]
        ) as one,
        StrictProvider(FAMILIES[second](), [ask("d", thinking="My turn."), REPORT]) as other,
    ):
        events = investigate(one, other)
    assert [words for words in one.refusals + other.refusals if "max_tokens" not in words] == []
    assert report_of(events).outcome is Outcome.CONFIRMED
    assert report_of(events).run.steps == 4
    assert LOG_LINE in str(other.bodies[0])
