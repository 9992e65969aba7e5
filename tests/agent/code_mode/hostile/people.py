"""An interpreter that a user without rights can run, for tests that start as root."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
RUN_SECONDS = 55
NOBODY = 54_321  # no such user: nothing is his
CANDIDATES = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3")


@lru_cache
def unprivileged() -> tuple[Sequence[str], Mapping[str, Any]] | None:
    """Command and `subprocess` options for such an interpreter; None where this process can't start one."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if os.getuid() != 0:
        return (sys.executable,), {"env": environment}
    environment["PYTHONPATH"] = sysconfig.get_paths()["purelib"]
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": environment}
    for python in CANDIDATES:
        try:
            done = _run([python, "-c", "import pydantic, agent"], options)
        except OSError:
            continue
        if done.returncode == 0:
            return (python,), options
    return None


def run_scripts(*arguments: str, without_rights: bool) -> subprocess.CompletedProcess[str] | None:
    """`hostile.run` in a process of its own; None where there is no way to run it without rights."""
    command: Sequence[str] = (sys.executable,)
    options: Mapping[str, Any] = {"env": {**os.environ}}
    if without_rights:
        found = unprivileged()
        if found is None:
            return None
        command, options = found
    words = [*command, "-m", "tests.agent.code_mode.hostile.run", *arguments]
    return _run(words, options)


def _run(command: Sequence[str], options: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=RUN_SECONDS, **options
    )
