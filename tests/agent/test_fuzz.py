"""Whatever models and tools do, a run ends inside its budgets in one report, and no request is one to be refused."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.approval import Decision, client_tool
from agent.deadline import Deadline
from agent.dialects import sendable
from agent.errors import ContextOverflow, Permanent, ToolError, Transient
from agent.events import Event, Paused
from agent.model import Reply, ToolCall, Usage
from agent.report import Report
from agent.retrying import Patience
from agent.safeguards import publishable
from agent.scripted import ScriptedModel, says
from agent.spill import MemoryResults
from agent.tools import ToolResult
from tests.support.cases import LOG_LINE, a_case, a_draft, a_tool, an_investigator, report_of, stored
from tests.support.examples import examples
from tests.support.providers.openai_chat import OpenAIChat

TEXTS = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                " \n",
                "It is the disk.",
                "<think>hm",
                "a</think>",
                "[]",
                "```json\n{}\n```",
                "\ud800\x00",
                "{",
                "}{",
            ),
            '{"name": "loki_query", "arguments": {}}',
            "<tool_call>{}</tool_call>",
            "# Heading\n\n- a\n- b",
            "[" * 900 + "]" * 900,
            json.dumps(a_draft()),
            '{"headline": "{}", "body": "[]", "finding": 1}',
            "x" * 30_000,
        ]
    ),
    st.text(max_size=30),
)
CONTENTS = st.one_of(
    TEXTS,
    st.none(),
    st.lists(st.one_of(st.builds(lambda t: {"type": "text", "text": t}, TEXTS), TEXTS, st.none()), max_size=3),
)
NAMES = st.one_of(
    st.sampled_from(
        ["loki_query", "loki_query", "report", "read_result", "nope", "", "multi_tool_use.parallel", "x" * 90, "Größe"]
    ),
    st.text(max_size=8),
)
ARGUMENTS = st.one_of(
    st.sampled_from(
        [
            *('{"query": "a"}', '{"query": "b"}', '{"query": "crash"}', '{"query": "long"}', '{"query": "none"}'),
            *("", "null", "[]", '{"query"', '"{\\"query\\": \\"a\\"}"', "{'a': 1}", '{"query": NaN}', "3"),
            *(
                '{"ref": "T1"}',
                '{"ref": "T1", "grep": "("}',
                '{"ref": "T1", "path": ".a[0]"}',
                '{"ref": 3, "start": -9}',
            ),
            '{"query": ' + "[" * 900 + "]" * 900 + "}",
            '{"finding": 3, "evidence": "E1", "headline": null}',
            '{"evidence": [null, {"id": 1}], "timeline": [{"at": "noon", "what": 1}], "headline": "{\\"a\\": 1}"}',
            json.dumps(a_draft()),
            json.dumps(a_draft("nobody said this")),
        ]
    ),
    st.dictionaries(
        st.sampled_from(["query", "limit", "x"]), st.one_of(st.text(max_size=5), st.integers(), st.none())
    ).map(json.dumps),
)
IDS = st.sampled_from(["", "call_0", "call_0", "a", "ü b", "y" * 200])
USAGES = st.builds(
    Usage,
    input_tokens=st.sampled_from([0, 10, 5_000, 400_000]),
    output_tokens=st.sampled_from([0, 50]),
    cost_usd=st.sampled_from([None, 0.0, 0.4]),
)


def _reply(content: Any, wanted: list[tuple[str, str, str]], finish: str, usage: Usage, extra: bool) -> Reply:
    calls = tuple(ToolCall(id=identity, name=name, arguments=arguments) for identity, name, arguments in wanted)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if extra:
        message |= {
            "reasoning_content": "hm",
            "thinking_blocks": [{"type": "thinking", "thinking": "h", "signature": "s"}],
        }
    text = content if isinstance(content, str) else ""
    return Reply(message=message, text=text, calls=calls, finish=finish, usage=usage)


REPLIES = st.one_of(
    st.builds(
        _reply,
        CONTENTS,
        st.lists(st.tuples(IDS, NAMES, ARGUMENTS), max_size=4),
        st.sampled_from(["stop", "tool_calls", "length", "content_filter", "malformed"]),
        USAGES,
        st.booleans(),
    ),
    st.sampled_from(
        [Permanent("no"), Transient("busy", retry_after=3.0), Transient("gone"), ContextOverflow("too long")]
    ),
)
SCRIPTS = st.lists(REPLIES, min_size=1, max_size=8)


def answer(arguments: dict[str, Any]) -> Any:
    match arguments.get("query"):
        case "crash":
            raise ZeroDivisionError("\ud800 by zero")
        case "b":
            raise ToolError("parse error")
        case "none":
            return ToolResult.no_data("")
        case "long":
            return ToolResult.success(f"{LOG_LINE}\n" * 3_000)
        case "a":
            return ToolResult.success(LOG_LINE)
    return "not even a result"


class Checked(ScriptedModel):
    """A scripted model that refuses what the strictest chat API refuses, loudly."""

    def reply(self, messages: Any, tools: Any, *, deadline: Deadline) -> Reply:
        body = {"model": "x", "messages": sendable("openai/x", messages), **({"tools": list(tools)} if tools else {})}
        OpenAIChat().check(json.loads(json.dumps(body)))
        return super().reply(messages, tools, deadline=deadline)


@examples(60)
@given(
    scripts=st.lists(SCRIPTS, min_size=1, max_size=3),
    steps=st.integers(1, 7),
    tokens=st.sampled_from([1_000, 30_000, 1_000_000]),
    window=st.sampled_from([3_000, 9_000, 128_000]),
)
def test_whatever_happens_a_run_ends_in_one_report_inside_its_budgets(
    scripts: list[list[Reply | Exception]], steps: int, tokens: int, window: int
) -> None:
    models = [Checked(script, name=f"m{n}", window_tokens=window) for n, script in enumerate(scripts)]
    investigator = an_investigator(
        *models,
        tools=[a_tool(answer=answer)],
        results=MemoryResults(),
        patience=Patience(attempts=2, sleep=lambda _: None),
        steps=steps,
        tokens=tokens,
        cost_usd=1.0,
        result_tokens=400,
    )
    events = list(investigator.run(a_case()))
    assert_presentable(report_of(events))
    assert report_of(events).run.steps <= steps
    assert_answered_once(events)
    assert_budgets_held(events, tokens)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tool-")]


VERDICTS = st.lists(st.sampled_from(["approved", "denied", "expired", "forged", "none", "client"]), max_size=6)


@examples(60)
@given(script=SCRIPTS, verdicts=VERDICTS)
def test_a_run_that_waits_for_somebody_ends_however_that_one_answers(
    script: list[Reply | Exception], verdicts: list[str]
) -> None:
    ran: list[dict[str, Any]] = []
    restricted = replace(a_tool("read_secret", asked=ran, required=()), restricted=True)
    renamed = {"nope": "read_secret", "": "open_page"}
    lines = [line if isinstance(line, Exception) else _calling(line, renamed) for line in script]
    model = Checked([*lines, *[says("It is the disk.")] * 9])
    shared = an_investigator(model, tools=[a_tool(answer=answer), restricted], approvals=True, steps=5)
    investigator = shared.with_tools([client_tool("open_page", "", {"type": "object", "properties": {}})])
    journal: list[Event] = []
    answers: dict[str, Any] = {"decisions": {}, "client_results": {}}
    wanted = iter(verdicts)
    for _ in range(40):
        events = list(investigator.run(a_case(), stored(journal), **answers))
        journal += events
        last = events[-1]
        if not isinstance(last, Paused):
            break
        for one in last.waiting:
            verdict: Any = next(wanted, "denied")
            if one.status == "client_pause":
                answers["client_results"][one.call_id] = ToolResult.success("seen")
            elif verdict not in ("none", "client"):
                digest = "0" * 64 if verdict == "forged" else one.digest
                decided: Any = "approved" if verdict == "forged" else verdict
                answers["decisions"].setdefault(one.call_id, Decision(verdict=decided, digest=digest))
    assert_presentable(report_of(journal))
    assert_answered_once(journal)
    approved = sum(event.kind == "decided" and event.verdict == "approved" for event in journal)
    assert len(ran) <= approved


def _calling(reply: Reply, renamed: dict[str, str]) -> Reply:
    """The reply with some of its calls made to the tools that wait."""
    made = tuple(replace(call, name=renamed.get(call.name, call.name)) for call in reply.calls)
    return replace(reply, calls=made)


def assert_presentable(report: Report) -> None:
    """Never blank, never raw JSON, and it can be encoded."""
    for text in (report.headline, report.body):
        text.encode()
        assert not text or publishable(text)
    assert report.headline.strip()


def assert_answered_once(events: Iterable[Event]) -> None:
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for event in events:
        if event.kind == "model_answered":
            asked.update(call["id"] for call in event.message.get("tool_calls") or ())
        elif event.kind == "tool_finished":
            answered[event.call_id] += 1
    assert asked == answered
    assert set(asked.values()) <= {1}


def assert_budgets_held(events: Iterable[Event], tokens: int) -> None:
    """No model was asked after the budget was used up; what one call costs is known only afterwards."""
    used, cost = 0, 0.0
    for event in events:
        if event.kind == "model_answered":
            assert used < tokens
            assert cost < 1.0
            used += event.input_tokens + event.output_tokens
            cost += event.cost_usd or 0.0
