"""The process a script runs in: takes its order, seals itself, runs the script, ends. Standard library only.

Started as `python -I -S -B -X utf8 child.py FD`, where FD is the inherited bridge; the fork server calls `live` in a
process that has everything loaded.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys

if __name__ == "__main__":  # isolated mode leaves our own packages out; last, so that nothing hides a standard module
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))  # noqa: PTH120  pathlib is slow

from agent.code_mode import modules, script
from agent.code_mode.client import ToolError, Tools, help_of
from agent.code_mode.seal import Layers, seal
from agent.code_mode.threads import PARKED, STACK_BYTES, Parking
from agent.code_mode.wire import UNSEALED, Closed, Wire

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all of this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def main() -> None:
    parent = os.getppid()
    reset_signals()
    live(int(sys.argv[1]), parent, modules.load_for)


def live(bridge: int, parent: int, load: Callable[[str], None] = lambda _code: None) -> None:
    """From order to end; never returns. `load` imports what a script may need, where that is not done yet."""
    _open_output()
    wire = Wire(bridge)
    try:
        order = wire.receive()
    except Closed:
        os._exit(1)
    code = str(order["code"])
    load(code)
    no_more_imports()
    layers = _seal(order, parent, modules.wants_threads(code))
    wire.tell({"s": layers})
    if any(layers.get(name) for name in order["need"]):
        os._exit(UNSEALED)
    tools = Tools(wire, order["tools"])
    given = {"tools": tools, "ToolError": ToolError, "help": help_of(tools), "exit": sys.exit, "quit": sys.exit}
    gc.enable()
    status = script.run(code, given, lambda text: wire.tell({"v": text}))
    _flush()
    os._exit(status)


def _seal(order: dict[str, Any], parent: int, threads: bool) -> Layers:
    def park() -> None:
        if threads:
            parking = Parking()
            parking.fill()
            parking.install()

    return seal(
        parent=parent,
        memory_bytes=int(order["memory_bytes"]) + (PARKED * STACK_BYTES if threads else 0),
        cpu_seconds=int(order["cpu_seconds"]),
        park=park,
        skip=list(order["skip"]),
    )


def no_more_imports() -> None:
    """Behind the seal nothing can be read: say so, instead of failing at it."""
    if sys.path:
        sys.path[:] = []
        sys.path_importer_cache.clear()
        sys.meta_path.append(_Missing())


def reset_signals() -> None:
    """A pool's children have SIGINT ignored and may block others; that would pass on to us."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _open_output() -> None:
    """Unbuffered, so that what a killed script printed is not lost with it; what can't be encoded is escaped."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(fd, "wb", closefd=False)
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # the script closed or replaced it


class _Missing:
    """Says what can be imported, where nothing else can be."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002
        raise ModuleNotFoundError(
            f"No module named {fullname!r} here: standard library only, and by plain import statements in the script",
            name=fullname,
        )


if __name__ == "__main__":
    main()
