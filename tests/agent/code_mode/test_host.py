"""Runs, by the fork server and cold: what comes back, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent.code_mode.bridge import Answer
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.forking import ForkServer
from agent.code_mode.host import End, Host, Outcome
from agent.code_mode.tool import code_tool, summary
from agent.deadline import Deadline
from agent.errors import ToolError
from agent.tools import Tool, ToolContext, ToolResult
from tests.support.cases import ALERT, a_tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing can be sealed here")
ROOT = Path(__file__).resolve().parents[3]
TWICE = a_tool(
    "twice", lambda given: ToolResult.success("", value=given["n"] * 2), required=("n",), n={"type": "integer"}
)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    made = ForkServer()
    assert made.warm(20)
    yield made
    made.close()


@pytest.fixture(params=["forked", "cold"])
def host(request: pytest.FixtureRequest, server: ForkServer) -> Host:
    return Host(limits=CodeModeConfig(), server=server if request.param == "forked" else None)


def run(host: Host, code: str, tools: list[Tool] | None = None, **arguments: Any) -> ToolResult:
    tool = code_tool([TWICE] if tools is None else tools, host.limits, host=host, tool_seconds=5)
    context = ToolContext(deadline=Deadline.after(60), alert=ALERT)
    return tool.run({"code": textwrap.dedent(code), **arguments}, context)


def test_output_value_and_errors_come_back_and_nothing_else(host: Host) -> None:
    result = run(host, "import sys\nx = tools.twice(n=21)\nprint('out')\nprint('err', file=sys.stderr)\n{'x': x}")
    assert (result.status, result.data) == ("success", 'out\nvalue: {"x": 42}\nstderr:\nerr')


def test_a_silent_script_says_so(host: Host) -> None:
    assert run(host, "x = 1").data == "(the script printed nothing)"


def test_data_work_of_every_day(host: Host) -> None:
    code = """
    import collections, csv, datetime, io, json, math, re, statistics, itertools, decimal, hashlib, base64, sqlite3
    import xml.etree.ElementTree as tree, urllib.parse, ipaddress, dataclasses, asyncio, concurrent.futures, uuid, heapq
    @dataclasses.dataclass
    class Row: name: str; n: int
    rows = [Row(r["name"], int(r["n"])) for r in csv.DictReader(io.StringIO("name,n\\na,1\\nb,2\\n"))]
    base = sqlite3.connect(":memory:")
    base.execute("create table t(n)"); base.executemany("insert into t values(?)", [(r.n,) for r in rows])
    print(base.execute("select sum(n) from t").fetchone()[0])
    print(datetime.datetime.strptime("03/Feb/2031:04:05", "%d/%b/%Y:%H:%M").isoformat())
    print(statistics.quantiles(range(100), n=4)[2], re.findall(r"\\d+", "a1b22"), math.isqrt(50))
    print(tree.fromstring("<a><b>x</b></a>").find("b").text, urllib.parse.urlsplit("http://h/p?q").query)
    print("grün".encode("latin-1").decode("cp1252"), hashlib.sha256(b"x").hexdigest()[:6], uuid.uuid4().version)
    print(ipaddress.ip_address("10.0.0.1").is_private, collections.Counter("aab").most_common(1))
    print(decimal.Decimal("0.1") * 3)
    async def wait(n): await asyncio.sleep(0.001); return n
    async def both(): return await asyncio.gather(wait(1), asyncio.to_thread(lambda: 2))
    print(asyncio.run(both()))
    with concurrent.futures.ThreadPoolExecutor(4) as pool: print(sum(pool.map(lambda n: tools.twice(n=n), range(10))))
    """
    result = run(host, code)
    assert result.status == "success", result.data + result.error
    assert result.data.splitlines() == [
        "3",
        "2031-02-03T04:05:00",
        "74.75 ['1', '22'] 7",
        "x q",
        "grün 2d7116 4",
        "True [('a', 2)]",
        "0.3",
        "[1, 2]",
        "90",
    ]


def test_threads_can_be_used_again_and_again(host: Host) -> None:
    code = """
    import threading
    seen = []
    for n in range(60):
        thread = threading.Thread(target=seen.append, args=(n,)); thread.start(); thread.join()
        assert not thread.is_alive()
    print(seen == list(range(60)))
    """
    assert run(host, code).data == "True"


def test_calls_side_by_side_by_gather_and_map(host: Host) -> None:
    both = threading.Barrier(4)

    def meet(given: dict[str, Any]) -> ToolResult:
        both.wait(10)
        return ToolResult.success(given["query"])

    code = """
    meet = tools.meet
    a, b, *_ = tools.gather(meet.defer(query="a"), ("meet", {"query": "b"}), meet.defer("c"), (meet, {"query": "d"}))
    print(a, b, tools.map("meet", ["1", {"query": "2"}, "3", "4"]))
    """
    assert run(host, code, [a_tool("meet", meet)]).data == "a b ['1', '2', '3', '4']"


def test_a_failed_call_raises_and_can_be_had_as_a_value(host: Host) -> None:
    def odd(given: dict[str, Any]) -> ToolResult:
        return ToolResult.failed("odd") if int(given["query"]) % 2 else ToolResult.success(given["query"])

    code = """
    try: tools.map("odd", ["0", "1"])
    except ToolError as error: print("raised", error)
    print([str(one) for one in tools.map("odd", ["0", "1", "2"], return_exceptions=True)])
    """
    assert run(host, code, [a_tool("odd", odd)]).data == "raised odd\n['0', 'odd', '2']"


def test_finding_nothing_is_empty_and_false(host: Host) -> None:
    code = """
    found = tools.loki_query(query="x")
    print(bool(found), len(found), list(found), found.splitlines(), found.get("a", 1), repr(found))
    """
    nothing = a_tool(answer=ToolResult.no_data("no line matches"))
    assert run(host, code, [nothing]).data == "False 0 [] [] 1 NoData('no line matches')"


def test_help_shows_the_signature(host: Host) -> None:
    text = run(host, "import inspect\nhelp(tools.twice)\nhelp(tools)\nprint(inspect.signature(tools.twice))").data
    assert "twice(n: int)" in text
    assert text.splitlines()[-1] == "(n)"


def test_calls_with_large_arguments_and_large_replies_do_not_block_each_other(host: Host) -> None:
    echo = a_tool("echo", lambda given: ToolResult.success(given["query"]))
    code = "got = tools.map('echo', [str(n) * 200_000 for n in range(10)])\nprint([len(one) for one in got])"
    assert run(host, code, [echo]).data == str([200_000] * 10)


@pytest.mark.parametrize(
    ("limits", "code", "end", "words"),
    [
        ({"cpu_seconds": 1}, "print('part')\nwhile True: pass", End.CPU, "1 s of CPU"),
        ({"memory_mb": 128}, "print('part')\nx = bytearray(1 << 30)", End.MEMORY, "128 MB"),
        ({"flood_bytes": 10_000}, "while True: print('part' * 100)", End.OUTPUT, "10000 bytes"),
        (
            {"sub_calls": 3},
            "print('part')\nwhile True:\n  try: tools.twice(n=1)\n  except ToolError: pass",
            End.CALLS,
            "3 calls",
        ),
        ({}, "print('part')\nimport os\nos.kill(os.getpid(), 6)", End.SIGNAL, "SIGABRT"),
    ],
)
def test_each_limit_ends_in_its_own_words_with_the_partial_output(
    server: ForkServer, limits: dict[str, Any], code: str, end: End, words: str
) -> None:
    host = Host(limits=CodeModeConfig(**limits), server=server)
    result = run(host, code)
    assert result.status == "error"
    assert words in result.error, end
    assert "part" in result.data


def test_the_wall_limit_is_the_smaller_of_what_was_asked_and_what_is_left(host: Host) -> None:
    result = run(host, "print('part', flush=True)\nwhile True: pass", timeout_seconds=2)
    assert "limit of 2 s" in result.error
    assert result.data == "part"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"code": ""}, "empty"),
        ({"code": None}, "empty"),
        ({"code": "x" * 300_000}, "longer than"),
        ({"code": "1", "timeout_seconds": 0}, "more than 0"),
        ({"code": "1", "timeout_seconds": float("nan")}, "more than 0"),
    ],
)
def test_what_can_not_be_run_is_refused_in_words(server: ForkServer, arguments: dict[str, Any], words: str) -> None:
    host = Host(limits=CodeModeConfig(), server=server)
    tool = code_tool([], host.limits, host=host, tool_seconds=5)
    with pytest.raises(ToolError, match=words):
        tool.run(arguments, ToolContext(deadline=Deadline.after(60), alert=ALERT))


def test_no_time_left_is_said_before_anything_is_started(server: ForkServer) -> None:
    host = Host(limits=CodeModeConfig(), server=server)
    tool = code_tool([], host.limits, host=host, tool_seconds=5)
    with pytest.raises(ToolError, match="no time is left"):
        tool.run({"code": "1"}, ToolContext(deadline=Deadline.after(1), alert=ALERT))


def test_runs_side_by_side_keep_to_themselves_and_leave_nothing_behind(host: Host) -> None:
    run(host, "1")
    before = held()

    def one(number: int) -> bool:
        return run(host, f"print(tools.twice(n={number}), {number})").data == f"{number * 2} {number}"

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(24)))
    deadline = time.monotonic() + 5
    while any(now > then for now, then in zip(held(), before, strict=True)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(now <= then for now, then in zip(held(), before, strict=True)), (held(), before)


def held() -> tuple[int, int, int]:
    children = len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), children


def test_a_fork_server_that_dies_costs_no_run_and_is_replaced(server: ForkServer) -> None:
    host = Host(limits=CodeModeConfig(), server=server)
    first = server.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert run(host, "print(1)").data == "1"
    assert server.warm(20)
    assert server.pid not in (None, first)
    assert run(host, "print(2)").data == "2"


def test_a_running_script_goes_with_the_fork_server() -> None:
    server = ForkServer()
    assert server.warm(20)
    host = Host(limits=CodeModeConfig(), server=server)
    ended: list[Outcome] = []
    begun = threading.Event()

    def ask(tool: str, arguments: dict[str, Any]) -> Any:
        begun.set()
        time.sleep(0.01)
        return Answer("r", "1")

    def go() -> None:
        code = "tools.x()\nimport time\ntime.sleep(60)"
        ended.append(host.run(code, ({"name": "x"},), ask, wall_seconds=30, call_seconds=1))

    thread = threading.Thread(target=go)
    thread.start()
    assert begun.wait(10)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    thread.join(10)
    assert not thread.is_alive()
    assert ended[0].end is End.SIGNAL
    server.close()


@pytest.mark.parametrize("cold", [True, False])
def test_a_script_ends_with_a_killed_worker(cold: bool) -> None:
    worker = f"""
import sys, threading
from agent.code_mode.host import Host
from agent.code_mode.bridge import Answer
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.forking import ForkServer
server = None if {cold} else ForkServer()
assert server is None or server.warm(20)
def ask(tool, arguments):
    print(arguments["pid"], flush=True)
    return Answer("r", "1")
code = "import os, time\\ntools.x(pid=os.getpid())\\ntime.sleep(60)"
Host(limits=CodeModeConfig(), server=server).run(code, ({{"name": "x"}},), ask, wall_seconds=60, call_seconds=1)
"""
    process = subprocess.Popen([sys.executable, "-c", worker], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    script = int(process.stdout.readline())
    assert Path(f"/proc/{script}").exists()
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 10
    while alive(script):
        assert time.monotonic() < deadline, "the script outlived its worker"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (None, "(no code)"),
        ("", "(no code)"),
        (5, "(no code)"),
        ("print(1)", "print(1)"),
        ("\n  import os\nprint(1)\n", "import os (+1 lines)"),
    ],
)
def test_one_line_for_people_whatever_the_code_is(code: Any, line: str) -> None:
    assert summary({"code": code}) == line


def test_no_more_scripts_run_at_a_time_than_allowed(server: ForkServer) -> None:
    host = Host(limits=CodeModeConfig(concurrent_scripts=2), server=server)
    running, most, lock = [0], [0], threading.Lock()
    both = threading.Barrier(2)

    def answer(_given: dict[str, Any]) -> ToolResult:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        both.wait(10)
        with lock:
            running[0] -= 1
        return ToolResult.success("x")

    tool = a_tool("meet", answer)
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda n: run(host, f"print(tools.meet(query='{n}'))", [tool]), range(6)))
    assert [result.data for result in results] == ["x"] * 6
    assert most[0] == 2


UNSEALED = ("seccomp", "landlock", "rlimits", "no_new_privileges")


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess\nprint('part', subprocess.Popen(['/bin/sleep', '300']).pid)\nwhile True: pass",
        "import subprocess\nprint('part', subprocess.Popen(['/bin/sleep', '300']).pid)",
    ],
    ids=["it runs on", "it leaves at once"],
)
def test_without_a_seal_what_a_script_started_goes_with_it(code: str) -> None:
    """As where the operator accepts no isolation: a child of the script holds its output open."""
    host = Host(limits=CodeModeConfig(), skip=UNSEALED)
    begun = time.monotonic()
    outcome = host.run(code, (), lambda *_: Answer("e", '""'), wall_seconds=2, call_seconds=1)
    assert time.monotonic() - begun < 5
    word, pid = outcome.stdout.split()
    assert word == "part"
    deadline = time.monotonic() + 5
    while alive(int(pid)):
        assert time.monotonic() < deadline, "it was left behind"
        time.sleep(0.02)


def test_a_process_that_something_else_waited_for_is_told_as_killed() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps, and nobody learns how it ended
    try:
        outcome = Host(limits=CodeModeConfig()).run(
            "print('part')", (), lambda *_: Answer("e", '""'), wall_seconds=10, call_seconds=1
        )
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert outcome.stdout == "part\n"
    assert outcome.end is End.SIGNAL
