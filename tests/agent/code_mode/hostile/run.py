"""Runs the hostile scripts in one mode: `python -m tests.agent.code_mode.hostile.run [--cold] [--skip landlock] ...`.

Prints one line a script that did not end as it must, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.alert import Alert
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.filter import conditions
from agent.code_mode.forking import ForkServer
from agent.code_mode.host import Host
from agent.code_mode.isolation import probe
from agent.code_mode.syscalls import ALLOWED, NUMBERS
from agent.code_mode.tool import code_tool
from agent.deadline import Deadline
from agent.tools import ResultStatus, Tool, ToolContext, ToolResult
from tests.agent.code_mode.hostile import escape, exits, files, network, output, processes, protocol, resources, secrets
from tests.agent.code_mode.hostile.script import BREACH, Script

CANARY = "canary-value-7f3a9c"
GROUPS: dict[str, tuple[Script, ...]] = {
    module.__name__.rpartition(".")[2]: module.SCRIPTS
    for module in (secrets, files, network, processes, escape, resources, output, protocol, exits)
}
PARALLEL = 6
SUB_CALLS = 20
OVERRUN_SECONDS = 3.0
CONDITIONAL = tuple(conditions(0))  # by name


class World:
    """What the scripts would find if they got out: a file, listeners, a process, an environment with a secret in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o777)
        self.file = folder / "readable"
        self.file.write_text(CANARY)
        self.file.chmod(0o666)
        self.reached: list[str] = []
        self.tcp, self.udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.abstract = f"rootcaused-{os.getpid()}"
        self.listeners = [self.tcp, self.udp]
        for address in (str(folder / "s"), f"\0{self.abstract}"):
            for kind, suffix in ((socket.SOCK_STREAM, ""), (socket.SOCK_DGRAM, ".dgram")):
                one = socket.socket(socket.AF_UNIX, kind)
                one.bind(address + suffix)
                if kind == socket.SOCK_STREAM:
                    one.listen()
                self.listeners.append(one)
        self.victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.before = self.state()

    def state(self) -> tuple[list[str], str, int]:
        names = sorted(path.name for path in self.folder.iterdir())
        return (names, self.file.read_text(), self.file.stat().st_mode) if self.file.exists() else (names, "gone", 0)

    def place(self, code: str) -> str:
        """The script with the addresses of this world in it."""
        numbers = NUMBERS[platform.machine()]
        allowed = sorted(numbers[name] for name in (*ALLOWED, *CONDITIONAL) if name in numbers)
        for mark, value in {
            "@FILE@": str(self.file),
            "@FOLDER@": str(self.folder),
            "@TCP@": str(self.tcp.getsockname()[1]),
            "@UDP@": str(self.udp.getsockname()[1]),
            "@UNIX@": str(self.folder / "s"),
            "@ABSTRACT@": self.abstract,
            "@VICTIM@": str(self.victim.pid),
            "@ALLOWED@": str(allowed),
        }.items():
            code = code.replace(mark, value)
        return code

    def harm(self) -> list[str]:
        """What was done to the world."""
        found = [] if self.victim.poll() is None else ["the victim was killed"]
        if self.state() != self.before:
            found.append(f"files were changed: {self.state()}")
        for one in self.listeners:
            one.setblocking(False)
            try:
                one.recv(1) if one.type == socket.SOCK_DGRAM else one.accept()
            except BlockingIOError:
                continue
            found.append(f"{one.getsockname()} was reached")
        return found

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for one in self.listeners:
            one.close()


@contextmanager
def world() -> Iterator[World]:
    os.environ["ROOTCAUSED_CANARY_TOKEN"] = CANARY
    with tempfile.TemporaryDirectory() as folder:
        made = World(Path(folder))
        try:
            yield made
        finally:
            made.close()


def tools() -> list[Tool]:
    released = threading.Event()

    def hang(_arguments: Any, context: ToolContext) -> ToolResult:
        released.wait(context.deadline.remaining + 2)  # past what it was given
        return ToolResult.success("late")

    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    nothing = {"type": "object", "properties": {}}
    breach = ToolResult.success(BREACH)
    return [
        Tool(
            name="echo", description="Says it again.", parameters=text, run=lambda a, _: ToolResult.success(a["text"])
        ),
        Tool(name="large", description="Much.", parameters=nothing, run=lambda *_: ToolResult.success("x" * 2_000_000)),
        Tool(name="hang", description="Never.", parameters=nothing, run=hang),
        Tool(name="danger", description="", parameters=nothing, run=lambda *_: breach, restricted=True),
        Tool(
            name="needs_person",
            description="",
            parameters=nothing,
            run=lambda *_: ToolResult(status=ResultStatus.APPROVAL_REQUIRED, data="refused"),
        ),
        Tool(name="report", description="", parameters=nothing, run=lambda *_: breach, core=True),
        Tool(name="bash", description="", parameters=nothing, run=lambda *_: breach),
    ]


def faults(script: Script, place: World, *, server: ForkServer | None, skip: Sequence[str]) -> list[str]:
    """What is wrong with how the script ended; empty when all is as it must be."""
    limits = CodeModeConfig(
        wall_seconds=script.wall,
        cpu_seconds=script.cpu,
        memory_mb=script.memory_mb,
        sub_calls=SUB_CALLS,
        concurrent_sub_calls=8,
    )
    ended = []

    class Watched(Host):
        def run(self, *args: Any, **kwargs: Any) -> Any:
            ended.append(super().run(*args, **kwargs))
            return ended[-1]

    host = Watched(limits=limits, server=server, skip=skip)
    tool = code_tool(tools(), limits, host=host, tool_seconds=0.2, grace_seconds=0.1)
    begun = time.monotonic()
    context = ToolContext(deadline=Deadline.after(60), alert=Alert(source="test", id="1", title="hostile"))
    result = tool.run({"code": place.place(script.whole)}, context)
    seconds = time.monotonic() - begun
    text = f"{result.error}\n{result.data}"
    found = [f"ended as {ended[0].end}: {text[-600:]}"] if ended[0].end not in script.ends else []
    if script.says not in text:
        found.append(f"does not say {script.says!r}: {text[-600:]}")
    if BREACH in text or CANARY in text:
        found.append(f"got through: {[line for line in text.splitlines() if BREACH in line or CANARY in line][:5]}")
    if seconds > script.wall + OVERRUN_SECONDS:
        found.append(f"took {seconds:.1f} s")
    if len(text) > limits.output_bytes * 2 + 200_000:
        found.append(f"gave {len(text)} characters")
    return found


def run(names: Sequence[str], *, cold: bool, skip: Sequence[str]) -> dict[str, list[str]]:
    """Faults by script, and of the whole; no entry where all is well."""
    with world() as place:
        server = None if cold else ForkServer()
        if server is not None and not server.warm(20):
            return {"fork server": ["did not start"]}
        before = _held()
        scripts = [script for name in names for script in GROUPS[name]]
        with ThreadPoolExecutor(PARALLEL) as pool:
            found = list(pool.map(lambda script: faults(script, place, server=server, skip=skip), scripts))
        wrong = {script.name: bad for script, bad in zip(scripts, found, strict=True) if bad}
        if harm := place.harm():
            wrong["the world"] = harm
        if not _eventually(lambda: _held() == before):
            wrong["this process"] = [f"descriptors, threads, children: {before} before, {_held()} after"]
        if server is not None:
            server.close()
        return wrong


def _held() -> tuple[int, int, int]:
    """Open descriptors, threads but the pool's, and child processes of this process."""
    threads = sum(not thread.name.startswith("ThreadPool") for thread in threading.enumerate())
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(list(Path("/proc/self/fd").iterdir())), threads, len(children)


def _eventually(holds: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="The hostile scripts, in one mode.")
    parser.add_argument("group", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--cold", action="store_true", help="a new interpreter for each script, not the fork server")
    parser.add_argument("--skip", action="append", default=[], help="a layer to leave out")
    given = parser.parse_args()
    isolation = probe(skip=given.skip)
    names = given.group or list(GROUPS)
    count = sum(len(GROUPS[name]) for name in names)
    wrong = run(names, cold=given.cold, skip=given.skip)
    how = "cold" if given.cold else "fork server"
    lost = [layer.name for layer in isolation.layers if not layer.holds]
    print(f"{count} scripts, uid {os.getuid()}, {how}, isolation {isolation.level}, without {lost or 'nothing'}")
    for name, bad in wrong.items():
        print(f"WRONG {name}: {'; '.join(bad)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
