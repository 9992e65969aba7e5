from __future__ import annotations

import time

import pytest

from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets.grep import matching

LINES = ["all well", "ERROR: disk full", "timeout after 3s", "größe 12"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("error", ["ERROR: disk full"]),
        ("error|timeout", ["ERROR: disk full", "timeout after 3s"]),
        (r"after \d+s$", ["timeout after 3s"]),
        (r"^gr.{2}e \d", ["größe 12"]),
        ("absent", []),
        (r"^absent$", []),
    ],
)
def test_lines_are_found_by_words_and_by_regular_expression(pattern: str, found: list[str]) -> None:
    assert matching(LINES, pattern, Deadline.after(10)) == found


def test_a_catastrophic_pattern_is_stopped() -> None:
    started = time.monotonic()
    with pytest.raises(ToolError, match="takes too long"):
        matching(["a" * 60 + "b"], r"^(a+)+$", Deadline.after(0.4))
    assert time.monotonic() - started < 3


def test_a_pattern_that_does_not_compile_says_why() -> None:
    with pytest.raises(ToolError, match=r"not a regular expression: .*unterminated"):
        matching(LINES, "(open", Deadline.after(10))


def test_a_pattern_can_not_be_an_option_of_the_child() -> None:
    assert matching(["-c import os", "x"], "-c.import", Deadline.after(10)) == ["-c import os"]
