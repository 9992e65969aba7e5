"""Cuts a rendered report to a system's limit between blocks, so that nothing is left open, and says that it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Measure = Callable[[str], int]


def utf16_units(text: str) -> int:
    """What Java and JavaScript call the length."""
    return len(text.encode("utf-16-le", "replace")) // 2


def utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def fit(blocks: Sequence[str], tail: Sequence[str], limit: int, note: str, measure: Measure, *, glue: str) -> str:
    """As many whole `blocks` as fit before `tail`; when some are left out, `note` stands in their place.

    `tail` (figures and marker) is always there, whole, unless `limit` is smaller than it.
    """
    whole = glue.join([*blocks, *tail])
    if measure(whole) <= limit:
        return whole
    ending = glue.join([note, *tail])
    room = limit - measure(ending)
    kept: list[str] = []
    for block in blocks:
        size = measure(block + glue)
        if size > room:
            break
        kept.append(block)
        room -= size
    if not kept and blocks and room > measure(glue) + 1:
        kept.append(prefix(blocks[0], room - measure(glue), measure))
    return prefix(glue.join([*kept, ending]), limit, measure)


def prefix(text: str, limit: int, measure: Measure) -> str:
    """The longest beginning of `text` within `limit`."""
    if measure(text) <= limit:
        return text
    low, high = 0, min(len(text), max(limit, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(text[:middle]) <= limit else (low, middle - 1)
    return text[:low]
