"""A strict check of Atlassian Document Format: the nodes, marks and nesting that every Jira takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BLOCKS = frozenset({"paragraph", "heading", "bulletList", "codeBlock", "rule"})
CHILDREN = {
    "doc": BLOCKS,
    "paragraph": frozenset({"text"}),
    "heading": frozenset({"text"}),
    "bulletList": frozenset({"listItem"}),
    "listItem": frozenset({"paragraph", "bulletList", "codeBlock"}),
    "codeBlock": frozenset({"text"}),
    "rule": frozenset[str](),
    "text": frozenset[str](),
}
KEYS = {"doc": {"version"}, "heading": {"attrs"}, "text": {"text", "marks"}, "codeBlock": {"attrs"}}
NOT_EMPTY = frozenset({"doc", "bulletList", "listItem"})


def adf_faults(document: object) -> list[str]:
    """What a strict server would refuse; [] for a valid document."""
    if not isinstance(document, dict) or document.get("type") != "doc" or document.get("version") != 1:
        return ["not a doc of version 1"]
    return list(_faults(document, "doc", ""))


def texts(node: dict[str, Any], *, code: bool | None = None) -> Iterator[str]:
    """The text nodes; with `code`, only those inside (or outside) code blocks."""
    for child in node.get("content", ()):
        if child["type"] == "text":
            if code is None or code == (node["type"] == "codeBlock"):
                yield child["text"]
        else:
            yield from texts(child, code=code)


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("content", ()):
        yield from nodes(child)


def _faults(node: dict[str, Any], kind: str, path: str) -> Iterator[str]:
    path = f"{path}/{kind}"
    if extra := set(node) - {"type", "content"} - KEYS.get(kind, set()):
        yield f"{path}: unknown keys {sorted(extra)}"
    yield from _own_faults(node, kind, path)
    content = node.get("content", [])
    if not isinstance(content, list):
        yield f"{path}: content is not a list"
        return
    if kind in NOT_EMPTY and not content:
        yield f"{path}: empty"
    for child in content:
        found = child.get("type") if isinstance(child, dict) else None
        if found not in CHILDREN[kind]:
            yield f"{path}: {found!r} is not allowed here"
        else:
            yield from _faults(child, found, path)
            if kind == "codeBlock" and child.get("marks"):
                yield f"{path}: marks in a code block"
    if kind == "listItem" and content and content[0].get("type") == "bulletList":
        yield f"{path}: a list item begins with a list"


def _own_faults(node: dict[str, Any], kind: str, path: str) -> Iterator[str]:
    if kind == "heading" and node.get("attrs", {}).get("level") not in range(1, 7):
        yield f"{path}: level"
    if kind == "rule" and "content" in node:
        yield f"{path}: content"
    if kind != "text":
        return
    if not isinstance(node.get("text"), str) or not node["text"]:
        yield f"{path}: an empty text"
        return
    if "\n" in node["text"] and "/codeBlock" not in path:
        yield f"{path}: a line break in a text"
    marks = [mark.get("type") for mark in node.get("marks", [])]
    if set(marks) - {"strong", "code", "link"} or len(marks) != len(set(marks)):
        yield f"{path}: marks {marks}"
    if "code" in marks and "strong" in marks:
        yield f"{path}: code and strong together"
    for mark in node.get("marks", []):
        wanted = {"type", "attrs"} if mark.get("type") == "link" else {"type"}
        if set(mark) != wanted or (mark["type"] == "link" and set(mark["attrs"]) != {"href"}):
            yield f"{path}: mark {mark}"
