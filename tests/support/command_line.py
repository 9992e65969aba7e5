"""The `rootcaused` command in this process: what it printed and how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.logging_state import restored_logging
from worker.cli.main import main


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


CommandLine = Callable[..., Done]


def command_line(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    def run(*arguments: object) -> Done:
        with restored_logging(), pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(int(ended.value.code or 0), captured.out, captured.err)

    return run
