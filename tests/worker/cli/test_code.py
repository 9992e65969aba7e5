"""`rootcaused code run`: scripts by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.logging_state import restored_logging
from worker.cli.code import app
from worker.cli.exits import Misused, Status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing can be sealed here")

COUNT = """
pods = tools.demo_pods(service="payment")
bad = [pod["name"] for pod in pods if pod["restarts"]]
for pod, text in zip(bad, tools.map("demo_logs", bad)):
    print(pod, sum("ERROR" in line for line in text.splitlines()))
len(pods)
"""


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no configuration is found by chance."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOTCAUSED_CONFIG", raising=False)


def code_run(*arguments: str, given: str | None = None) -> Result:
    with restored_logging():
        return CliRunner().invoke(app, ["run", *arguments], input=given)


def test_a_script_over_the_demo_tools() -> None:
    done = code_run("-", "--tools", "demo", given=COUNT)
    assert done.exit_code == Status.OK
    assert done.stdout.splitlines() == [*(f"payment-{n} 21" for n in range(0, 25, 5)), "value: 25"]
    assert "T1.1  demo_pods(service=payment)  success" in done.stderr


def test_json_for_programs(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("print(len(tools.demo_pods()))")
    done = code_run(str(file), "--tools", "demo", "--json")
    told = json.loads(done.stdout)
    assert (told["status"], told["data"]) == ("success", "100")
    assert told["isolation"] in ("full", "partial")
    assert told["calls"] == [{"ref": "T1.1", "tool": "demo_pods", "params": {}, "status": "success"}]


def test_a_script_that_fails_gives_its_traceback_and_a_status() -> None:
    done = code_run("-", given="print('first')\n1/0")
    assert done.exit_code == Status.FAILED
    assert "first" in done.stdout
    assert "ZeroDivisionError: division by zero" in done.stdout


def test_a_limit_is_a_failure_with_what_was_printed() -> None:
    done = code_run("-", "--timeout", "1.5", given="print('part')\nwhile True: pass")
    assert done.exit_code == Status.FAILED
    assert done.stdout.splitlines()[0] == "part"
    assert "limit of 1.5 s" in done.stdout


def test_escape_sequences_never_reach_the_terminal() -> None:
    done = code_run("-", given=r"print('\x1b]52;c;eA==\x07\x1b[2Jclean')")
    assert done.stdout == "clean\n"


@pytest.mark.parametrize("arguments", [("nowhere.py",), ("-", "--tools", "other")])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert isinstance(code_run(*arguments, given="1").exception, Misused)
