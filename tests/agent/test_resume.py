"""A run cut between any two events and resumed ends in the same report, and asks no model twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import RunLimits
from agent.errors import ContextOverflow, Permanent
from agent.events import Event, Finished, Started, StepStarted
from agent.model import Reply, Usage
from agent.scripted import Request, ScriptedModel, calls, says
from agent.spill import MemoryResults
from agent.tools import ToolResult
from tests.support.cases import a_case, a_draft, a_tool, an_investigator, report_of, stored
from tests.support.examples import examples

Script = Callable[[int], Reply | Exception]  # a model's answer by how many assistant messages it sees


def asks(*queries: str, text: str = "") -> Reply:
    return calls(*[("loki_query", {"query": query}) for query in queries], text=text)


LONG = "\n".join(f"line {number}: connection refused" for number in range(300))


def scripted(lines: Sequence[Reply | Exception], name: str = "first", window: int = 128_000) -> ScriptedModel:
    """Answers by how far the conversation is, as a model would, not by how often it was asked."""

    def answer(request: Request) -> Reply:
        said = sum(message["role"] in ("assistant", "user") for message in request.messages) - 1
        line = lines[min(said, len(lines) - 1)]
        if isinstance(line, Exception):
            raise line
        return line

    return ScriptedModel(answer, name=name, window_tokens=window)


SCENARIOS: dict[str, list[Reply | Exception]] = {
    "answers at once": [says("It is the disk.")],
    "parallel calls, twins and a bad one": [
        asks("a", "b", "a"),
        calls(("loki_query", {"query": "c"}), ("nope", {}), ("loki_query", "{'x'")),
        calls(("report", a_draft("connection refused"))),
    ],
    "many twins, then a repeat": [asks(*["a"] * 9), asks("a"), asks("a"), says("It is the disk.")],
    "a repaired report": [
        asks("a"),
        calls(("report", a_draft("nobody said this"))),
        calls(("report", a_draft("connection refused")), ("loki_query", {"query": "z"})),
    ],
    "nudged, then failed over": [asks("a"), says(""), says(""), says("")],
    "out of steps": [asks("a", text="Perhaps the disk."), *[asks(str(number)) for number in range(20)]],
    "refused": [asks("a"), Permanent("401")],
}


# The provider's own counts change the estimate, and with it when the history is compacted.
SCENARIOS["counted by the provider"] = [
    calls(("loki_query", {"query": str(turn)}), usage=Usage(input_tokens=2_000 + 700 * turn, output_tokens=20))
    for turn in range(20)
]


def play(lines: Sequence[Reply | Exception], journal: Sequence[Event], results: MemoryResults, window: int = 128_000):
    first, second = scripted(lines, window=window), scripted([says("The second model says: disk.")], "second", window)
    tool = a_tool(answer=lambda arguments: ToolResult.success(f"{arguments['query']}\n{LONG}"))
    investigator = an_investigator(first, second, tools=[tool], results=results, steps=6, result_tokens=600)
    return investigator.run(a_case(), journal), (first, second)


def asked(models: Sequence[ScriptedModel]) -> list[str]:
    return [json.dumps([m.name, r.messages, r.tools], sort_keys=True) for m in models for r in m.requests]


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("window", [128_000, 6_000])
def test_cut_anywhere_and_resumed_it_is_the_same_run(name: str, window: int) -> None:
    lines = SCENARIOS[name]
    run, models = play(lines, (), MemoryResults(), window)
    whole = list(run)
    for cut in range(len(whole) + 1):
        results = MemoryResults()
        run, before = play(lines, (), results, window)
        prefix = list(islice(run, cut))
        run.close()
        run, after = play(lines, stored(prefix), results, window)
        rest = list(run)
        assert report_of(rest) == report_of(whole), cut
        assert sorted(asked(before) + asked(after)) == sorted(asked(models)), cut
        assert sum(isinstance(event, Started) for event in prefix + rest) == 1
        steps = [event.step for event in prefix + rest if isinstance(event, StepStarted)]
        assert steps == sorted(set(steps))


def test_results_that_did_not_survive_are_taken_from_the_journal() -> None:
    lines = [asks("a"), calls(("report", a_draft("connection refused")))]
    run, _ = play(lines, (), MemoryResults())
    whole = list(run)
    run, _ = play(lines, stored(whole[:5]), MemoryResults())
    assert report_of(list(run)).evidence[0].verified


def test_a_finished_journal_gives_its_report_again_and_asks_nobody() -> None:
    run, _ = play([says("It is the disk.")], (), MemoryResults())
    whole = list(run)
    run, models = play([says("Something else.")], stored(whole), MemoryResults())
    assert list(run) == [Finished(report=report_of(whole))]
    assert asked(models) == []


def test_a_compaction_forced_by_a_refusal_is_not_repeated_on_resume() -> None:
    lines: list[Reply] = [asks("a"), asks("b"), asks("c")]

    def answer(request: Request) -> Any:
        if "[cleared" in str(request.messages) or "Earlier turns" in str(request.messages):
            return says("It is the disk.")
        said = sum(message["role"] == "assistant" for message in request.messages)
        if said == 3:
            raise ContextOverflow("too long")
        return lines[said]

    tool = a_tool(answer=lambda arguments: ToolResult.success(f"{arguments['query']}\n{LONG}"))
    whole_model = ScriptedModel(answer)
    whole = list(an_investigator(whole_model, tools=[tool]).run(a_case()))
    cut = next(number for number, event in enumerate(whole) if event.kind == "compacted") + 1
    model = ScriptedModel(answer)
    rest = list(an_investigator(model, tools=[tool]).run(a_case(), stored(whole[:cut])))
    assert report_of(rest).body == report_of(whole).body
    assert len(model.requests) == 1


TEXTS = st.sampled_from(
    [
        "",
        " ",
        "It is the disk.",
        "<think>hm",
        "<think>a</think>",
        '{"a": 1}',
        "[]",
        "```json\n{}\n```",
        "\ud800",
        "[" * 900 + "]" * 900,
    ]
)
NAMES = st.sampled_from(["loki_query", "report", "read_result", "nope", "", "a b", "x" * 90])
ARGUMENTS = st.sampled_from(
    [
        *('{"query": "a"}', '{"query": "b"}', "", "null", "[]", '{"query"', '"{\\"query\\": \\"a\\"}"', "{}"),
        *('{"ref": "T1"}', '{"query":{"a":1}}', '{"a":1}{"b":2}', "{'a': 1}", '{"query": "\\ud800"}'),
        '{"query": ' + "[" * 900 + "]" * 900 + "}",
        '{"query": NaN}',
        '{"finding": 3, "evidence": "E1", "headline": null}',
        '{"evidence": [null, {"id": 1}], "timeline": [{"at": "noon", "what": 1}]}',
        json.dumps(a_draft("connection refused")),
    ]
)
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=4)
REPLIES = st.one_of(
    st.builds(
        lambda text, finish: says(text, finish=finish),
        TEXTS,
        st.sampled_from(["stop", "length", "malformed", "content_filter"]),
    ),
    st.builds(lambda wanted, text: calls(*wanted, text=text), CALLS, TEXTS),
    st.sampled_from([Permanent("no"), ContextOverflow("long")]),
)


@examples(60)
@given(script=st.lists(REPLIES, min_size=1, max_size=6), cut=st.integers(0, 40), steps=st.integers(1, 6))
def test_whatever_a_model_does_the_run_ends_in_one_report_and_can_be_resumed(
    script: list[Reply | Exception], cut: int, steps: int
) -> None:
    results = MemoryResults()
    investigator = an_investigator(ScriptedModel(script), tools=[a_tool()], results=results, steps=steps)
    events = list(investigator.run(a_case()))
    report = report_of(events)
    assert report.headline
    assert not report.headline.lstrip().startswith(("{", "[", "<"))
    assert report.run.steps <= steps
    resumed = an_investigator(ScriptedModel(script), tools=[a_tool()], results=results, steps=steps)
    assert report_of(list(resumed.run(a_case(), stored(events[:cut])))).headline
    for answered, request in _turns(events):
        assert answered == request


@examples(40)
@given(
    script=st.lists(REPLIES, min_size=1, max_size=6),
    share=st.floats(0, 1),
    steps=st.integers(1, 6),
    window=st.sampled_from([6_000, 128_000]),
)
def test_whatever_a_model_does_a_resumed_run_is_the_same_run(
    script: list[Reply | Exception], share: float, steps: int, window: int
) -> None:
    def play_it(journal: Sequence[Event], results: MemoryResults) -> tuple[Any, list[ScriptedModel]]:
        models = [scripted(script, window=window), scripted([asks("z"), says("Disk.")], "second", window)]
        tools = [a_tool(answer=lambda arguments: ToolResult.success(f"{arguments['query']}\n{LONG}"))]
        investigator = an_investigator(*models, tools=tools, results=results, steps=steps, result_tokens=600)
        return investigator.run(a_case(), journal), models

    run, whole_models = play_it((), MemoryResults())
    whole = list(run)
    results = MemoryResults()
    run, before = play_it((), results)
    prefix = list(islice(run, int(share * len(whole))))
    run, after = play_it(stored(prefix), results)
    rest = list(run)
    assert report_of(rest) == report_of(whole)
    assert sorted(asked(before) + asked(after)) == sorted(asked(whole_models))


def _turns(events: Sequence[Event]) -> list[tuple[list[str], list[str]]]:
    """For each turn the ids of its calls and of the results it got."""
    turns: list[tuple[list[str], list[str]]] = []
    for event in events:
        if event.kind == "model_answered":
            turns.append(([call["id"] for call in event.message.get("tool_calls") or ()], []))
        elif event.kind == "tool_finished":
            turns[-1][1].append(event.call_id)
    return turns


def test_the_work_of_a_step_does_not_grow_with_the_history() -> None:
    """The history is one list to which messages are added; a resumed run of many steps is folded in one pass."""
    run, models = play([asks(str(number)) for number in range(6)], (), MemoryResults())
    list(run)
    first, second = models[0].requests[1:3]
    assert all(one is other for one, other in zip(first.messages, second.messages, strict=False))
    assert RunLimits().steps == 40
