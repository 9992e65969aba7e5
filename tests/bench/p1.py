"""P1, loop overhead: client CPU a model step of the whole loop, over a bare LiteLLM loop with the same messages."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent.alert import Alert
from agent.budget import RunLimits
from agent.case import Case
from agent.deadline import Deadline
from agent.events import Finished
from agent.llm import LiteLLMModel
from agent.loop import Investigator
from agent.model import Message, Reply, ToolSchema
from agent.spill import MemoryResults
from agent.tools import Tool, ToolResult
from tests.bench.figure import Figure, Options

ROOT = Path(__file__).parents[2]
STEPS = 40
RESULT_BYTES = 4_000
ROUNDS = 9
RESULT = "\n".join(f"10:00:{n % 60:02d} payments-{n:03d} connection refused by peer {n}" for n in range(90))[
    :RESULT_BYTES
]


def run(options: Options) -> Iterator[Figure]:
    rounds = options.limit or ROUNDS
    with _server() as base:
        conversation, tools = _investigate(base)[1:]
        _bare(base, conversation, tools)  # warm
        # Side by side, so that what else the machine does weighs on both.
        pairs = [_pair(base, conversation, tools, ours_first=bool(number % 2)) for number in range(rounds)]
        ours, bare = (_best([pair[side] for pair in pairs]) for side in (0, 1))
    total, floor = (sum(steps) / len(steps) for steps in (ours, bare))
    yield Figure(name="p1.cpu_ms_a_step", value=total * 1e3, n=rounds, unit="ms")
    yield Figure(name="p1.bare_cpu_ms_a_step", value=floor * 1e3, n=rounds, unit="ms")
    yield Figure(name="p1.over_bare", value=total / floor, n=rounds, unit="ratio", target=1.25, bound="<=")
    yield Figure(name="p1.growth", value=_growth(ours) / _growth(bare), n=rounds, unit="ratio", target=1.25, bound="<=")


def _pair(
    base: str, conversation: list[Message], tools: list[ToolSchema], *, ours_first: bool
) -> tuple[list[float], list[float]]:
    if ours_first:
        ours = _investigate(base)[0]
        return ours, _bare(base, conversation, tools)
    bare = _bare(base, conversation, tools)
    return _investigate(base)[0], bare


def _best(runs: list[list[float]]) -> list[float]:
    """Of each step the least: what else runs on the machine only ever adds."""
    return [min(steps) for steps in zip(*runs, strict=True)]


def _growth(steps: list[float]) -> float:
    """The last quarter over the second: linear growth of the request is in both loops alike."""
    quarter = len(steps) // 4
    return sum(steps[-quarter:]) / sum(steps[quarter : 2 * quarter])


class Watched(LiteLLMModel):
    """The CPU seconds of this process at the begin of each request, and the last request."""

    def begin(self) -> None:
        self.__dict__["marks"], self.__dict__["asked"] = [], []

    def reply(self, messages: Any, tools: Any, *, deadline: Deadline) -> Reply:
        self.__dict__["marks"].append(time.process_time())
        self.__dict__["asked"] = (list(messages), list(tools))
        return super().reply(messages, tools, deadline=deadline)


def _investigate(base: str) -> tuple[list[float], list[Message], list[ToolSchema]]:
    model = Watched(name="openai/bench", api_key="k", api_base=base, window=1_000_000)
    model.begin()
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = Tool(
        name="logs",
        description="Logs.",
        parameters=parameters,
        run=lambda given, _: ToolResult.success(f"{given['n']}\n{RESULT}"),
    )
    limits = RunLimits(steps=STEPS + 2, result_tokens=2_000, tokens=10**9)
    investigator = Investigator(models=[model], tools=[tool], limits=limits, results=MemoryResults())
    alert = Alert(source="bench", id="1", title="Something is wrong.")
    case = Case(alert=alert, investigation="b", started_at=datetime.now(UTC), deadline=Deadline.after(300))
    gc.collect()
    events = list(investigator.run(case))
    assert isinstance(events[-1], Finished)
    assert events[-1].report.body == "It is the disk."
    marks: list[float] = [*model.__dict__["marks"], time.process_time()]
    messages, tools = model.__dict__["asked"]
    return _between(marks), messages, tools


def _bare(base: str, conversation: list[Message], tools: list[ToolSchema]) -> list[float]:
    """The same requests by nothing but `litellm.completion`; the replies are added as they come."""
    import litellm

    first = next(place for place, message in enumerate(conversation) if message["role"] == "assistant")
    messages = conversation[:first]
    results = [message for message in conversation if message["role"] == "tool"]
    gc.collect()
    marks = []
    for step in range(len(results) + 1):
        marks.append(time.process_time())
        response = litellm.completion(
            model="openai/bench", messages=messages, tools=tools, api_key="k", api_base=base, max_tokens=8_000,
            timeout=60, num_retries=0, max_retries=0,
        )  # fmt: skip
        message = response.choices[0].message.model_dump(exclude_none=True)
        if step < len(results):
            identity = message["tool_calls"][0]["id"]
            messages = [
                *messages,
                message,
                {"role": "tool", "tool_call_id": identity, "content": results[step]["content"]},
            ]
    return _between([*marks, time.process_time()])


def _between(marks: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(marks)]


@contextmanager
def _server() -> Iterator[str]:
    """The scripted server as a process of its own, so that its CPU is not ours."""
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    lines: list[dict[str, Any]] = [
        {"calls": [{"name": "logs", "arguments": {"n": n}, "id": f"call_{n}"}]} for n in range(STEPS - 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"by": "turn", "lines": [*lines, {"text": "It is the disk."}]}))
        command = [sys.executable, "-m", "tests.support.openai_server", "--script", str(script), "--port", "0"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
            finally:
                process.terminate()
