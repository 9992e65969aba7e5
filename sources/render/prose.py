"""A model's prose, read as a little Markdown: headings, bullets, fenced code, paragraphs, bold and code spans."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

MAX_ITEMS = 15
MAX_CODE_LINES = 60  # a longer one becomes several, so that truncation need not drop all of it

Style = Literal["plain", "strong", "code"]
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
_BULLET = re.compile(r"^\s*(?:[-*+]\s+|(\d{1,3}[.)]\s+))(.*)$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*)$")
_INLINE = re.compile(r"\*\*(?P<strong>[^*\n]+)\*\*|`(?P<code>[^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text. `url` makes it a link where the target may link there."""

    text: str
    style: Style = "plain"
    url: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[tuple[Span, ...], ...]


@dataclass(frozen=True, slots=True)
class Code:
    text: str


Block = Paragraph | Bullets | Code


def parse_prose(text: str) -> Iterator[Block]:
    """The blocks of `text`. Never fails: what is not understood is a paragraph; links and images stay plain text."""
    for listed, blocks in itertools.groupby(_blocks(text), key=lambda block: isinstance(block, Bullets)):
        if listed:
            yield from bullets(item for block in blocks if isinstance(block, Bullets) for item in block.items)
        else:
            yield from blocks


def bullets(items: Iterable[tuple[Span, ...]]) -> Iterator[Bullets]:
    """One list, in parts when it is long: a cut falls between blocks."""
    rest = iter(items)
    while part := tuple(itertools.islice(rest, MAX_ITEMS)):
        yield Bullets(part)


def _blocks(text: str) -> Iterator[Block]:
    lines = iter(text.splitlines())
    waiting: list[str] = []
    for line in lines:
        if fence := _FENCE.match(line):
            yield from _flush(waiting)
            yield from _code(lines, fence[1])
        elif heading := _HEADING.match(line):
            yield from _flush(waiting)
            yield Paragraph((Span(heading[1].rstrip("# "), "strong"),))
        elif bullet := _BULLET.match(line):
            yield from _flush(waiting)
            yield Bullets((spans((bullet[1] or "") + bullet[2]),))
        elif line.strip():
            waiting.append(line.strip())
        else:
            yield from _flush(waiting)
    yield from _flush(waiting)


def spans(line: str) -> tuple[Span, ...]:
    """Bold and code inside a line."""
    found: list[Span] = []
    end = 0
    for match in _INLINE.finditer(line):
        found.append(Span(line[end : match.start()]))
        found.append(Span(match["strong"], "strong") if match["strong"] else Span(match["code"], "code"))
        end = match.end()
    found.append(Span(line[end:]))
    return tuple(span for span in found if span.text)


def _flush(waiting: list[str]) -> Iterator[Block]:
    if waiting:
        yield Paragraph(spans(" ".join(waiting)))
        waiting.clear()


def _code(lines: Iterator[str], fence: str) -> Iterator[Block]:
    """Up to the closing fence or the end: a model may forget it."""
    held: list[str] = []
    for line in lines:
        if line.strip().startswith(fence[0] * len(fence)) and not line.strip().strip(fence[0]):
            break
        held.append(line)
    for start in range(0, len(held), MAX_CODE_LINES):
        if code := "\n".join(held[start : start + MAX_CODE_LINES]).strip("\n"):
            yield Code(code)
