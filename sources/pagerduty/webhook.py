"""PagerDuty webhooks v3: signature and events."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sources.port import Malformed, Unauthorised

INCIDENT_EVENTS = frozenset(
    {
        "incident.acknowledged",
        "incident.delegated",
        "incident.escalated",
        "incident.priority_updated",
        "incident.reassigned",
        "incident.reopened",
        "incident.resolved",
        "incident.service_updated",
        "incident.triggered",
        "incident.unacknowledged",
    }
)


def verify(secrets: Iterable[str], signatures: str, body: bytes) -> None:
    """Raises `Unauthorised` unless one `v1=` signature fits one secret: HMAC-SHA256 over the raw body.

    There are several signatures while a secret is rotated; other versions are not ours to judge.
    """
    given = [part.strip()[3:].lower() for part in signatures.split(",") if part.strip().startswith("v1=")]
    fits = False
    for secret in secrets:
        expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
        for signature in given:
            fits |= hmac.compare_digest(expected, signature.encode("utf-8", "replace"))
    if not fits:
        raise Unauthorised("no v1 signature fits the body")


def read_event(body: bytes) -> Mapping[str, Any]:
    """The event inside. Raises `Malformed`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("the body is not JSON") from error
    event = document.get("event") if isinstance(document, dict) else None
    if not isinstance(event, dict) or not isinstance(event.get("event_type"), str):
        raise Malformed("there is no event with an event_type in the body")
    return event
