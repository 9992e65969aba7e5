"""Reads what Jira calls rich text: Atlassian Document Format on Cloud, a string of wiki markup on Data Center."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 60  # of nodes in nodes; a document is hostile
_BLOCKS = frozenset({"paragraph", "heading", "codeBlock", "listItem", "tableRow", "rule", "mediaSingle", "taskItem"})


def text_of(value: object) -> str:
    """The words of a rich text field, one line a block; "" for anything that is none."""
    if isinstance(value, str):
        return value.replace("\r\n", "\n")
    if not isinstance(value, dict):
        return ""
    lines = "".join(_pieces(value, 0)).split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _pieces(node: dict[str, Any], depth: int) -> Iterator[str]:
    kind = _string(node.get("type"))
    yield _own_words(node, kind)
    children = node.get("content")
    for child in children if isinstance(children, list) and depth < MAX_DEPTH else ():
        if isinstance(child, dict):
            yield from _pieces(child, depth + 1)
    if kind in ("tableCell", "tableHeader"):
        yield " | "
    elif kind in _BLOCKS:
        yield "\n"


def _own_words(node: dict[str, Any], kind: str) -> str:
    """What a node says beside its children."""
    given = node.get("attrs")
    attrs: dict[str, Any] = given if isinstance(given, dict) else {}
    match kind:
        case "text":
            return _string(node.get("text")) + _target(node)
        case "hardBreak":
            return "\n"
        case "listItem":
            return "- "
        case "mention" | "status":
            return _string(attrs.get("text"))
        case "emoji":
            return _string(attrs.get("text")) or _string(attrs.get("shortName"))
        case "inlineCard" | "blockCard" | "embedCard":
            return _string(attrs.get("url"))
        case "date":
            return _string(attrs.get("timestamp"))
        case "media" | "mediaInline":
            return f"[attachment {_string(attrs.get('alt'))}]".replace(" ]", "]")
    return ""


def _target(node: dict[str, Any]) -> str:
    """Where a link goes, unless its text says so."""
    marks = node.get("marks")
    for mark in marks if isinstance(marks, list) else ():
        if isinstance(mark, dict) and mark.get("type") == "link" and isinstance(mark.get("attrs"), dict):
            href = _string(mark["attrs"].get("href"))
            return f" ({href})" if href and href != node.get("text") else ""
    return ""


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def plain_value(value: object) -> str:
    """A field of any type as one text: options by their value, people and versions by their name, lists with commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        return ", ".join(filter(None, map(plain_value, value)))
    if not isinstance(value, dict):
        return ""
    if value.get("type") == "doc":
        return text_of(value)
    for name in ("value", "displayName", "name", "key"):
        if isinstance(value.get(name), str):
            child = plain_value(value["child"]) if isinstance(value.get("child"), dict) else ""
            return f"{value[name]} / {child}" if child else str(value[name])
    return json.dumps(value, default=str, ensure_ascii=False)[:500]
