"""Text from outside made plain: no control or invisible characters that could forge lines or hide orders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-Z\\-_])")
# C0 and C1 controls but tab and newline; bidirectional overrides; zero-width characters; Unicode tag characters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """The same text as any store, terminal and model can take it: valid Unicode, lines ended by a newline."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _HIDDEN.sub("", text)


def well_formed(value: Any) -> Any:
    """JSON-like data whose texts can be encoded: models send lone surrogates, which no store takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {well_formed(key): well_formed(item) for key, item in value.items()}
    return [well_formed(item) for item in value] if isinstance(value, list | tuple) else value


def fold(text: str) -> str:
    """White space folded to single spaces, so that a quote may break its lines elsewhere."""
    return " ".join(text.split())


def first_sentence(text: str, limit: int) -> str:
    """The first sentence of Markdown prose without its markup, at most `limit` characters; headings only if all are."""
    lines = [line for line in text.splitlines() if line.strip(" #*_>-`=\t")]
    prose = [line for line in lines if not line.lstrip().startswith("#") and not line.rstrip(" *_").endswith(":")]
    line = (prose or lines or [""])[0].lstrip(" #>-*\t")
    line = fold(line.replace("**", "").replace("__", "").replace("`", ""))
    end = re.search(r"[.!?](?=\s|$)", line)
    return shorten(line[: end.end()] if end else line, limit)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis where something is missing."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
