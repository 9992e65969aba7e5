"""Atlassian Document Format, for Jira Cloud: a tree, so that no text can become markup, a mention or an image."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from agent.report import Report
from sources.port import MARKER_PREFIX
from sources.render.fit import utf16_units
from sources.render.inert import allowed, neutral, visible
from sources.render.plain import plain
from sources.render.prose import Block, Bullets, Code, Paragraph, Span
from sources.render.sections import Document, compose

# Jira takes 32,767 characters. What it counts of a document is not said, so every block counts two more than its text.
LIMIT = 30_000
BLOCK_UNITS = 2
NOTE = "Truncated: the whole report is in rootcaused."
Node = dict[str, Any]


def adf(report: Report, limit: int = LIMIT, *, hosts: Collection[str] = ()) -> Node:
    """The report as a document of at most `limit` UTF-16 units; the marker is its last paragraph."""
    document = compose(report, hosts)
    blocks = [_heading(document.title, 3, document), *_blocks(document.above, document)]
    for section in document.below:
        blocks += [_heading(section.heading, 4, document), *_blocks(section.blocks, document)]
    tail = [{"type": "rule"}, *(_paragraph(_text(line, document)) for line in document.footer)]
    return _doc(_fit(blocks, [*tail, _paragraph([_node(document.marker)])], limit))


def adf_code(report: Report, limit: int = LIMIT) -> Node:
    """The report as one code block: the plainest document there is, for a server that refused the other."""
    return _doc([_code(plain(report, limit - BLOCK_UNITS, measure=utf16_units))])


def units(node: Node) -> int:
    """What a node counts towards the limit."""
    own = utf16_units(node["text"]) if node["type"] == "text" else BLOCK_UNITS
    return own + sum(map(units, node.get("content", ())))


def _fit(blocks: Sequence[Node], tail: Sequence[Node], limit: int) -> list[Node]:
    """As many whole blocks as fit before `tail`; when some are left out, a note stands in their place."""
    if sum(map(units, [*blocks, *tail])) <= limit:
        return [*blocks, *tail]
    ending = [_paragraph([_node(NOTE, "strong")]), *tail]
    room = limit - sum(map(units, ending))
    kept: list[Node] = []
    for block in blocks:
        room -= units(block)
        if room < 0:
            break
        kept.append(block)
    while kept and kept[-1]["type"] == "heading" and len(kept) > 1:
        kept.pop()
    return [*kept, *ending]


def _doc(content: list[Node]) -> Node:
    return {"type": "doc", "version": 1, "content": content}


def _blocks(blocks: tuple[Block, ...], document: Document) -> Iterator[Node]:
    for block in blocks:
        match block:
            case Paragraph(spans):
                yield _paragraph(_line(spans, document))
            case Bullets(items):
                listed = [{"type": "listItem", "content": [_paragraph(_line(item, document))]} for item in items]
                yield {"type": "bulletList", "content": listed}
            case Code(text):
                yield _code(visible(text).replace(MARKER_PREFIX, MARKER_PREFIX.replace(":", " ")))


def _heading(text: str, level: int, document: Document) -> Node:
    return {"type": "heading", "attrs": {"level": level}, "content": _text(text, document)}


def _paragraph(content: list[Node]) -> Node:
    return {"type": "paragraph", "content": content}


def _code(text: str) -> Node:
    """A text node may not be empty, and one in a code block has no marks."""
    return {"type": "codeBlock", "content": [_node(text)] if text else []}


def _line(spans: tuple[Span, ...], document: Document) -> list[Node]:
    return [node for span in spans for node in _span(span, document)]


def _span(span: Span, document: Document) -> list[Node]:
    if span.url:
        if not allowed(span.url, document.hosts):
            return []
        link = {"type": "link", "attrs": {"href": span.url}}
        return [{**node, "marks": [link]} for node in _text(span.text, document)]
    if span.style == "code":
        return [{**node, "marks": [{"type": "code"}]} for node in _text(span.text, document)]
    return _text(span.text, document, span.style)


def _text(text: str, document: Document, style: str = "plain") -> list[Node]:
    """One line; a line break inside a text node is not valid. Blanks at its ends part it from its neighbours."""
    words = neutral(" ".join(text.split()), document.hosts)
    if not words:
        return [_node(" ")] if text else []
    before, after = (" " if edge.isspace() else "" for edge in (text[:1], text[-1:]))
    return [_node(f"{before}{words}{after}", style)]


def _node(text: str, style: str = "plain") -> Node:
    node: Node = {"type": "text", "text": text}
    return {**node, "marks": [{"type": "strong"}]} if style == "strong" else node
