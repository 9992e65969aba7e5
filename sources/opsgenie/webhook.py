"""Webhooks of OpsGenie and JSM Operations: one action a request, not signed, so a shared secret travels in a header."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from sources.port import Malformed, Unauthorised

ADMITTED: Mapping[str, Mapping[str, Any]] = {
    "create": {"status": "open"},
    "acknowledge": {"status": "open", "acknowledged": True},
    "unacknowledge": {"status": "open", "acknowledged": False},
    "close": {"status": "closed"},
}  # what an action tells of the alert, which itself comes without a status


def verify(secret: str, given: str) -> None:
    """Raises `Unauthorised` unless the header holds the secret. Without a configured secret nothing is taken."""
    fits = hmac.compare_digest(secret.encode("utf-8", "replace"), given.encode("utf-8", "replace"))
    if not secret or not fits:
        raise Unauthorised("the header does not hold the shared secret")


def read_event(body: bytes) -> Mapping[str, Any]:
    """The action and its alert. Raises `Malformed`."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("the body is not JSON") from error
    if not isinstance(event, dict) or not isinstance(event.get("action"), str):
        raise Malformed("there is no action in the body")
    return event


def delivery_id(body: bytes) -> str:
    """Nothing in a request names it, so the same bytes are the same delivery."""
    return hashlib.sha256(body).hexdigest()


def as_item(event: Mapping[str, Any]) -> object:
    """The alert of an event in the form of the REST API, so that push and poll are read by one function."""
    alert = event.get("alert")
    if not isinstance(alert, dict):
        return alert
    return {**alert, "id": alert.get("alertId", alert.get("id")), **ADMITTED.get(action_of(event), {})}


def action_of(event: Mapping[str, Any]) -> str:
    return str(event["action"]).strip().lower()
