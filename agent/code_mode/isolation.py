"""How well this host can isolate a script: tried with a throwaway run, graded, and told layer by layer."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agent.code_mode.bridge import Answer
from agent.code_mode.config import CodeModeConfig, Require
from agent.code_mode.host import End, Host, Outcome
from agent.code_mode.layers import (
    LANDLOCK,
    NO_NEW_PRIVILEGES,
    NOT_DUMPABLE,
    OWN_USER,
    PARENT_DEATH,
    RLIMITS,
    SECCOMP,
)

PROOF_SECONDS = 20.0  # for what takes a twentieth of one, on a machine that is very busy

LOST = {
    SECCOMP: "nothing stops the script from opening files and sockets, starting programs or signalling the worker",
    LANDLOCK: "no second layer under the filter for files, TCP and signals",
    NO_NEW_PRIVILEGES: "a set-uid program could give the script new rights",
    RLIMITS: "memory, CPU time, files and processes of a script are not bounded",
    NOT_DUMPABLE: "another process of the same user could read the script's memory",
    PARENT_DEATH: "a script could outlive a worker that is killed, up to its own CPU limit",
    OWN_USER: "the script shares its user's limits and signals with other processes of that user",
}
BOUNDARY = (SECCOMP, NO_NEW_PRIVILEGES, RLIMITS)  # what `partial` still needs
WANTED = (*BOUNDARY, NOT_DUMPABLE, PARENT_DEATH, LANDLOCK)  # what `full` needs; an own user only root can give

# Each act must fail. What went through is printed.
PROOF = """
import os, socket, json
passed = []
def refused(name, act):
    try:
        act()
    except OSError:
        return
    passed.append(name)
def fork():
    if os.fork() == 0:
        os._exit(0)
refused("open a file", lambda: open("/proc/self/environ", "rb"))
refused("list a folder", lambda: os.listdir("/"))
refused("write a file", lambda: open("/dev/null", "r+b"))
refused("make a socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
refused("connect", lambda: socket.create_connection(("127.0.0.1", 9), 0.5))
refused("start a process", fork)
refused("signal the parent", lambda: os.kill(os.getppid(), 0))
print(json.dumps(passed))
"""


class Level(StrEnum):
    """`full`: every layer. `partial`: the filter, which is the boundary, but not every layer. `none`: neither."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    name: str
    holds: bool
    why: str = ""  # it doesn't hold
    lost: str = ""  # without it


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    level: Level
    layers: tuple[Layer, ...]
    passed: tuple[str, ...] = ()  # acts of the proof that went through although the layers say they can't
    reason: str = ""  # why it is not `full`

    def words(self) -> str:
        """The level and the layers, for `doctor`: which hold, which don't and why, and what is lost by that."""
        held = ", ".join(layer.name for layer in self.layers if layer.holds) or "none"
        lost = [f"without {layer.name} ({layer.why}): {layer.lost}" for layer in self.layers if not layer.holds]
        return "; ".join([f"isolation {self.level}", f"layers that hold: {held}", *lost, *filter(None, [self.reason])])

    def meets(self, require: Require) -> bool:
        order = (Level.NONE, Level.PARTIAL, Level.FULL)
        return order.index(self.level) >= order.index(Level(require))


def needed(require: Require) -> Sequence[str]:
    """The layers without which no script is run, whatever the probe said earlier."""
    return {"full": WANTED, "partial": BOUNDARY, "none": ()}[require]


def probe(config: CodeModeConfig | None = None, skip: Sequence[str] = ()) -> Isolation:
    """Run the proof once, cold. Takes about a tenth of a second; the answer holds as long as the host is the same."""
    limits = (config or CodeModeConfig()).model_copy(update={"concurrent_sub_calls": 1})
    host = Host(limits=limits, skip=skip)
    try:
        outcome = host.run(PROOF, (), _deny, wall_seconds=PROOF_SECONDS, call_seconds=1.0)
    except OSError as error:
        return Isolation(level=Level.NONE, layers=(), reason=f"no process can be started: {error.strerror}")
    return graded(outcome.layers, outcome)


def graded(found: Mapping[str, str], outcome: Outcome) -> Isolation:
    if outcome.end is not End.FINISHED or not found:
        words = outcome.words or "it did not finish"
        detail = outcome.stderr.strip()[-300:]
        return Isolation(level=Level.NONE, layers=(), reason=f"the trial script failed: {words} {detail}".strip())
    layers = tuple(
        Layer(name=name, holds=not why, why=why, lost=LOST.get(name, "") if why else "") for name, why in found.items()
    )
    missing = [name for name in WANTED if found.get(name, "not reported")]
    passed = tuple(str(name) for name in json.loads(outcome.stdout or "[]"))
    if passed:
        level = Level.NONE
    elif not missing:
        level = Level.FULL
    else:
        level = Level.NONE if set(missing) & set(BOUNDARY) else Level.PARTIAL
    return Isolation(level=level, layers=layers, passed=passed, reason=_reason(found, missing, passed))


def _reason(found: Mapping[str, str], missing: Sequence[str], passed: Sequence[str]) -> str:
    if passed and not missing:
        return f"the layers were set up, but a trial script could {', '.join(passed)}"
    parts = [f"{name}: {found.get(name, 'not reported')}" for name in missing]
    return "; ".join(parts) + (f" (on {sys.platform})" if parts and sys.platform != "linux" else "")


def _deny(tool: str, _arguments: dict[str, Any]) -> Answer:
    return Answer("e", json.dumps(f"{tool}: the proof has no tools"))
