"""Lines that match a pattern a model wrote, in bounded time.

Python's `re` can take exponential time, holds the interpreter's lock meanwhile and can't be interrupted. So words and
`a|b` are looked for as they stand, and anything more runs in a child process that is killed when it takes too long.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence

from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets import process

MAX_PATTERN_CHARS = 300
SECONDS = 5.0
_PLAIN = re.compile(r"[\w \-:/,\"'=#@!%&<>;~|]+")
_CHILD = """
import re, sys
try:
    pattern = re.compile(sys.argv[1], re.IGNORECASE)
except (re.error, OverflowError, RecursionError, MemoryError) as error:
    sys.exit(f"not a regular expression: {error}")
for number, line in enumerate(sys.stdin.buffer.read().decode("utf-8", "replace").split("\\n")):
    if pattern.search(line):
        print(number)
"""


def matching(lines: Sequence[str], pattern: str, deadline: Deadline) -> list[str]:
    """The lines in which `pattern` (a regular expression, case ignored) is found. Raises `ToolError`."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ToolError(f"grep: over {MAX_PATTERN_CHARS} characters")
    if _PLAIN.fullmatch(pattern):
        words = [word.lower() for word in pattern.split("|") if word]
        return [line for line in lines if any(word in line.lower() for word in words)]
    return [lines[number] for number in _numbers(lines, pattern, deadline)]


def _numbers(lines: Sequence[str], pattern: str, deadline: Deadline) -> list[int]:
    one_line_each = (line.replace("\n", " ") for line in lines)
    with tempfile.TemporaryFile() as text:
        text.write("\n".join(one_line_each).encode("utf-8", "replace"))
        text.seek(0)
        outcome = process.run(
            [sys.executable, "-I", "-S", "-c", _CHILD, pattern],
            deadline=deadline,
            limits=process.Limits(seconds=SECONDS, output_bytes=5_000_000),
            stdin=text,
        )
    if outcome.code is None:
        raise ToolError(f"grep: {pattern!r} takes too long; use a plain word")
    if outcome.code != 0:
        raise ToolError(f"grep: {pattern!r} is {outcome.output.strip()[:200] or 'not usable'}")
    return [int(number) for number in outcome.output.split()]
