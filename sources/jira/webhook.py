"""Jira webhooks: signature and events. Bodies have the form of API version 2 on Cloud, too."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sources.jira.document import text_of
from sources.port import MARKER_PREFIX, Malformed, Unauthorised

ISSUE_EVENTS = frozenset({"jira:issue_created", "jira:issue_updated"})


def verify(secrets: Iterable[str], signature: str, body: bytes) -> None:
    """Raises `Unauthorised` unless `sha256=` fits one secret: HMAC-SHA256 over the raw body."""
    method, _, given = signature.strip().partition("=")
    fits = False
    for secret in secrets:
        expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
        fits |= hmac.compare_digest(expected, given.lower().encode("utf-8", "replace"))
    if not fits or method.lower() != "sha256":
        raise Unauthorised("the signature does not fit the body")


def read_event(body: bytes) -> Mapping[str, Any]:
    """The event. Raises `Malformed`."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("the body is not JSON") from error
    if not isinstance(event, dict) or not isinstance(event.get("webhookEvent"), str):
        raise Malformed("there is no webhookEvent in the body")
    return event


def ignored(event: Mapping[str, Any], projects: Iterable[str]) -> str:
    """Why there is nothing to admit; "" when there is."""
    kind = event["webhookEvent"]
    if _is_comment(event):
        comment = event.get("comment")
        words = text_of(comment.get("body")) if isinstance(comment, dict) else ""
        ours = any(line.strip().startswith(MARKER_PREFIX) for line in words.splitlines())
        return "our own comment" if ours else "a comment; comments are read when the issue is investigated"
    if kind == "jira:issue_deleted":
        return "the issue was deleted"
    if kind not in ISSUE_EVENTS:
        return f"event type {kind[:80]!r} tells of no issue"
    if projects and (key := _project(event.get("issue"))) and key.upper() not in {name.upper() for name in projects}:
        return "the project is not among projects"
    return ""


def _is_comment(event: Mapping[str, Any]) -> bool:
    """Data Center reports a comment as a change of the issue, too: ours must not start us again."""
    if event["webhookEvent"].startswith("comment_"):
        return True
    about = event.get("issue_event_type_name")
    commented = isinstance(event.get("comment"), dict) or (isinstance(about, str) and about.startswith("issue_comment"))
    return event["webhookEvent"] == "jira:issue_updated" and commented and not event.get("changelog")


def _project(issue: object) -> str:
    """The project's key. The issue itself is hostile, so anything may be missing."""
    fields = issue.get("fields") if isinstance(issue, dict) else None
    project = fields.get("project") if isinstance(fields, dict) else None
    key = project.get("key") if isinstance(project, dict) else None
    return key if isinstance(key, str) else ""
