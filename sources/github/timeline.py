"""What happened to an issue lately, as lines of text for the prompt."""

from __future__ import annotations

from typing import Any

from agent.deadline import Deadline
from sources.github.client import GitHubApi
from sources.github.issues import Ref, login
from sources.github.paging import PAGE, linked, listed

MAX_EVENTS = 30  # the newest
MAX_TEXT_CHARS = 200


def timeline(api: GitHubApi, ref: Ref, deadline: Deadline) -> list[str]:
    """One event a line, the newest last: labels, closing, reopening, assignments, commits and issues that refer here.

    Comments are read elsewhere. Only the last page is read: the list is oldest first and has no other order.
    """
    path, what = f"{ref.path}/timeline", f"github timeline of {ref}"
    response = api.get(path, {"per_page": str(PAGE)}, deadline=deadline)
    events = listed(response, what)
    if last := linked(response, "last"):
        events += listed(api.get(path, last, deadline=deadline), what)
    return [line for event in events if isinstance(event, dict) and (line := _line(event))][-MAX_EVENTS:]


def labels(api: GitHubApi, ref: Ref, deadline: Deadline) -> list[str]:
    """Each label with what its description says it means."""
    found = listed(api.get(f"{ref.path}/labels", {"per_page": str(PAGE)}, deadline=deadline), f"github labels of {ref}")
    lines = []
    for label in found:
        if isinstance(label, dict) and (name := _text(label.get("name"))):
            meaning = _text(label.get("description"))
            lines.append(f"{name}: {meaning}" if meaning else name)
    return lines


def _line(event: dict[str, Any]) -> str:
    """ "" for what tells nothing of the incident: subscriptions, mentions, comments."""
    kind, at = _text(event.get("event")), _text(event.get("created_at"))
    who = login(event.get("actor")) or "someone"
    match kind:
        case "labeled" | "unlabeled":
            what = f"{kind} {_text(_dict(event.get('label')).get('name'))}"
        case "assigned" | "unassigned":
            what = f"{kind} {login(event.get('assignee'))}"
        case "milestoned" | "demilestoned":
            what = f"{kind} {_text(_dict(event.get('milestone')).get('title'))}"
        case "renamed":
            what = f"renamed it from {_text(_dict(event.get('rename')).get('from'))}"
        case "closed" | "reopened" | "referenced":
            commit = _text(event.get("commit_id"))
            what = f"{kind} it" + (f" by commit {commit[:12]}" if commit else "")
        case "cross-referenced":
            source = _dict(_dict(event.get("source")).get("issue"))
            what = f"referred to it from {_text(source.get('html_url'))} {_text(source.get('title'))}"
        case "locked" | "unlocked" | "pinned" | "unpinned" | "transferred" | "marked_as_duplicate":
            what = kind.replace("_", " ")
        case _:
            return ""
    return f"- {at} {who} {what}"[:MAX_TEXT_CHARS].replace("\n", " ")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
