"""The loop with a scripted model: every way a turn can go, and every way a run can end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agent.budget import RunLimits
from agent.deadline import Deadline
from agent.errors import ContextOverflow, Permanent, ToolError, Transient
from agent.events import Compacted, Event, LimitReached, ModelFailed, Nudged
from agent.ledger import Ledger
from agent.model import Message, Reply, Usage
from agent.redaction import Redactor
from agent.report import Outcome, Stop
from agent.retrying import Patience
from agent.scripted import Request, ScriptedModel, calls, says
from agent.spill import MemoryResults
from agent.tools import ToolResult
from tests.support.cases import ALERT, LOG_LINE, a_case, a_draft, a_tool, an_investigator, report_of, results_of

ASK = ("loki_query", {"query": "{app='checkout'}"})


def run(*script: Any, tools: Any = None, case: Any = None, **limits: Any) -> tuple[list[Event], ScriptedModel]:
    model = ScriptedModel(script)
    tools = [a_tool()] if tools is None else tools
    return list(an_investigator(model, tools=tools, **limits).run(case or a_case())), model


def tool_messages(request: Request) -> list[Message]:
    return [message for message in request.messages if message["role"] == "tool"]


def test_an_alert_becomes_a_checked_report() -> None:
    events, model = run(calls(ASK), calls(("report", a_draft())))
    report = report_of(events)
    assert report.outcome is Outcome.CONFIRMED
    assert report.confidence.level == "high"
    assert report.evidence[0].verified
    assert report.evidence[0].tool == "loki_query"
    assert (report.run.steps, report.run.tool_calls, report.stop) == (2, 1, Stop.ANSWERED)
    assert [event.kind for event in events] == [
        "started", "step_started", "model_answered", "tool_started", "tool_finished",
        "step_started", "model_answered", "tool_started", "tool_finished", "finished",
    ]  # fmt: skip
    assert tool_messages(model.requests[1])[0]["content"] == f"T1 success\nquery: {{app='checkout'}}\n\n{LOG_LINE}"


def test_prose_is_the_body_of_a_report_that_claims_nothing() -> None:
    text = "The database is full. Disk usage stands at 100 % since noon."
    report = report_of(run(calls(ASK), says(text))[0])
    assert (report.headline, report.body) == ("The database is full.", text)
    assert report.outcome is Outcome.INCONCLUSIVE
    assert report.confidence.level == "low"


def test_the_results_of_a_turn_stand_in_call_order() -> None:
    second_ran = threading.Event()

    def answer(arguments: dict[str, Any]) -> ToolResult:
        if arguments["query"] == "first":
            assert second_ran.wait(5)
        second_ran.set()
        return ToolResult.success(arguments["query"])

    events, model = run(
        calls(("loki_query", {"query": "first"}), ("loki_query", {"query": "second"})),
        says("Done with it."),
        tools=[a_tool(answer=answer)],
    )
    assert [(done.ref, done.content) for done in results_of(events)] == [
        ("T1", "T1 success\n\nfirst"),
        ("T2", "T2 success\n\nsecond"),
    ]
    assert [message["tool_call_id"] for message in tool_messages(model.requests[1])] == ["c0", "c1"]


def test_each_call_of_a_turn_is_answered_once_whatever_is_wrong_with_it() -> None:
    def broken(arguments: dict[str, Any]) -> ToolResult:
        raise {"bug": ZeroDivisionError("by zero"), "told": ToolError("parse error at 3"), "exit": SystemExit(3)}[
            arguments["query"]
        ]

    events, model = run(
        calls(
            ("loki_query", {"query": "bug"}),
            ("loki_query", {"query": "told"}),
            ("loki_query", {"query": "exit"}),
            ("loki_querry", {"query": "x"}),
            ("loki_query", '{"query": "prod'),
            ("loki_query", {"limit": 3}),
            ("", {}),
        ),
        says("I know now."),
        tools=[a_tool(answer=broken)],
    )
    bug, told, gone, unknown, cut, missing, nameless = [done.content for done in results_of(events)]
    assert "ZeroDivisionError" in bug
    assert told == "T2 error\n\nparse error at 3"
    assert "SystemExit" in gone
    assert "Closest: loki_query" in unknown
    assert "not one complete JSON object" in cut
    assert "'query' is required" in missing
    assert "no tool" in nameless
    sent = model.requests[1].messages
    ids = [call["id"] for call in sent[-8]["tool_calls"]]
    assert [message["tool_call_id"] for message in sent[-7:]] == ids
    report_of(events)


def test_names_and_arguments_that_a_provider_would_refuse_are_made_legal_in_the_history() -> None:
    _, model = run(calls(("kubectl get pods", "{'ns': 'prod'}"), ("", "")), says("I know now."))
    first, second = [call["function"] for call in model.requests[1].messages[2]["tool_calls"]]
    assert first["name"].startswith("kubectl_get_pods_")
    assert first["arguments"] == "{\"unreadable_arguments\":\"{'ns': 'prod'}\"}"
    assert second["name"].startswith("unnamed_")
    assert second["arguments"] == "{}" or second["arguments"] == ""


@pytest.mark.parametrize("identity", ["call_0", "", None])
def test_missing_and_repeated_call_ids_are_rewritten(identity: Any) -> None:
    reply = calls(("loki_query", {"query": "a"}), ("loki_query", {"query": "b"}), ("loki_query", {"query": "c"}))
    same = tuple(type(call)(id=identity, name=call.name, arguments=call.arguments) for call in reply.calls)
    _, model = run(Reply(message=reply.message, calls=same, finish="tool_calls"), says("Now I know."))
    sent = model.requests[1].messages
    ids = [call["id"] for call in sent[2]["tool_calls"]]
    assert len(set(ids)) == 3
    assert all(ids)
    assert [message["tool_call_id"] for message in sent[3:]] == ids


def test_identical_calls_of_a_turn_run_once_and_each_gets_the_result() -> None:
    asked: list[dict[str, Any]] = []
    events, _ = run(calls(*[ASK] * 9), says("Now I know."), tools=[a_tool(asked=asked)])
    assert len(asked) == 1
    assert len(results_of(events)) == 9
    assert all(LOG_LINE in done.content for done in results_of(events))


def test_calls_over_the_cap_are_answered_as_not_run() -> None:
    asked: list[dict[str, Any]] = []
    many = [("loki_query", {"query": str(number)}) for number in range(7)]
    events, _ = run(calls(*many), says("Now I know."), tools=[a_tool(asked=asked)], calls_per_turn=5, parallel_calls=2)
    assert len(asked) == 5
    assert ["Not run" in done.content for done in results_of(events)] == [False] * 5 + [True] * 2


def test_the_same_call_with_the_same_result_is_not_run_a_third_time() -> None:
    asked: list[dict[str, Any]] = []
    other = ("loki_query", '{ "query" : "{app=\'checkout\'}" }')
    events, _ = run(calls(ASK), calls(other), calls(ASK), says("Now I know."), tools=[a_tool(asked=asked)])
    assert len(asked) == 2
    assert "same result before (T1, T2)" in results_of(events)[2].content


def test_a_call_whose_result_changes_may_be_repeated() -> None:
    number = iter(range(9))
    tool = a_tool(answer=lambda _: ToolResult.success(f"{next(number)} restarts"))
    events, _ = run(*[calls(ASK)] * 4, says("Now I know."), tools=[tool])
    assert all("restarts" in done.content for done in results_of(events))


def test_going_in_circles_ends_in_an_answer() -> None:
    events, model = run(*[calls(("nothing_like_it", {}))] * 5, says("I give up here."), fruitless_turns=5)
    assert report_of(events).stop is Stop.STEP_LIMIT
    assert len(model.requests) == 6


def test_a_tool_that_never_returns_costs_its_call_only() -> None:
    never = threading.Event()

    def answer(arguments: dict[str, Any]) -> ToolResult:
        if arguments["query"] == "hang":
            never.wait()
        return ToolResult.success("fine")

    events, _ = run(
        calls(("loki_query", {"query": "hang"}), ("loki_query", {"query": "x"})),
        says("Now I know."),
        tools=[a_tool(answer=answer)],
        tool_seconds=0.05,
    )
    never.set()
    hung, fine = results_of(events)
    assert "no answer in time" in hung.content
    assert fine.content == "T2 success\n\nfine"


def test_a_restricted_tool_is_not_run() -> None:
    asked: list[dict[str, Any]] = []
    tool = a_tool(asked=asked)
    restricted = type(tool)(name=tool.name, description="", parameters=tool.parameters, run=tool.run, restricted=True)
    events, _ = run(calls(ASK), says("Now I know."), tools=[restricted])
    assert asked == []
    assert "approval" in results_of(events)[0].content


def test_at_the_last_step_only_the_report_is_left() -> None:
    events, model = run(calls(ASK), calls(("loki_query", {"query": "b"})), calls(("report", a_draft())), steps=3)
    assert model.requests[1].tools == ("report", "read_result", "loki_query")
    assert model.requests[2].tools == ("report",)
    assert "last reply" in model.requests[2].messages[-1]["content"]
    report = report_of(events)
    assert (report.stop, report.outcome) == (Stop.STEP_LIMIT, Outcome.CONFIRMED)
    assert report.run.steps == 3


def test_a_model_that_calls_on_at_the_last_step_gets_its_last_words_reported() -> None:
    events, model = run(
        calls(ASK, text="It seems that the database is full."), calls(("loki_query", {"query": "b"})), steps=2
    )
    assert len(model.requests) == 2
    report = report_of(events)
    assert (report.stop, report.body) == (Stop.STEP_LIMIT, "It seems that the database is full.")
    assert "last step" in results_of(events)[1].content


def test_without_any_words_the_report_says_what_was_looked_at() -> None:
    report = report_of(run(calls(ASK), calls(("loki_query", {"query": "b"})), steps=2)[0])
    assert report.outcome is Outcome.INCONCLUSIVE
    assert "step limit" in report.headline
    assert "T1 loki_query success" in report.body


def test_running_out_of_tokens_asks_for_one_last_answer() -> None:
    usage = Usage(input_tokens=40_000, output_tokens=100)
    events, model = run(calls(ASK, usage=usage), calls(ASK, usage=usage), says("It is the disk."), tokens=85_000)
    assert [event.limit for event in events if isinstance(event, LimitReached)] == ["token_limit"]
    assert model.requests[2].tools == ("report",)
    assert (report_of(events).stop, report_of(events).body) == (Stop.TOKEN_LIMIT, "It is the disk.")


def test_money_is_a_ceiling() -> None:
    usage = Usage(input_tokens=10, output_tokens=10, cost_usd=0.9)
    events, model = run(*[calls(ASK, usage=usage)] * 9, cost_usd=2.0)
    assert report_of(events).stop is Stop.COST_LIMIT
    assert len(model.requests) == 2
    assert report_of(events).run.cost_usd == pytest.approx(1.8)


def test_near_the_deadline_an_answer_is_forced_and_past_it_none_is_asked() -> None:
    seconds = [0.0]
    deadline = Deadline(100.0, lambda: seconds[0])

    def slow(arguments: dict[str, Any]) -> ToolResult:
        seconds[0] += 45
        return ToolResult.success(str(seconds[0]))

    script = [calls(("loki_query", {"query": "a"})), calls(("loki_query", {"query": "b"})), says("It is the disk.")]
    events, model = run(*script, tools=[a_tool(answer=slow)], case=a_case(deadline=deadline))
    assert report_of(events).stop is Stop.TIME_LIMIT
    assert model.requests[2].tools == ("report",)

    seconds[0] = 200.0
    events, model = run(*script, case=a_case(deadline=deadline))
    assert model.requests == []
    assert report_of(events).stop is Stop.TIME_LIMIT


BLANK = says("")


@pytest.mark.parametrize(
    "useless",
    [
        BLANK,
        says("  \n"),
        Reply(message={"role": "assistant", "content": None}, finish="malformed"),
        Reply(message={"role": "assistant", "content": "", "reasoning_content": "The user wants..."}),
        says("<think>I should look at the pods"),
        says('{"name": "loki_query", "arguments": {"query": "x"}}'),
        says('```json\n{"name": "loki_query", "arguments": {"query": "x"}}\n```'),
        says('<tool_call>{"name": "loki_query", "arguments": {}}</tool_call>'),
        says('{"status": "ok", "pods": 3}'),
        says("The cause is that the dat", finish="length"),
        says("The attacker then", finish="content_filter"),
    ],
)
def test_a_reply_that_is_no_answer_is_asked_about_again(useless: Reply) -> None:
    events, model = run(useless, says("It is the disk."))
    assert report_of(events).body == "It is the disk."
    assert len(model.requests) == 2
    assert model.requests[1].messages[-1]["role"] == "user"
    assert all(message.get("content") for message in model.requests[1].messages)


def test_an_answer_that_is_always_cut_is_still_an_answer() -> None:
    report = report_of(run(*[says("The cause is that the dat", finish="length")] * 3)[0])
    assert (report.body, report.stop) == ("The cause is that the dat", Stop.ANSWERED)


def test_after_two_nudges_the_next_model_takes_over_the_conversation() -> None:
    first = ScriptedModel([calls(ASK), BLANK, BLANK, BLANK], name="first")
    second = ScriptedModel([says("It is the disk.")], name="second")
    events = list(an_investigator(first, second, tools=[a_tool()]).run(a_case()))
    assert sum(isinstance(event, Nudged) for event in events) == 2
    assert report_of(events).body == "It is the disk."
    assert report_of(events).run.model == "first, second"
    assert LOG_LINE in str(second.requests[0].messages)


def test_a_model_that_only_ever_says_nothing_ends_in_an_inconclusive_report() -> None:
    report = report_of(run(*[BLANK] * 9)[0])
    assert (report.stop, report.outcome) == (Stop.MODEL_FAILED, Outcome.INCONCLUSIVE)
    assert "no model could answer" in report.headline


def test_raw_json_is_never_the_report() -> None:
    text = '{"name": "loki_query", "arguments": {"query": "x"}}'
    report = report_of(run(*[says(text)] * 9)[0])
    assert "arguments" not in report.body
    assert "arguments" not in report.headline


def test_a_draft_written_as_json_text_is_read_as_a_draft() -> None:
    import json

    events, _ = run(calls(ASK), says(f"```json\n{json.dumps(a_draft())}\n```"))
    assert report_of(events).outcome is Outcome.CONFIRMED


def test_an_answer_that_quotes_a_call_is_left_alone() -> None:
    text = 'The agent sent {"name": "loki_query"} and the gateway refused it.'
    assert report_of(run(says(text))[0]).body == text


def test_thinking_is_stripped_from_what_is_published() -> None:
    report = report_of(run(says("<think>maybe the disk?</think>It is the disk."))[0])
    assert report.body == "It is the disk."


def test_an_overload_is_waited_for_as_told_and_a_new_burst_counts_afresh() -> None:
    pauses: list[float] = []
    patience = Patience(attempts=5, sleep=pauses.append, jitter=lambda: 0.0)
    busy = Transient("429", retry_after=4)
    model = ScriptedModel([*[busy] * 4, calls(ASK), *[busy] * 4, says("It is the disk.")])
    events = list(an_investigator(model, tools=[a_tool()], patience=patience).run(a_case()))
    assert pauses == [4.0] * 8
    assert report_of(events).body == "It is the disk."


def test_a_wait_past_the_deadline_goes_to_the_next_model_at_once() -> None:
    pauses: list[float] = []
    patience = Patience(sleep=pauses.append)
    first = ScriptedModel([Transient("429", retry_after=7_200)], name="first")
    second = ScriptedModel([says("It is the disk.")], name="second")
    events = list(an_investigator(first, second, patience=patience).run(a_case()))
    assert pauses == []
    assert [event.model for event in events if isinstance(event, ModelFailed)] == ["first"]
    assert report_of(events).run.model == "second"


def test_when_every_model_fails_the_alert_still_gets_a_report() -> None:
    events, _ = run(Permanent("401 wrong key"))
    report = report_of(events)
    assert (report.stop, report.outcome) == (Stop.MODEL_FAILED, Outcome.INCONCLUSIVE)
    assert "401 wrong key" in report.body


def test_out_of_budget_the_rules_have_the_last_word() -> None:
    usage = Usage(input_tokens=10, output_tokens=10, cost_usd=9.0)
    first = ScriptedModel([calls(ASK, text="Let me look.", usage=usage)], name="first")
    rules = ScriptedModel([calls(("report", a_draft()))], name="rules")
    report = report_of(list(an_investigator(first, rules, tools=[a_tool()], cost_usd=5.0).run(a_case())))
    assert (report.stop, report.outcome, report.run.mode) == (Stop.COST_LIMIT, Outcome.CONFIRMED, "mixed")
    assert rules.requests[0].tools == ("report",)


def test_a_last_reply_that_is_no_answer_ends_the_run_or_goes_to_the_rules() -> None:
    events, model = run(says(""), says("never asked"), steps=1)
    assert len(model.requests) == 1
    assert (report_of(events).stop, report_of(events).outcome) == (Stop.STEP_LIMIT, Outcome.INCONCLUSIVE)
    first = ScriptedModel([calls(ASK), says("")], name="first")
    rules = ScriptedModel([calls(("report", a_draft()))], name="rules")
    report = report_of(list(an_investigator(first, rules, tools=[a_tool()], steps=2).run(a_case())))
    assert (report.stop, report.outcome) == (Stop.STEP_LIMIT, Outcome.CONFIRMED)


def test_with_no_time_left_the_rules_still_report() -> None:
    first = ScriptedModel([says("never asked")], name="first")
    rules = ScriptedModel([calls(("report", a_draft()))], name="rules")
    report = report_of(list(an_investigator(first, rules).run(a_case(deadline=Deadline.after(0)))))
    assert (report.stop, report.run.model, report.run.mode) == (Stop.TIME_LIMIT, "rules", "rules")


def test_a_provider_that_stalls_leaves_time_for_the_next_model() -> None:
    seconds = [0.0]

    def stall(_request: Request) -> Reply:
        seconds[0] += 30
        raise Transient("no complete answer within 30 s")

    first, second = ScriptedModel(stall, name="first"), ScriptedModel([says("It is the disk.")], name="second")
    deadline = Deadline(200.0, lambda: seconds[0])
    events = list(
        an_investigator(first, second, patience=Patience(sleep=lambda _: None)).run(a_case(deadline=deadline))
    )
    assert report_of(events).body == "It is the disk."
    assert deadline.remaining > 60


def test_without_any_model_the_alert_still_gets_a_report() -> None:
    assert report_of(list(an_investigator().run(a_case()))).stop is Stop.MODEL_FAILED


def test_an_overflow_is_compacted_and_asked_once_more() -> None:
    big = a_tool(answer=lambda arguments: ToolResult.success("\n".join(f"{arguments} {n}" for n in range(900))))
    several = [calls(("loki_query", {"query": str(number)})) for number in range(4)]
    events, model = run(*several, ContextOverflow("too long"), says("It is the disk."), tools=[big])
    assert report_of(events).body == "It is the disk."
    assert [event.reason for event in events if isinstance(event, Compacted)] == ["overflow"]
    before, after = model.requests[-2:]
    assert len(str(after.messages)) < len(str(before.messages)) / 1.5


def test_a_model_that_always_overflows_gives_way() -> None:
    events, model = run(*[ContextOverflow("too long")] * 9)
    assert report_of(events).stop is Stop.MODEL_FAILED
    assert len(model.requests) == 4


def test_near_the_window_the_oldest_results_go_and_stay_readable() -> None:
    text = "\n".join(f"line {number} of a long result" for number in range(400))
    tool = a_tool(answer=lambda arguments: ToolResult.success(f"{arguments['query']}\n{text}"))
    script = [calls(("loki_query", {"query": f"q{number}"})) for number in range(12)]
    model = ScriptedModel(
        [*script, calls(("read_result", {"ref": "T1", "lines": 1})), says("Fine.")],
        window_tokens=9_000,
        without_tools=says("Logs of q0 to q3 hold nothing."),
    )
    events = list(an_investigator(model, tools=[tool]).run(a_case()))
    assert any(isinstance(event, Compacted) for event in events)
    assert "1: q0" in results_of(events)[-1].content
    for request in model.requests:
        assert len(str(request.messages)) < 9_000 * 3


def test_the_repeat_guard_survives_compaction() -> None:
    asked: list[dict[str, Any]] = []
    tool = a_tool(answer=ToolResult.success("x" * 9_000), asked=asked)
    model = ScriptedModel([*[calls(ASK)] * 7, says("Fine.")], window_tokens=6_000)
    report_of(list(an_investigator(model, tools=[tool], result_tokens=1_500).run(a_case())))
    assert len(asked) == 2


def test_a_report_with_a_wrong_quote_may_be_repaired_once() -> None:
    wrong = calls(("report", a_draft("nobody wrote this line")))
    events, model = run(calls(ASK), wrong, calls(("report", a_draft())))
    assert report_of(events).outcome is Outcome.CONFIRMED
    assert "not in the result of T1" in model.requests[2].messages[-1]["content"]


def test_a_report_that_stays_wrong_is_accepted_and_marked() -> None:
    wrong = calls(("report", a_draft("nobody wrote this line")))
    events, model = run(calls(ASK), wrong, wrong)
    report = report_of(events)
    assert len(model.requests) == 3
    assert report.outcome is Outcome.INCONCLUSIVE
    assert (report.checks.quotes_failed, report.evidence[0].verified, report.root_cause) == (1, False, None)


def test_secrets_never_reach_the_model_the_store_or_the_report() -> None:
    from agent.redaction import Redactor

    results = MemoryResults()
    tool = a_tool(
        answer=ToolResult.success("DATABASE_URL=postgres://app:zz-test-9981@db/shop", query="token=zz-test-9981")
    )
    model = ScriptedModel(
        [calls(ASK), calls(("report", a_draft("postgres://app:<redacted:1>@db", body="see zz-test-9981")))]
    )
    investigator = an_investigator(model, tools=[tool], results=results)
    events = list(investigator.run(a_case(redact=Redactor(["zz-test-9981"]))))
    seen = str(model.requests[1].messages) + (results.get("T1") or "") + repr(report_of(events))
    assert "zz-test-9981" not in seen
    assert report_of(events).checks.secrets_redacted == 1


def test_failed_sources_are_named_from_the_record() -> None:
    events, _ = run(
        calls(ASK),
        says("All is well, Loki shows no errors."),
        tools=[a_tool(answer=ToolResult.failed("connection refused"))],
    )
    assert report_of(events).sources_failed == ("loki_query: connection refused",)


def test_an_assistant_message_goes_back_as_it_came() -> None:
    thinking = {
        "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s1"}],
        "reasoning_content": "hm",
    }
    reply = calls(ASK, text="Looking.")
    _, model = run(
        Reply(message={**reply.message, **thinking}, text=reply.text, calls=reply.calls, finish="tool_calls"),
        says("Fine."),
    )
    assert model.requests[1].messages[2] == {**reply.message, **thinking}


def test_one_run_leaves_nothing_for_the_next() -> None:
    model = ScriptedModel([calls(ASK), says("One."), calls(ASK), says("Two.")])
    investigator = an_investigator(model, tools=[a_tool()])
    assert report_of(list(investigator.run(a_case()))).body == "One."
    second = report_of(list(investigator.run(a_case())))
    assert (second.body, second.run.tool_calls) == ("Two.", 1)


def test_the_limits_have_sane_defaults() -> None:
    limits = RunLimits()
    assert limits.parallel_calls <= limits.calls_per_turn
    assert limits.result_tokens < limits.turn_tokens


def long_run(turns: int, **given: Any) -> tuple[list[Event], ScriptedModel]:
    """A run of many long results in a small window."""
    text = "\n".join(f"line {number} of a long result" for number in range(400))
    tool = a_tool(answer=lambda arguments: ToolResult.success(f"{arguments['query']}\n{text}"))
    script = [calls(("loki_query", {"query": f"q{number}"})) for number in range(turns)]
    model = ScriptedModel(
        [*script, calls(("report", a_draft("q3 line 0 of a long", "T4")))], window_tokens=9_000, **given
    )
    case = a_case(alert=ALERT.model_copy(update={"body": "SENTINEL-OF-THE-ALERT"}), instructions="PINNED-ORDER")
    return list(an_investigator(model, tools=[tool]).run(case)), model


def test_alert_prompt_and_the_calls_made_survive_any_number_of_compactions() -> None:
    events, model = long_run(36, without_tools=says("T2 shows 17 errors; T3 rules out the disk."))
    compactions = [event for event in events if isinstance(event, Compacted)]
    assert len(compactions) >= 3
    first, last = model.requests[0].messages, model.requests[-1].messages
    assert list(last[:2]) == list(first)
    assert all(one is other for one, other in zip(first, last, strict=False))
    assert "SENTINEL-OF-THE-ALERT" in str(last[1]["content"])
    assert "PINNED-ORDER" in str(last[1]["content"])
    note = str(last[2]["content"])
    for number in (1, 9, 20):
        assert f'T{number} loki_query {{"query":"q{number - 1}"}}: success' in note
    assert "T2 shows 17 errors; T3 rules out the disk." in note
    assert report_of(events).evidence[0].verified


def test_without_a_summary_the_cut_is_made_all_the_same() -> None:
    events, model = long_run(30, without_tools=Reply(message={"role": "assistant"}, finish="malformed"))
    assert report_of(events).evidence[0].verified
    assert "T1 loki_query" in str(model.requests[-1].messages[2])


def test_what_a_summary_costs_is_counted_and_of_calls_too_many_to_name_the_number_stays() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=100, cost_usd=0.01)
    events, _model = long_run(39, without_tools=says("Nothing so far.", usage=usage))
    summed = sum(isinstance(event, Compacted) and event.input_tokens == 1_000 for event in events)
    assert summed >= 2
    assert report_of(events).run.tokens_in == 1_000 * summed
    assert report_of(events).run.cost_usd == pytest.approx(0.01 * summed)
    ledger = Ledger()
    for event in results_of(events):
        ledger.add(event)
    told = ledger.told(600)
    assert len(told) <= 640
    assert told.startswith("(")
    assert "T39 loki_query" in told


def test_a_summary_is_asked_for_without_tool_traffic_and_without_secrets_coming_back() -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        if not request.tools:
            asked.append(request)
            return says("The password=hunter2x was in T1.")
        turn = sum("loki_query" in str(one.messages[-2:]) for one in model.requests)
        return calls(("loki_query", {"query": str(turn)})) if len(model.requests) < 40 else says("It is the disk.")

    text = "x y z " * 900
    model = ScriptedModel(answer, window_tokens=9_000)
    tool = a_tool(answer=lambda arguments: ToolResult.success(f"{len(model.requests)} {text}"))
    list(an_investigator(model, tools=[tool], steps=60).run(a_case(redact=Redactor())))
    assert asked
    assert all(message["role"] in ("system", "user") for request in asked for message in request.messages)
    assert "hunter2x" not in str(model.requests[-1].messages)
