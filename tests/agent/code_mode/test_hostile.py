"""The hostile scripts in two modes that differ in everything; tests/chaos has the other modes."""

from __future__ import annotations

import sys

import pytest

from tests.agent.code_mode.hostile.people import run_scripts
from tests.agent.code_mode.hostile.run import GROUPS

SEALED_OUT = ("secrets", "files", "network", "processes", "escape")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing can be sealed here")


def test_there_are_enough_scripts_and_each_has_a_name_of_its_own() -> None:
    names = [script.name for scripts in GROUPS.values() for script in scripts]
    assert len(names) == len(set(names)) >= 80


def test_hostile_scripts_end_as_they_must_by_the_fork_server() -> None:
    done = run_scripts(without_rights=False)
    assert done is not None
    assert done.returncode == 0, done.stdout + done.stderr


def test_hostile_scripts_end_as_they_must_cold_without_rights_and_without_landlock() -> None:
    done = run_scripts(*SEALED_OUT, "--cold", "--skip", "landlock", without_rights=True)
    if done is None:
        pytest.skip("no interpreter here that a user without rights can run")
    assert done.returncode == 0, done.stdout + done.stderr
