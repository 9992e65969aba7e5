"""Q4, tokens: the experts' paths through the real loop with a scripted model; what each request carries."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent.alert import Alert
from agent.budget import RunLimits
from agent.case import Case
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.host import Host
from agent.code_mode.isolation import needed
from agent.code_mode.tool import code_tool
from agent.deadline import Deadline
from agent.events import Finished
from agent.loop import Investigator
from agent.scripted import Request, ScriptedModel, calls, says
from agent.spill import MemoryResults
from agent.tools import Tool, ToolResult
from tests.bench.cloudopsbench.cases import Place, places
from tests.bench.figure import Figure, Options
from tests.bench.q1 import output_of

CHARS_PER_TOKEN = 4  # as the raw figures were counted
TARGETS = {"trainticket": (8_000, 20_000)}  # median, 95th percentile
BIG_TOKENS = 250_000
EIGHT_TOKENS = 31_000


@dataclass(frozen=True, slots=True)
class Played:
    """One path: for each request the tokens of results in it, as shown and raw, and whether its prefix stood."""

    system: str
    shown: tuple[int, ...]
    whole: tuple[int, ...]
    raw: tuple[int, ...]
    stood: tuple[bool, ...]


def run(options: Options) -> Iterator[Figure]:
    if options.data is None:
        raise SystemExit("q4 needs --data DIR")
    wanted = [
        (place, path)
        for place in places(options.data, limit=options.limit, seed=options.seed)
        for path in paths_of(options.data, place)
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        played = list(pool.map(play, *zip(*wanted, strict=True), chunksize=8))
    for system in sorted({one.system for one in played}):
        mine = [one for one in played if one.system == system]
        median, tail = TARGETS.get(system, (None, None))
        yield _figure(f"{system}.total.median", [sum(one.shown) for one in mine], 0.5, median)
        yield _figure(f"{system}.total.p95", [sum(one.shown) for one in mine], 0.95, tail)
        yield _figure(f"{system}.raw.median", [sum(one.raw) for one in mine], 0.5)
        yield _figure(f"{system}.raw.p95", [sum(one.raw) for one in mine], 0.95)
        yield _figure(f"{system}.request.median", [tokens for one in mine for tokens in one.whole], 0.5)
    stood = [stands for one in played for stands in one.stood]
    yield Figure(name="q4.prefix_identical", value=sum(stood) / len(stood), n=len(stood), target=0.99)
    yield from _code_mode()


def paths_of(data: Path, place: Place) -> list[Path]:
    return sorted((data / "golden-trajectory" / place.system / place.category / place.id).glob("*.json"))


def _figure(name: str, values: Sequence[int], share: float, target: float | None = None) -> Figure:
    value = statistics.median(values) if share == 0.5 else sorted(values)[int(len(values) * share)]
    return Figure(name=f"q4.{name}", value=float(value), n=len(values), unit="tokens", target=target, bound="<=")


def play(place: Place, path: Path) -> Played:
    steps = json.loads(path.read_text())["diagnostic_trace"]
    outputs = [output_of(step) for step in steps]
    script = [calls((_name(step), {"call": number})) for number, step in enumerate(steps)]
    requests = investigated([*script, says("Done.")], outputs, sorted({_name(step) for step in steps}))
    raw = [sum(len(output) for output in outputs[:number]) // CHARS_PER_TOKEN for number in range(len(requests))]
    return Played(
        system=place.system,
        shown=tuple(_results(request) for request in requests),
        whole=tuple(len(json.dumps(request.messages)) // CHARS_PER_TOKEN for request in requests),
        raw=tuple(raw),
        stood=tuple(_is_prefix(before, after) for before, after in pairwise(requests)),
    )


def _name(step: dict[str, Any]) -> str:
    return str(step["tool_name"])


def investigated(script: Sequence[Any], outputs: Sequence[str], names: Sequence[str]) -> list[Request]:
    parameters = {"type": "object", "properties": {"call": {"type": "integer"}}, "required": ["call"]}

    def answer(arguments: Any, _context: Any) -> ToolResult:
        text = outputs[arguments["call"]].strip()
        return ToolResult.success(text) if text else ToolResult.no_data("nothing was recorded")

    tools = [Tool(name=name, description="as recorded", parameters=parameters, run=answer) for name in names]
    model = ScriptedModel(script, window_tokens=200_000)
    _run(model, tools)
    return model.requests


def _run(model: ScriptedModel, tools: Sequence[Tool]) -> None:
    investigator = Investigator(models=[model], tools=tools, limits=RunLimits(), results=MemoryResults())
    alert = Alert(source="bench", id="1", title="Something is wrong.")
    case = Case(alert=alert, investigation="b", started_at=datetime.now(UTC), deadline=Deadline.after(120))
    assert isinstance(list(investigator.run(case))[-1], Finished)


def _results(request: Request) -> int:
    told = (str(message["content"]) for message in request.messages if message["role"] == "tool")
    return sum(map(len, told)) // CHARS_PER_TOKEN


def _is_prefix(before: Request, after: Request) -> bool:
    """Byte for byte, tools included: else the provider's cache is lost."""
    one, other = json.dumps(before.messages), json.dumps(after.messages)
    return other.startswith(one[:-1]) and before.tools == after.tools


def _code_mode() -> Iterator[Figure]:
    """What of the tokens stays out of the conversation when a script looks at the results instead of the model."""
    rows = [f"2031-02-03T04:05:06Z checkout-{n % 97} request {n} took {n % 13} ms" for n in range(BIG_TOKENS // 13)]
    rows[len(rows) // 2] = "2031-02-03T04:05:06Z checkout-7 FATAL no slots left"
    big = "\n".join(rows)
    look = "print([l for l in str(tools.NAME(call=0)).splitlines() if 'FATAL' in l][0])"
    yield _saved("one_result", [big], look.replace("NAME", "logs"), 0.9995)
    part = "\n".join(rows)[: EIGHT_TOKENS * CHARS_PER_TOKEN // 8]
    many = "print(max(len(str(tools.logs(call=n)).splitlines()) for n in range(8)))"
    yield _saved("eight_calls", [part] * 8, many, 0.992)


def _saved(name: str, outputs: Sequence[str], code: str, target: float) -> Figure:
    parameters = {"type": "object", "properties": {"call": {"type": "integer"}}, "required": ["call"]}
    logs = Tool(
        name="logs",
        description="logs",
        parameters=parameters,
        run=lambda arguments, _context: ToolResult.success(outputs[arguments["call"]]),
    )
    limits = CodeModeConfig(enabled=True)
    host = Host(limits=limits, need=needed("full"), server=None)
    script = code_tool([logs], limits, host=host, tool_seconds=30)
    model = ScriptedModel([calls((script.name, {"code": code})), says("Done.")], window_tokens=2_000_000)
    _run(model, [logs, script])
    first, second = (sum(len(str(message)) for message in request.messages) for request in model.requests)
    raw = sum(map(len, outputs))
    told = str(model.requests[1].messages[-1]["content"])
    worked = " success" in told.splitlines()[0]
    return Figure(name=f"q4.code_mode.{name}", value=1 - (second - first) / raw if worked else 0.0, n=1, target=target)
