"""GitHub-flavoured Markdown: the essentials open, the rest folded away."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from agent.report import Report
from sources.render.fit import Measure, fit
from sources.render.inert import BREAK, allowed, neutral, no_command, visible
from sources.render.prose import Block, Bullets, Code, Paragraph, Span
from sources.render.sections import Document, compose

LIMIT = 60_000  # GitHub takes 65,536 characters
NOTE = "**Truncated:** the whole report is in rootcaused."
# What is special anywhere in a line, and what is so only at its start.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<!\w)_|_(?!\w)")
_LINE_START = re.compile(r"^(?:[-+>#=]|\d{1,9}(?=[.)]))")
_URL_SAFE = re.compile(r"[()\[\]<>\s|`*_\\\"']")


def markdown(report: Report, limit: int = LIMIT, *, hosts: Collection[str] = (), measure: Measure = len) -> str:
    """The report within `limit`, as `measure` counts; the marker is an HTML comment at the end."""
    document = compose(report, hosts)
    head = [f"### {escaped(document.title, document.hosts)}", *_blocks(document.above, document)]
    below = list(_below(document))
    tail = ["\n".join(escaped(line, document.hosts) + "  " for line in document.footer), f"<!-- {document.marker} -->"]
    opening, closing = "<details><summary>Timeline, evidence and all next steps</summary>", "</details>"
    whole = "\n\n".join([*head, opening, *below, closing, *tail] if below else [*head, *tail])
    if measure(whole) <= limit:
        return whole
    fixed = measure("\n\n".join([*head, opening, NOTE, closing, *tail]))
    if below and fixed + measure("\n\n" + below[0]) <= limit:
        return fit([*head, opening, *below], [closing, *tail], limit, NOTE, measure, glue="\n\n")
    return fit([*head, NOTE], tail, limit, NOTE, measure, glue="\n\n")


def escaped(text: str, hosts: Collection[str] = ()) -> str:
    """Text that renders as itself: no markup, no HTML, no entity, no mention, no formula."""
    text = neutral(" ".join(text.split()), hosts)
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    parts = re.split(r"(https?://\S+)", text)  # allowed links stay whole; all others were defanged
    text = "".join(_autolink(part) if index % 2 else _backslashed(part) for index, part in enumerate(parts))
    return _LINE_START.sub(lambda found: f"{BREAK}{found[0]}", text)


def _backslashed(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def _autolink(url: str) -> str:
    return _URL_SAFE.sub(lambda found: f"%{ord(found[0]):02X}", url.replace("&amp;", "&"))


def _below(document: Document) -> Iterator[str]:
    for section in document.below:
        first, *rest = _blocks(section.blocks, document)
        yield f"#### {escaped(section.heading)}\n\n{first}"
        yield from rest


def _blocks(blocks: tuple[Block, ...], document: Document) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph(spans):
                yield "".join(_span(span, document) for span in spans)
            case Bullets(items):
                yield "\n".join("- " + "".join(_span(span, document) for span in item) for item in items)
            case Code(text):
                yield fenced(text)


def fenced(text: str) -> str:
    """A code block that its text can't end."""
    text = no_command(visible(text))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
    return f"{fence}text\n{text}\n{fence}"


def _span(span: Span, document: Document) -> str:
    if span.url:
        return f"[{escaped(span.text)}]({_autolink(span.url)})" if allowed(span.url, document.hosts) else ""
    if span.style == "code":
        return _inline_code(span.text)
    text = escaped(span.text, document.hosts)
    if not text:
        return " " if span.text else ""
    before = " " if span.text[:1].isspace() else ""
    after = " " if span.text[-1:].isspace() else ""
    return f"{before}**{text}**{after}" if span.style == "strong" else f"{before}{text}{after}"


def _inline_code(text: str) -> str:
    text = " ".join(visible(text).split())
    ticks = "`" * max(1, *(len(run) + 1 for run in re.findall(r"`+", text)), 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"
