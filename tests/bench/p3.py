"""p3: what code mode costs, sealed: start, calls in turn and side by side, large results; a plain subprocess beside."""

from __future__ import annotations

import compileall
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import agent.code_mode
from agent.alert import Alert
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.forking import ForkServer
from agent.code_mode.host import Host
from agent.code_mode.isolation import needed
from agent.code_mode.tool import code_tool
from agent.deadline import Deadline
from agent.tools import Tool, ToolContext, ToolResult
from tests.bench.figure import Figure, Options

STARTS, CALLS, LARGE_RUNS = 15, 1_000, 5
WIDE, WIDE_SECONDS = 64, 0.05
LARGE_BYTES = 10_000_000
ROWS = [
    {"pod": f"svc-{n % 40}-{n}", "restarts": n % 7, "node": f"node-{n % 12}", "ready": True} for n in range(140_000)
]

FIRST = "import time\nprint(time.monotonic())"
SERIAL = f"""
import time
call = tools.noop
for _ in range(50): call(n=-1)
begun = time.perf_counter()
for n in range({CALLS}): call(n=n)
print((time.perf_counter() - begun) / {CALLS})
"""
MAPPED = f"""
import time
begun = time.perf_counter()
tools.map("noop", range({CALLS}))
print((time.perf_counter() - begun) / {CALLS})
"""
SIDE_BY_SIDE = f"""
import time
begun = time.perf_counter()
tools.map("wait", range({WIDE}))
print(time.perf_counter() - begun)
"""
LARGE = """
import time
begun = time.perf_counter()
got = tools.NAME()
print(time.perf_counter() - begun if len(got) > 100_000 else "wrong")
"""
PLAIN = f"""
import json, socket, sys, time
print(time.monotonic(), flush=True)
line = socket.socket(fileno=int(sys.argv[1]))
stream = line.makefile("rwb")
def call(name, **arguments):
    stream.write(json.dumps([name, arguments]).encode() + b"\\n"); stream.flush()
    return json.loads(stream.readline())
for _ in range(50): call("noop")
begun = time.perf_counter()
for n in range({CALLS}): call("noop", n=n)
print((time.perf_counter() - begun) / {CALLS})
begun = time.perf_counter()
for n in range({WIDE}): call("wait", n=n)
print(time.perf_counter() - begun)
begun = time.perf_counter()
call("text")
print(time.perf_counter() - begun)
"""


def run(options: Options) -> Iterable[Figure]:
    """`options.limit` is the number of starts that are measured."""
    starts = options.limit or STARTS
    compileall.compile_dir(Path(agent.code_mode.__file__).parent, quiet=1)  # as in any installed package
    server = ForkServer()
    if not server.warm(20):
        raise RuntimeError("the fork server does not start")
    try:
        plain = _plain(starts)
        yield from _figures("forked", server, starts, plain)
        yield from _figures("cold", None, starts, plain)
    finally:
        server.close()
    for name, (value, count, unit) in plain.items():
        yield Figure(name=f"p3.plain.{name}", value=value, n=count, unit=unit)


def _figures(how: str, server: ForkServer | None, starts: int, plain: dict[str, Any]) -> Iterator[Figure]:
    forked = server is not None
    first = statistics.median(_first(server) for _ in range(starts)) * 1e3
    yield Figure(name=f"p3.{how}.start", value=first, n=starts, unit="ms", target=5 if forked else 45, bound="<=")
    yield Figure(name=f"p3.{how}.start.ratio", value=first / plain["start"][0], n=starts, unit="of plain")
    serial = min(_printed(server, SERIAL) for _ in range(7)) * 1e6
    yield Figure(name=f"p3.{how}.call", value=serial, n=CALLS, unit="us", target=100, bound="<=")
    yield Figure(name=f"p3.{how}.call.ratio", value=serial / plain["call"][0], n=CALLS, unit="of plain")
    mapped = min(_printed(server, MAPPED) for _ in range(7)) * 1e6
    yield Figure(name=f"p3.{how}.call.mapped", value=mapped, n=CALLS, unit="us")
    wide = statistics.median(_printed(server, SIDE_BY_SIDE) for _ in range(LARGE_RUNS)) * 1e3
    yield Figure(name=f"p3.{how}.64x50ms", value=wide, n=LARGE_RUNS, unit="ms", target=75, bound="<=")
    yield Figure(name=f"p3.{how}.64x50ms.ratio", value=wide / plain["64x50ms"][0], n=LARGE_RUNS, unit="of plain")
    text = statistics.median(_printed(server, LARGE.replace("NAME", "text")) for _ in range(LARGE_RUNS)) * 1e3
    yield Figure(name=f"p3.{how}.10mb.text", value=text, n=LARGE_RUNS, unit="ms", target=70, bound="<=")
    rows = statistics.median(_printed(server, LARGE.replace("NAME", "rows")) for _ in range(LARGE_RUNS)) * 1e3
    yield Figure(name=f"p3.{how}.10mb.objects", value=rows, n=LARGE_RUNS, unit="ms")


def _tools() -> list[Tool]:
    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    text = "\n".join(f"2031-02-03T04:05:06Z line {n} of a log with nothing in it" for n in range(LARGE_BYTES // 52))
    text = (text + "x" * LARGE_BYTES)[:LARGE_BYTES]

    def made(name: str, act: Callable[[], ToolResult]) -> Tool:
        return Tool(name=name, description="", parameters=number, run=lambda *_: act())

    def wait() -> ToolResult:
        time.sleep(WIDE_SECONDS)
        return ToolResult.success("1")

    return [
        made("noop", lambda: ToolResult.success("1")),
        made("wait", wait),
        made("text", lambda: ToolResult.success(text)),
        made("rows", lambda: ToolResult.success("rows", value=ROWS)),
    ]


TOOLS = _tools()


def _output(server: ForkServer | None, code: str) -> str:
    limits = CodeModeConfig(enabled=True, sub_calls=10_000)
    host = Host(limits=limits, need=needed("full"), server=server)
    context = ToolContext(deadline=Deadline.after(100), alert=Alert(source="bench", id="1", title="bench"))
    result = code_tool(TOOLS, limits, host=host, tool_seconds=30).run({"code": code}, context)
    if result.status != "success":
        raise RuntimeError(f"{result.error} {result.data}")
    return result.data


def _printed(server: ForkServer | None, code: str) -> float:
    return float(_output(server, code))


def _first(server: ForkServer | None) -> float:
    begun = time.monotonic()
    return _printed(server, FIRST) - begun


def _plain(starts: int) -> dict[str, tuple[float, int, str]]:
    """The same without any isolation: a new interpreter, one call after another over a unix socket."""
    runs = [_plain_run() for _ in range(3)]
    first = statistics.median(_plain_start() for _ in range(starts))
    return {
        "start": (first * 1e3, starts, "ms"),
        "call": (min(one[1] for one in runs) * 1e6, CALLS, "us"),
        "64x50ms": (statistics.median(one[2] for one in runs) * 1e3, 3, "ms"),
        "10mb.text": (statistics.median(one[3] for one in runs) * 1e3, 3, "ms"),
    }


def _plain_start() -> float:
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    return float(done.stdout) - begun


def _plain_run() -> list[float]:
    tools = {tool.name: tool for tool in TOOLS}
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", PLAIN, str(theirs.fileno())]
    with subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, text=True) as process:
        theirs.close()
        with ours, ours.makefile("rwb") as stream:
            for line in stream:
                name, arguments = json.loads(line)
                context: Any = None
                stream.write(json.dumps(tools[name].run(arguments, context).data).encode() + b"\n")
                stream.flush()
        assert process.stdout is not None
        return [float(line) for line in process.stdout]
