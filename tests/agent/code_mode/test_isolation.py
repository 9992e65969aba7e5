"""What the host gives, layer by layer, and what is refused below it."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from agent.code_mode.bridge import Answer
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.host import End, Host, Outcome
from agent.code_mode.isolation import LOST, WANTED, Level, graded, needed, probe
from agent.code_mode.process import Exit
from agent.code_mode.tool import CodeMode

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="nothing can be sealed here")


def an_outcome(stdout: str = "[]", end: End = End.FINISHED) -> Outcome:
    return Outcome(
        end=end,
        words="",
        stdout=stdout,
        stderr="",
        value="",
        lost_bytes=0,
        exit=Exit(0),
        seconds=0.1,
        layers={},
        forked=False,
    )


def no_tools(_tool: str, _arguments: dict[str, Any]) -> Answer:
    return Answer("e", '"none"')


ALL = dict.fromkeys(WANTED, "")


@pytest.mark.parametrize(
    ("missing", "level"),
    [
        ((), Level.FULL),
        (("own_user",), Level.FULL),
        (("landlock",), Level.PARTIAL),
        (("parent_death", "not_dumpable"), Level.PARTIAL),
        (("seccomp",), Level.NONE),
        (("no_new_privileges",), Level.NONE),
        (("rlimits", "landlock"), Level.NONE),
    ],
)
def test_the_level_follows_the_layers(missing: tuple[str, ...], level: Level) -> None:
    found = graded({**ALL, **dict.fromkeys(missing, "not here")}, an_outcome())
    assert found.level is level
    assert {layer.name: layer.lost for layer in found.layers if not layer.holds} == {
        name: LOST[name] for name in missing
    }


def test_what_doctor_says_names_each_layer_and_what_is_lost() -> None:
    words = graded({**ALL, "landlock": "not in this kernel"}, an_outcome()).words()
    assert words.startswith("isolation partial; layers that hold: seccomp, ")
    assert "without landlock (not in this kernel): no second layer" in words


def test_an_act_that_went_through_counts_more_than_what_the_layers_say() -> None:
    found = graded(ALL, an_outcome('["connect"]'))
    assert (found.level, found.passed) == (Level.NONE, ("connect",))
    assert "connect" in found.reason


def test_a_trial_that_fails_proves_nothing() -> None:
    assert graded(ALL, an_outcome(end=End.SIGNAL)).level is Level.NONE
    assert graded({}, an_outcome()).level is Level.NONE


@on_linux
def test_without_the_filter_the_proof_gets_through() -> None:
    found = probe(skip=["seccomp", "landlock"])
    assert found.level is Level.NONE
    assert {"list a folder", "make a socket"} <= set(found.passed)


@on_linux
def test_what_is_required_is_required_of_every_run() -> None:
    host = Host(limits=CodeModeConfig(), need=needed("full"), skip=["not_dumpable"])
    outcome = host.run("print('ran')", (), no_tools, wall_seconds=10, call_seconds=1)
    assert outcome.end is End.UNSEALED
    assert outcome.stdout == ""


@on_linux
def test_root_becomes_a_user_that_nobody_else_is() -> None:
    outcome = Host(limits=CodeModeConfig()).run(
        "import os\nprint(os.getuid(), os.getgid())",
        (),
        no_tools,
        wall_seconds=10,
        call_seconds=1,
    )
    user, group = map(int, outcome.stdout.split())
    if os.getuid() == 0:
        assert user == group
        assert user >= 60_000
    else:
        assert user == os.getuid()


def test_the_tool_is_absent_below_what_is_required_and_says_why() -> None:
    mode = CodeMode(config=CodeModeConfig(enabled=True), tool_seconds=1)
    mode._isolation = graded({**ALL, "landlock": "not in this kernel"}, an_outcome())
    assert mode.tool([]) is None
    assert mode.unavailable() == (
        "the host gives isolation 'partial', and code_mode.require is 'full': landlock: not in this kernel"
    )
    mode.config = CodeModeConfig(enabled=True, require="partial")
    assert mode.tool([]) is not None
    mode.config = CodeModeConfig()
    assert mode.unavailable() == "code mode is not enabled"
