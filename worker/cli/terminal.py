"""What reaches the terminal: clean text, tables, JSON. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from worker.cli.exits import Misused

# Escape sequences whole, or their printable rest would stay behind: CSI, OSC and the other strings, then single ones.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_DROPPED = ("Cc", "Cf", "Cs", "Co", "Cn")  # control, format (bidi overrides, tags), surrogate, private, unassigned
_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPAN = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>[smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def clean(text: str) -> str:
    """Text that only prints: no escape sequences, no overwriting, no hidden or direction-changing characters."""
    text = _BREAKS.sub("\n", _SEQUENCE.sub("", text))
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _DROPPED)


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def say(text: str) -> None:
    """For people: progress, remarks, errors."""
    typer.echo(clean(text), err=True)


def show(text: str) -> None:
    """A result."""
    typer.echo(clean(text))


def show_json(value: Any) -> None:
    """A result for programs; pure ASCII, so control characters are escaped."""
    typer.echo(json.dumps(value, indent=2, default=str))


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as what is in them; on a terminal the last one is cut to fit."""
    lines = [list(head), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        typer.echo(text[:room] if room else text)


def since(text: str, now: datetime) -> datetime | None:
    """`90m`, `24h`, `7d` before now, or a date or time (UTC unless it says otherwise). Raises `Misused`."""
    if not text:
        return None
    if match := _SPAN.fullmatch(text.strip()):
        try:
            return now - timedelta(**{_UNITS[match["unit"]]: float(match["count"])})
        except OverflowError as error:
            raise Misused(f"--since {text}: too long ago") from error
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise Misused(f"--since {text}: write a span such as 90m, 24h or 7d, or a date such as 2031-02-03") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def age(at: datetime, now: datetime) -> str:
    """How long ago, in one unit."""
    seconds = max(0.0, (now - at).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
