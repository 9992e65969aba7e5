"""Jira's wiki markup, for Data Center: escaped so that text stays text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from agent.report import Report
from sources.port import MARKER_PREFIX
from sources.render.fit import fit, utf16_units
from sources.render.inert import BREAK, allowed, neutral, visible
from sources.render.prose import Block, Bullets, Code, Paragraph, Span
from sources.render.sections import Document, compose

LIMIT = 30_000  # Jira takes 32,767 characters unless an administrator changed it
NOTE = "*Truncated:* the whole report is in rootcaused."
_SPECIAL = re.compile(
    r"[{}\[\]|*^~]"  # macros, links, tables and mentions, bold, super- and subscript
    r"|!(?=\S)|(?<=\S)!"  # images
    r"|(?<!\w)[-+_]|[-+_](?!\w)"  # struck out, inserted, emphasis: only at the edge of a word
    r"|\?(?=\?)|(?<=\?)\?"  # citations
    r"|\((?=(?:[xiyn!/?*+-]|\*[rgby]|on|off|flag|flagoff)\))"  # icons
)
_SMILEY = re.compile(r"([:;])(?=-?[)(PDp])")
_LINE_START = re.compile(r"^(?:#|h[1-6]\.|bq\.)")
_BACKSLASH = re.compile(r"\\(?!\w)")
_MACRO = re.compile(r"\{(?=/?(?:noformat|code|html|panel|quote|color)\b)", re.IGNORECASE)
_URL_SAFE = re.compile(r"[()\[\]{}<>\s|\\\"'`!*^~+]")


def wiki(report: Report, limit: int = LIMIT, *, hosts: Collection[str] = ()) -> str:
    """The report within `limit` UTF-16 units, which is what Jira counts; the marker is the last line."""
    document = compose(report, hosts)
    blocks = [f"h3. {escaped(document.title, document.hosts)}", *_blocks(document.above, document), *_below(document)]
    tail = ["----", *(escaped(line, document.hosts) for line in document.footer), document.marker]
    return fit(blocks, ["\n".join(tail)], limit, NOTE, utf16_units, glue="\n\n")


def escaped(text: str, hosts: Collection[str] = ()) -> str:
    """One line that renders as itself."""
    text = neutral(" ".join(text.split()), hosts)
    parts = re.split(r"(https?://\S+)", text)  # allowed links stay whole; all others were defanged
    text = "".join(_quoted(part) if index % 2 else _backslashed(part) for index, part in enumerate(parts))
    return _LINE_START.sub(lambda found: f"{BREAK}{found[0]}", text)


def noformat(text: str) -> str:
    """A block of text as it is, which its text can't end; mentions are looked for everywhere, so they are parted."""
    text = visible(text).replace(MARKER_PREFIX, MARKER_PREFIX.replace(":", " "))
    text = _MACRO.sub(f"{{{BREAK}", text).replace("[~", f"[{BREAK}~")
    return f"{{noformat}}\n{text}\n{{noformat}}"


def _backslashed(text: str) -> str:
    text = _BACKSLASH.sub(lambda found: found[0] + BREAK, text)  # else it would escape, or break the line
    text = _SMILEY.sub(rf"\1{BREAK}", text)
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def _quoted(url: str) -> str:
    """An address without the characters of the markup."""
    return _URL_SAFE.sub(lambda found: f"%{ord(found[0]):02X}", url)


def _below(document: Document) -> Iterator[str]:
    for section in document.below:
        first, *rest = _blocks(section.blocks, document)
        yield f"h4. {escaped(section.heading)}\n\n{first}"  # so that no heading is left alone at the cut
        yield from rest


def _blocks(blocks: tuple[Block, ...], document: Document) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph(spans):
                yield _line(spans, document)
            case Bullets(items):
                yield "\n".join(f"* {_line(item, document)}" for item in items)
            case Code(text):
                yield noformat(text)


def _line(spans: tuple[Span, ...], document: Document) -> str:
    """The start of a line may turn it into a list or a heading, whatever span it is from."""
    return _LINE_START.sub(lambda found: f"{BREAK}{found[0]}", "".join(_span(span, document) for span in spans))


def _span(span: Span, document: Document) -> str:
    if span.url:
        return f"[{escaped(span.text)}|{_quoted(span.url)}]" if allowed(span.url, document.hosts) else ""
    text = escaped(span.text, document.hosts)
    if not text:
        return " " if span.text else ""
    before, after = (" " if edge.isspace() else "" for edge in (span.text[:1], span.text[-1:]))
    if span.style == "code":
        text = f"{{{{{text}}}}}"
    return f"{before}*{text}*{after}" if span.style == "strong" else f"{before}{text}{after}"
