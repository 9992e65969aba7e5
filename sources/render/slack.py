"""Slack blocks, for Slack-compatible incoming webhooks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from agent.report import Report
from sources.render.fit import prefix
from sources.render.inert import allowed, neutral, visible
from sources.render.prose import Block, Bullets, Code, Paragraph, Span
from sources.render.sections import Document, compose

# https://docs.slack.dev/reference/block-kit/blocks: header 150, section text 3,000 characters, 50 blocks a message
MAX_HEADER_CHARS = 150
MAX_SECTION_CHARS = 3_000
MAX_BLOCKS = 50
NOTE = "_Truncated: the whole report is in rootcaused._"


def slack_blocks(report: Report, *, hosts: Collection[str] = ()) -> list[dict[str, Any]]:
    """The essentials, then what is below the fold as far as a message holds it, figures and marker last."""
    document = compose(report, hosts)
    blocks = [_header(document.title), *map(_section, _packed(_pieces(document.above, document)))]
    ending = "\n".join([*(escaped(line, document.hosts) for line in document.footer), document.marker])
    for section in document.below:
        heading = f"*{escaped(section.heading)}*"
        blocks += map(_section, _packed([heading, *_pieces(section.blocks, document)]))
    if len(blocks) > MAX_BLOCKS - 1:
        blocks = [*blocks[: MAX_BLOCKS - 2], _section(NOTE)]
    return [*blocks, {"type": "context", "elements": [_mrkdwn(prefix(ending, MAX_SECTION_CHARS, len))]}]


def slack_text(report: Report) -> str:
    """The line shown in notifications."""
    return escaped(compose(report).title)


def escaped(text: str, hosts: Collection[str] = ()) -> str:
    """Slack reacts to `<...>` only, once the text is marked verbatim; style characters are parted from their word."""
    text = neutral(text, hosts).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\u200b{c}\u200b" if c in "*~`" else c for c in text)


def _header(title: str) -> dict[str, Any]:
    text = neutral(title)
    text = text if len(text) <= MAX_HEADER_CHARS else text[: MAX_HEADER_CHARS - 1] + "…"
    return {"type": "header", "text": {"type": "plain_text", "text": text, "emoji": False}}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> dict[str, Any]:
    """`verbatim`: addresses, channels and names in the text stay text."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _packed(pieces: list[str] | Iterator[str]) -> Iterator[str]:
    """Pieces joined into texts that fit a section."""
    held = ""
    for whole in pieces:
        piece = whole if len(whole) <= MAX_SECTION_CHARS else prefix(whole, MAX_SECTION_CHARS - 1, len) + "…"
        if held and len(held) + 1 + len(piece) > MAX_SECTION_CHARS:
            yield held
            held = piece
        else:
            held = f"{held}\n{piece}" if held else piece
    if held:
        yield held


def _pieces(blocks: tuple[Block, ...], document: Document) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph(spans):
                yield _line(spans, document)
            case Bullets(items):
                yield from (f"• {_line(item, document)}" for item in items)
            case Code(text):
                yield from _code(text)


def _code(text: str) -> Iterator[str]:
    """Code blocks that end where they should: a run of backticks in the text would end them early."""
    room = MAX_SECTION_CHARS - 10
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("```", "'''")
    for start in range(0, len(text), room):
        yield f"```\n{text[start : start + room]}\n```"


def _line(spans: tuple[Span, ...], document: Document) -> str:
    return "".join(_span(span, document) for span in spans)


def _span(span: Span, document: Document) -> str:
    if span.url:
        url = visible(span.url).replace("|", "%7C").replace(">", "%3E").replace("&", "&amp;")
        return f"<{url}|{escaped(span.text)}>" if allowed(span.url, document.hosts) else ""
    text = escaped(span.text, document.hosts)
    return f"*{text.strip()}* " if span.style == "strong" and text.strip() else text
