"""What a Jira issue says beside its fields: links and what was changed of late, as text for the prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.alert import parse_time
from sources.jira.document import plain_value

MAX_LINKS = 20
MAX_CHANGES = 20  # the newest
MAX_VALUE_CHARS = 100


def links_of(issue: dict[str, Any]) -> Iterator[str]:
    """`is caused by OPS-7 (Done): the release`, one line a link; parent and subtasks, too."""
    fields = issue.get("fields")
    fields = fields if isinstance(fields, dict) else {}
    for link in _objects(fields.get("issuelinks"))[:MAX_LINKS]:
        kind = link.get("type")
        for side in ("inward", "outward"):
            if isinstance(other := link.get(f"{side}Issue"), dict):
                yield _issue(str(kind.get(side)) if isinstance(kind, dict) else "is linked to", other)
    if isinstance(parent := fields.get("parent"), dict):
        yield _issue("is part of", parent)
    for subtask in _objects(fields.get("subtasks"))[:MAX_LINKS]:
        yield _issue("has the subtask", subtask)


def changes_of(issue: dict[str, Any]) -> Iterator[str]:
    """`2031-02-03 12:00 by Ann: status: To Do -> In Progress`, the newest, oldest first."""
    log = issue.get("changelog")
    histories = _objects(log.get("histories")) if isinstance(log, dict) else []
    histories.sort(key=lambda entry: at.timestamp() if (at := parse_time(entry.get("created"))) else 0.0)
    for entry in histories[-MAX_CHANGES:]:
        at = parse_time(entry.get("created"))
        items = "; ".join(
            f"{item.get('field')}: {_short(item.get('fromString'))} -> {_short(item.get('toString'))}"
            for item in _objects(entry.get("items"))
        )
        yield f"{at:%Y-%m-%d %H:%M} UTC by {plain_value(entry.get('author'))}: {items}" if at else items


def _issue(relation: str, other: dict[str, Any]) -> str:
    fields = other.get("fields")
    fields = fields if isinstance(fields, dict) else {}
    return f"{relation} {other.get('key')} ({plain_value(fields.get('status'))}): {plain_value(fields.get('summary'))}"


def _short(value: object) -> str:
    return " ".join(plain_value(value).split())[:MAX_VALUE_CHARS] or "(none)"


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
