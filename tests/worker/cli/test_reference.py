"""docs/cli.md says what the commands say."""

from __future__ import annotations

from pathlib import Path

from worker.cli.exits import Status
from worker.cli.reference import MEANINGS, reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_page_is_what_the_commands_say_today() -> None:
    assert PAGE.read_text() == reference(), "run: python -m worker.cli.reference > docs/cli.md"


def test_every_exit_status_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Status)
