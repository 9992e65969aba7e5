"""Models through the real LiteLLM, over real HTTP to a scripted server on loopback."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.deadline import Deadline
from agent.errors import ContextOverflow, Permanent, RootcausedError, Transient
from agent.llm import WINDOW_TOKENS, LiteLLMModel
from agent.model import Message, Reply
from agent.report import Outcome, Stop
from agent.retrying import Patience
from agent.tools import Tool
from tests.support.cases import LOG_LINE, a_case, a_draft, a_tool, an_investigator, report_of, stored
from tests.support.openai_server import Line, OpenAIServer

REPO = Path(__file__).resolve().parents[2]
HELLO: list[Message] = [{"role": "user", "content": "hello"}]
TOOLS = [a_tool().schema()]


def a_model(server: OpenAIServer, **given: Any) -> LiteLLMModel:
    settings = {"name": "openai/our-gateway-alias", "api_key": "sk-test-LEAK-1", "api_base": server.base_url}
    return LiteLLMModel(**{**settings, **given})


def ask(
    *lines: Line, messages: Sequence[Message] = HELLO, seconds: float = 60, **given: Any
) -> tuple[Reply, OpenAIServer]:
    with OpenAIServer(lines) as server:
        return a_model(server, **given).reply(messages, TOOLS, deadline=Deadline.after(seconds)), server


def failure(*lines: Line, seconds: float = 60, **given: Any) -> RootcausedError:
    with OpenAIServer(lines) as server, pytest.raises(RootcausedError) as caught:
        a_model(server, **given).reply(HELLO, TOOLS, deadline=Deadline.after(seconds))
    assert server.count <= 1
    return caught.value


def test_an_answer_is_text_with_its_usage() -> None:
    usage = {
        "prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": 1_050,
        "prompt_tokens_details": {"cached_tokens": 400}, "completion_tokens_details": {"reasoning_tokens": 20},
    }  # fmt: skip
    reply, server = ask(
        {"text": "It is the disk.", "usage": usage}, input_usd_per_million=2.0, output_usd_per_million=10.0
    )
    assert (reply.text, reply.calls, reply.finish, reply.model) == (
        "It is the disk.",
        (),
        "stop",
        "openai/our-gateway-alias",
    )
    used = reply.usage
    assert (used.input_tokens, used.cached_tokens, used.output_tokens, used.reasoning_tokens) == (1_000, 400, 50, 20)
    assert used.cost_usd == pytest.approx(0.0025)
    sent = server.requests[0]
    assert "temperature" not in sent
    assert not sent.get("stream")
    assert sent["max_tokens"] == 8_000


def test_an_unknown_price_is_unknown_and_a_known_one_is_looked_up() -> None:
    assert ask({"text": "x"})[0].usage.cost_usd is None
    known = ask({"text": "x", "body": _body(model="gpt-4o-mini")}, name="openai/gpt-4o-mini")[0].usage.cost_usd
    assert known is not None
    assert known > 0


def _body(**changes: Any) -> dict[str, Any]:
    from tests.support.openai_server import completion

    return {**completion({"text": "x"}), **changes}


def test_the_window_is_as_configured_else_as_known_else_small() -> None:
    assert LiteLLMModel(name="openai/our-gateway-alias").window_tokens == WINDOW_TOKENS
    assert LiteLLMModel(name="openai/gpt-4o").window_tokens == 128_000
    assert LiteLLMModel(name="openai/gpt-4o", window=9_000).window_tokens == 9_000


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({"content": "  "}, ""),
        ({"content": "", "reasoning_content": "secret thoughts"}, ""),
        ({"content": "<think>hm</think>yes"}, "yes"),
        ({"content": "<think>never closed"}, ""),
    ],
)
def test_content_of_any_form_is_text_and_reasoning_is_none_of_it(message: dict[str, Any], text: str) -> None:
    assert ask({"message": message})[0].text == text


@pytest.mark.parametrize(
    "line",
    [
        {"body": {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}},
        {"text": None, "finish": "malformed_function_call"},
    ],
)
def test_an_empty_or_malformed_completion_is_a_malformed_reply(line: Line) -> None:
    reply, _ = ask(line)
    assert (reply.text, reply.calls, reply.finish) == ("", (), "malformed")


def test_calls_come_with_their_arguments_as_written() -> None:
    reply, _ = ask({"calls": [{"name": "f", "arguments": '{"a": 1', "id": "x"}, {"name": "g", "arguments": {"b": 2}}]})
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("x", "f", '{"a": 1'),
        ("call_1", "g", '{"b": 2}'),
    ]
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize(
    ("line", "kind", "told"),
    [
        ({"status": 429, "headers": {"Retry-After": "45"}}, Transient, 45.0),
        ({"status": 429}, Transient, None),
        ({"status": 529}, Transient, None),
        ({"status": 500}, Transient, None),
        ({"status": 503, "headers": {"retry-after": "3"}}, Transient, 3.0),
        ({"status": 408}, Transient, None),
        ({"drop": True}, Transient, None),
        ({"status": 400, "error": {"message": "too long", "code": "context_length_exceeded"}}, ContextOverflow, None),
        ({"status": 400, "error": "prompt is too long: 210000 tokens > 200000 maximum"}, ContextOverflow, None),
        ({"status": 401, "error": "bad key sk-test-LEAK-1"}, Permanent, None),
        ({"status": 403}, Permanent, None),
        ({"status": 404}, Permanent, None),
        ({"status": 422}, Permanent, None),
        ({"status": 429, "error": "You exceeded your current quota, check your plan"}, Permanent, None),
        ({"message": {"content": [{"type": "text", "text": "LiteLLM can't read this"}]}}, Transient, None),
    ],
)  # fmt: skip
def test_each_refusal_is_typed_by_who_must_act_and_sent_once(
    line: Line, kind: type[Exception], told: float | None
) -> None:
    error = failure(line)
    assert type(error) is kind
    assert getattr(error, "retry_after", None) == told
    assert "LEAK" not in str(error)
    assert "Traceback" not in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error).startswith("openai/our-gateway-alias: ")


def test_a_retry_date_is_read() -> None:
    error = failure({"status": 429, "headers": {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}})
    assert isinstance(error, Transient)
    assert error.retry_after == 0.0


def test_a_server_that_is_not_there_is_transient() -> None:
    model = LiteLLMModel(name="openai/x", api_key="sk-test-LEAK-1", api_base="http://127.0.0.1:9/v1")
    with pytest.raises(Transient):
        model.reply(HELLO, [], deadline=Deadline.after(10))


@pytest.mark.parametrize(
    ("provider", "line"),
    [
        ("openai", {"hang": True}),
        *((name, {"drip": True}) for name in ("openai", "hosted_vllm", "ollama_chat", "azure")),
    ],
)
def test_a_provider_that_stalls_or_drips_is_left_behind(provider: str, line: Line) -> None:
    begun = time.monotonic()
    with OpenAIServer([line]) as server, pytest.raises(Transient):
        a_model(server, name=f"{provider}/x").reply(HELLO, [], deadline=Deadline.after(0.2))
    assert time.monotonic() - begun < 4


def test_no_time_left_asks_nobody() -> None:
    with OpenAIServer([{"text": "x"}]) as server, pytest.raises(Transient, match="no time left"):
        a_model(server).reply(HELLO, [], deadline=Deadline.after(0))
    assert server.count == 0


def test_an_unsupported_parameter_is_left_out_from_then_on() -> None:
    refusal = {
        "status": 400,
        "error": {"message": "Unsupported value: 'temperature' does not support 0.2 with this model."},
    }
    with OpenAIServer([refusal, {"text": "a"}, {"text": "b"}]) as server:
        model = a_model(server, temperature=0.2)
        assert model.reply(HELLO, [], deadline=Deadline.after(20)).text == "a"
        assert model.reply(HELLO, [], deadline=Deadline.after(20)).text == "b"
    assert ["temperature" in request for request in server.requests] == [True, False, False]


def test_max_tokens_gives_way_to_its_younger_name() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    reply, server = ask({"status": 400, "error": {"message": words}}, {"text": "a"})
    assert reply.text == "a"
    assert "max_tokens" not in server.requests[1]
    assert server.requests[1]["max_completion_tokens"] == 8_000


def test_a_refused_parameter_we_never_sent_is_a_permanent_failure_that_names_it() -> None:
    assert "top_k" in str(failure({"status": 400, "error": "Unsupported parameter: 'top_k'"}))


def test_the_key_never_shows() -> None:
    assert "LEAK" not in repr(LiteLLMModel(name="openai/x", api_key="sk-test-LEAK-1"))


FRESH = """
import logging, socket, sys, threading
logging.basicConfig(level=logging.DEBUG)
tried = []
connect, look_up = socket.socket.connect, socket.getaddrinfo
socket.getaddrinfo = lambda *a, **k: tried.append(a) or (_ for _ in ()).throw(OSError("no network"))
socket.socket.connect = lambda *a, **k: tried.append(a) or (_ for _ in ()).throw(OSError("no network"))
import agent.loop
from agent.deadline import Deadline
from agent.llm import LiteLLMModel
model = LiteLLMModel(name="openai/x", api_key="sk-test-LEAK-1", api_base=sys.argv[1])
print("imported early:", "litellm" in sys.modules)
print("window:", model.window_tokens, "litellm" in sys.modules)
print("tried:", tried, [thread.name for thread in threading.enumerate()])
socket.socket.connect, socket.getaddrinfo = connect, look_up
for _ in range(2):
    try:
        print("said:", model.reply([{"role": "user", "content": "PROMPT-77"}], [], deadline=Deadline.after(30)).text)
    except Exception as error:
        print("failed:", error)
"""


@pytest.fixture(scope="module")
def fresh() -> subprocess.CompletedProcess[str]:
    """A process of its own that asks twice, with every debug switch on."""
    with OpenAIServer([{"text": "fine"}, {"status": 401, "error": "bad key sk-test-LEAK-1"}]) as server:
        return subprocess.run(
            [sys.executable, "-c", FRESH, server.base_url],
            env={**os.environ, "LITELLM_LOG": "DEBUG"},
            cwd=REPO,
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )


def test_debug_settings_print_neither_key_nor_prompt(fresh: subprocess.CompletedProcess[str]) -> None:
    assert "said: fine" in fresh.stdout
    assert "failed: openai/x" in fresh.stdout
    assert "LEAK" not in fresh.stdout + fresh.stderr
    assert "PROMPT-77" not in fresh.stdout + fresh.stderr


def test_litellm_is_imported_late_and_its_import_connects_to_nobody(fresh: subprocess.CompletedProcess[str]) -> None:
    assert "imported early: False\nwindow: 32000 True\ntried: [] ['MainThread']\n" in fresh.stdout


def test_an_investigation_over_http_ends_in_a_checked_report() -> None:
    script: list[Line] = [
        {"calls": [{"name": "loki_query", "arguments": {"query": "a"}}], "message": {"reasoning_content": "hm"}},
        {"calls": [{"name": "report", "arguments": a_draft()}]},
    ]
    with OpenAIServer(script) as server:
        events = list(an_investigator(a_model(server), tools=[a_tool()]).run(a_case()))
    report = report_of(events)
    assert (report.outcome, report.run.steps, report.run.tokens_in) == (Outcome.CONFIRMED, 2, 200)
    first, second = server.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["report", "read_result", "loki_query"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["messages"][-1]["content"].endswith(LOG_LINE)
    assert second["messages"][-1]["tool_call_id"] == second["messages"][-2]["tool_calls"][0]["id"]


def _claude(*content: dict[str, Any]) -> Line:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": list(content)}
    return {"body": {**body, "stop_reason": "end_turn", "usage": usage}}


def test_signed_thinking_goes_back_unaltered_and_the_prompt_is_marked_for_the_cache_at_the_border_only() -> None:
    thinking = {"type": "thinking", "thinking": "Look at the logs.", "signature": "c2lnbmVk"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "loki_query", "input": {"query": "a"}}
    script = [_claude(thinking, {**call, "id": f"toolu_{turn}"}) for turn in range(6)]
    with OpenAIServer([*script, _claude({"type": "text", "text": "It is the disk."})]) as server:
        model = a_model(server, name="anthropic/claude-sonnet-4-5", api_base=server.base_url.removesuffix("/v1"))
        events = list(an_investigator(model, tools=[a_tool()]).run(a_case()))
    assert report_of(events).body == "It is the disk."
    assert (report_of(events).run.tokens_cached, report_of(events).run.tokens_in) == (630, 700)
    last = server.requests[-1]
    assert [message["content"][0] for message in last["messages"] if message["role"] == "assistant"] == [thinking] * 6
    assert json.dumps(last).count("cache_control") == 2
    assert "cache_control" not in str([event.model_dump() for event in events])


def test_a_run_cut_after_an_answer_goes_on_without_asking_again() -> None:
    script: list[Line] = [{"calls": [{"name": "loki_query", "arguments": {"query": "a"}}]}, {"text": "It is the disk."}]
    with OpenAIServer(script, by="turn") as server:
        run = an_investigator(a_model(server), tools=[a_tool()]).run(a_case())
        journal = []
        for event in run:
            journal.append(event)
            if event.kind == "model_answered":
                break
        run.close()  # type: ignore[attr-defined]
        report = report_of(list(an_investigator(a_model(server), tools=[a_tool()]).run(a_case(), stored(journal))))
    assert (report.body, report.run.steps, server.count) == ("It is the disk.", 2, 2)


def test_an_overloaded_provider_is_asked_again_by_us_alone() -> None:
    busy: Line = {"status": 529, "error": "overloaded"}
    pauses: list[float] = []
    with OpenAIServer([*[busy] * 6, {"text": "It is the disk."}]) as server:
        patience = Patience(sleep=pauses.append)
        case = a_case(deadline=Deadline.after(600))
        report = report_of(list(an_investigator(a_model(server), patience=patience).run(case)))
    assert (report.body, server.count, len(pauses)) == ("It is the disk.", 7, 6)
    assert pauses == sorted(pauses)


def test_a_provider_that_demands_tools_with_tool_messages_is_given_them_at_the_last_step() -> None:
    script: list[Line] = [{"calls": [{"name": "loki_query", "arguments": {"query": "a"}}]}, {"text": "It is the disk."}]
    with OpenAIServer(script) as server:
        report = report_of(list(an_investigator(a_model(server), tools=[a_tool()], steps=2).run(a_case())))
    assert report.stop is Stop.STEP_LIMIT
    assert [tool["function"]["name"] for tool in server.requests[1]["tools"]] == ["report"]


def test_the_scripted_server_runs_as_a_process(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"by": "turn", "lines": [{"text": "one"}, {"text": "two"}]}))
    command = [sys.executable, "-m", "tests.support.openai_server", "--script", str(script), "--port", "0"]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            base = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
            model = LiteLLMModel(name="openai/x", api_key="k", api_base=base)
            messages: list[Message] = [*HELLO, {"role": "assistant", "content": "one"}, *HELLO]
            assert model.reply(HELLO, [], deadline=Deadline.after(20)).text == "one"
            assert model.reply(messages, [], deadline=Deadline.after(20)).text == "two"
        finally:
            process.terminate()


def test_the_loop_itself_costs_little_beside_a_model_call() -> None:
    from agent.scripted import ScriptedModel, calls, says

    tool: Tool = a_tool()
    script = [*[calls(("loki_query", {"query": str(number)})) for number in range(199)], says("It is the disk.")]
    begun = time.process_time()
    events = list(
        an_investigator(ScriptedModel(script, window_tokens=1_000_000), tools=[tool], steps=300).run(a_case())
    )
    assert report_of(events).run.steps == 200
    assert (time.process_time() - begun) / 200 < 0.01
