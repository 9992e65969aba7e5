"""Alerts for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agent.alert import Alert

NOON = datetime(2031, 2, 3, 12, 0, tzinfo=UTC)


def alert(**changes: Any) -> Alert:
    fields: dict[str, Any] = {
        "source": "pd",
        "id": "Q1",
        "title": "checkout is slow",
        "starts_at": NOON,
        "updated_at": NOON,
        "fingerprint": "checkout/slow",
    }
    return Alert(**{**fields, **changes})
