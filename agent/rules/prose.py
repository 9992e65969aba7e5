"""A draft as plain text, for when the report tool is not offered."""

from __future__ import annotations

from collections.abc import Iterator

from agent.report import Draft


def as_prose(draft: Draft) -> str:
    return "\n".join(_lines(draft))


def _lines(draft: Draft) -> Iterator[str]:
    yield draft.headline
    yield ""
    yield draft.body
    if draft.evidence:
        yield "\nEvidence:"
        yield from (f"- {one.id} ({one.call}, {one.weight}): {' '.join(one.quote.split())}" for one in draft.evidence)
    if draft.ruled_out:
        yield "\nRuled out:"
        yield from (f"- {one.hypothesis}: {one.why}" for one in draft.ruled_out)
    if draft.not_checked:
        yield "\nNot checked:"
        yield from (f"- {one.what} ({one.reason})" for one in draft.not_checked)
    if draft.next_steps:
        yield "\nNext steps:"
        for step in draft.next_steps:
            changes = f" [changes things; undo: {step.undo or 'none known'}]" if step.mutating else ""
            yield f"- {step.title}{f': {step.command}' if step.command else ''}{changes}"
