"""Scripts inside the loop: what is recorded, shown, guarded and counted of the calls they make."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from agent.code_mode.config import CodeModeConfig
from agent.code_mode.host import Host
from agent.code_mode.tool import code_tool
from agent.events import Event, ToolFinished, ToolStarted
from agent.progress import Progress
from agent.redaction import Redactor
from agent.report import Outcome
from agent.scripted import ScriptedModel, calls, says
from agent.spill import BYTES_PER_TOKEN, MemoryResults
from agent.tools import Tool, ToolResult
from tests.support.cases import LOG_LINE, a_case, a_draft, a_tool, an_investigator, report_of, stored

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing can be sealed here")


def with_code(*tools: Tool) -> list[Tool]:
    config = CodeModeConfig(enabled=True)
    return [*tools, code_tool(tools, config, host=Host(limits=config), tool_seconds=5)]


def script(code: str) -> Any:
    return calls(("run_python", {"code": code}))


def run(
    *lines: Any, tools: list[Tool], results: MemoryResults | None = None, **case: Any
) -> tuple[list[Event], ScriptedModel]:
    model = ScriptedModel(lines)
    investigator = an_investigator(model, tools=tools, results=results)
    return list(investigator.run(a_case(**case))), model


def finished(events: list[Event]) -> list[ToolFinished]:
    return [event for event in events if isinstance(event, ToolFinished)]


def shown(model: ScriptedModel) -> str:
    """The result of the last call, as the model saw it."""
    return str(model.requests[-1].messages[-1]["content"])


def test_sub_calls_are_recorded_under_their_parent_and_the_model_sees_only_what_was_printed() -> None:
    results = MemoryResults()
    code = "found = tools.loki_query(query='a')\ntools.loki_query(query='b')\nprint(len(found))"
    events, model = run(
        script(code), calls(("report", a_draft(call="T1.1"))), tools=with_code(a_tool()), results=results
    )
    told = [(type(e).__name__, e.ref, e.parent, e.call_id) for e in events if isinstance(e, ToolStarted | ToolFinished)]
    assert told[:6] == [
        ("ToolStarted", "T1", "", "c0"),
        ("ToolStarted", "T1.1", "T1", "c0"),
        ("ToolFinished", "T1.1", "T1", "c0"),
        ("ToolStarted", "T1.2", "T1", "c0"),
        ("ToolFinished", "T1.2", "T1", "c0"),
        ("ToolFinished", "T1", "", "c0"),
    ]
    assert shown(model) == f"T1 success\n\n{len(LOG_LINE)}"
    assert results.get("T1.1") == LOG_LINE
    report = report_of(events)
    assert report.outcome is Outcome.CONFIRMED
    assert (report.evidence[0].tool, report.evidence[0].verified) == ("loki_query", True)
    assert report.run.mode == "code"


def test_a_run_resumed_from_its_journal_stands_where_it_stood() -> None:
    events, _ = run(script("print(tools.loki_query(query='a'))"), says("Done with it."), tools=with_code(a_tool()))
    live, replayed = Progress(repeats=2), Progress(repeats=2)
    live.replay(events)
    replayed.replay(stored(events))
    assert [message["role"] for message in replayed.history.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert replayed.history.messages == live.history.messages
    assert [call.ref for call in replayed.ledger] == ["T1.1", "T1"]


def test_the_guard_of_the_loop_counts_the_calls_of_scripts() -> None:
    asked: list[Any] = []
    ask = ("loki_query", {"query": "a"})
    code = "try: print(tools.loki_query(query='a'))\nexcept ToolError as error: print('told:', error)"
    _, model = run(calls(ask), calls(ask), script(code), says("Done with it."), tools=with_code(a_tool(asked=asked)))
    assert len(asked) == 2
    assert "told: Not run: this call gave the same result before (T1, T2)" in shown(model)


def test_a_mended_script_need_not_ask_again() -> None:
    asked: list[Any] = []
    lines = [script(f"print({n}, len(tools.loki_query(query='a')))") for n in range(5)]
    _, model = run(*lines, says("Done with it."), tools=with_code(a_tool(asked=asked)))
    assert len(asked) == 2
    assert shown(model) == f"T5 success\n\n4 {len(LOG_LINE)}"


def test_secrets_reach_neither_script_nor_journal() -> None:
    leak = a_tool(answer=ToolResult.success("password=hunter2-x9", query="token=hunter2-x9"))
    code = "text = tools.loki_query(query='a')\nprint(text[::-1], text.encode().hex())"
    events, model = run(script(code), says("Done with it."), tools=with_code(leak), redact=Redactor(["hunter2-x9"]))
    for hidden in ("hunter2-x9", "hunter2-x9"[::-1], b"hunter2-x9".hex()):
        assert hidden not in shown(model)
        assert all(hidden not in str(event) for event in events)


def test_a_script_can_not_reach_core_or_restricted_tools() -> None:
    danger = replace(a_tool("danger", required=()), restricted=True)
    code = """
    for name in ("report", "read_result", "danger", "run_python"):
        try: tools[name]()
        except ToolError as error: print(error)
    """
    _, model = run(script(code), says("Done with it."), tools=with_code(a_tool(), danger))
    assert shown(model).count("Not run: ") == 4


def test_one_huge_result_becomes_a_summary() -> None:
    """The point of it: 250,000 tokens in, some dozen out, counted as the loop counts."""
    lines = [
        f"2031-02-03T04:05:{n % 60:02} svc-{n % 7} {'ERROR' if n % 1000 == 0 else 'info'} request {n}"
        for n in range(17_500)
    ]
    text = "\n".join(lines)
    assert len(text.encode()) / BYTES_PER_TOKEN >= 250_000
    code = """
    import collections
    bad = [line for line in tools.loki_query(query='all').splitlines() if ' ERROR ' in line]
    print(len(bad), dict(collections.Counter(line.split()[1] for line in bad)))
    """
    _, model = run(script(code), says("Done with it."), tools=with_code(a_tool(answer=ToolResult.success(text))))
    bad = [line.split()[1] for line in lines if " ERROR " in line]
    assert shown(model).endswith(f"{len(bad)} {dict(Counter(bad))}")
    assert len(shown(model).encode()) / BYTES_PER_TOKEN < 60


def test_eight_large_results_become_one_table() -> None:
    def answer(given: dict[str, Any]) -> ToolResult:
        shard = int(given["query"])
        rows = [{"shard": shard, "id": n, "latency_ms": (n * 7 + shard) % 500, "note": "x" * 40} for n in range(1_050)]
        return ToolResult.success("\n".join(map(str, rows)), value=rows)

    for shard in range(8):
        assert len(answer({"query": shard}).data.encode()) / BYTES_PER_TOKEN >= 31_000
    code = """
    shards = tools.map('loki_query', [str(n) for n in range(8)])
    for rows in shards:
        print(rows[0]['shard'], max(row['latency_ms'] for row in rows), sum(row['latency_ms'] > 490 for row in rows))
    """
    _, model = run(script(code), says("Done with it."), tools=with_code(a_tool(answer=answer)))
    right = []
    for shard in range(8):
        rows = answer({"query": shard}).value
        right.append(f"{shard} {max(r['latency_ms'] for r in rows)} {sum(r['latency_ms'] > 490 for r in rows)}")
    assert shown(model) == "T1 success\n\n" + "\n".join(right)
    assert len(shown(model).encode()) / BYTES_PER_TOKEN < 60
