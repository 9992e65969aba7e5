"""GitHub's webhooks: signature, payload, and which events tell of an alert."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sources.github.comments import marked
from sources.github.config import GitHubConfig
from sources.github.issues import has_labels, is_pull_request
from sources.port import Malformed, Unauthorised

ACTIONS = frozenset({"opened", "reopened", "labeled", "edited", "closed"})


def verify(secrets: Iterable[str], signature: str, body: bytes) -> None:
    """Raises `Unauthorised` unless `sha256=HEX` fits one secret: HMAC-SHA256 over the raw body.

    There are several secrets while one is exchanged.
    """
    given = signature.strip().lower().encode("utf-8", "replace")
    fits = False
    for secret in secrets:
        expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        fits |= hmac.compare_digest(expected.encode(), given)
    if not fits:
        raise Unauthorised("the signature does not fit the body")


def read_payload(body: bytes) -> dict[str, Any]:
    """Raises `Malformed`."""
    if body.startswith(b"payload="):
        raise Malformed("the body is a form: set the webhook's content type to application/json")
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("the body is not JSON") from error
    if not isinstance(payload, dict):
        raise Malformed("the body is not an object")
    return payload


def repository_in(payload: Mapping[str, Any]) -> str:
    """`owner/name` in lower case, the spelling our keys have."""
    repository = payload.get("repository")
    name = repository.get("full_name") if isinstance(repository, dict) else None
    return name.lower() if isinstance(name, str) else ""


def ignored(event: str, payload: Mapping[str, Any], config: GitHubConfig) -> str:
    """Why there is nothing to admit; "" when there is."""
    if event == "issue_comment":
        return _comment(payload)
    if event != "issues":
        return "a ping" if event == "ping" else f"event {event[:80]!r} tells of no issue"
    action, issue = payload.get("action"), payload.get("issue")
    if action not in ACTIONS:
        return f"action {str(action)[:80]!r} tells of no alert"
    if action == "edited" and _by_bot(payload):
        return "a bot's edit; the next poll reads it"
    if repository_in(payload) not in config.repositories:
        return "the repository is not among repositories"
    if is_pull_request(issue):
        return "a pull request"
    return _unselected(issue, config)


def _unselected(issue: object, config: GitHubConfig) -> str:
    """The same selection as the poll's. Only GitHub can tell what a search finds."""
    if not isinstance(issue, dict) or (config.labels and has_labels(issue, config.labels)):
        return ""
    if config.search:
        return "selected by search, if at all; the next poll finds it"
    return "it does not have all of labels"


def _comment(payload: Mapping[str, Any]) -> str:
    comment = payload.get("comment")
    if isinstance(comment, dict) and marked(comment):
        return "our own comment"
    if _by_bot(payload):
        return "a bot's comment"
    return "a comment; comments are read when the issue is investigated"


def _by_bot(payload: Mapping[str, Any]) -> bool:
    sender = payload.get("sender")
    return isinstance(sender, dict) and sender.get("type") == "Bot"
