"""Plain text, for systems that show Markdown raw: PagerDuty, OpsGenie, terminals."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agent.report import Report
from sources.render.fit import Measure, fit
from sources.render.inert import allowed, neutral, visible
from sources.render.prose import Block, Bullets, Code, Paragraph, Span
from sources.render.sections import Document, compose

NOTE = "[truncated: the whole report is in rootcaused]"


def plain(report: Report, limit: int = 10_000, *, hosts: Collection[str] = (), measure: Measure = len) -> str:
    """The report within `limit`, as `measure` counts; the marker is the last line."""
    document = compose(report, hosts)
    blocks = list(_blocks(document))
    tail = ["\n" + "\n".join([*(neutral(line, document.hosts) for line in document.footer), document.marker])]
    return fit(blocks, tail, limit, NOTE, measure, glue="\n")


def above_the_fold(report: Report) -> str:
    """Headline to next steps alone."""
    document = compose(report)
    return "\n".join([neutral(document.title, document.hosts), *_lines(document.above, document)])


def _blocks(document: Document) -> Iterator[str]:
    yield neutral(document.title, document.hosts)
    yield from _lines(document.above, document)
    for section in document.below:
        first, *rest = _lines(section.blocks, document)
        yield f"\n{section.heading.upper()}\n{first}"  # so that no heading is left alone at the cut
        yield from rest


def _lines(blocks: tuple[Block, ...], document: Document) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph(spans):
                yield _line(spans, document)
            case Bullets(items):
                yield from (f"- {_line(item, document)}" for item in items)
            case Code(text):
                yield "\n".join(f"    {line}" for line in neutral(text, document.hosts).splitlines())


def _line(spans: tuple[Span, ...], document: Document) -> str:
    text = neutral("".join(span.text if not span.url else "" for span in spans), document.hosts)
    links = [visible(span.url) for span in spans if span.url and allowed(span.url, document.hosts)]
    return " ".join([text.rstrip(), *links])
