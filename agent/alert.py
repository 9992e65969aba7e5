"""What an alert is, whatever system it came from."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

MAX_TITLE_CHARS = 500
MAX_BODY_CHARS = 20_000
MAX_RAW_BYTES = 20_000
MAX_LABELS = 100
MAX_LABEL_CHARS = 2_000


class Severity(StrEnum):
    """How urgent; `unknown` is queued like `error`, because silence costs more than a model call."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    UNKNOWN = "unknown"


class Status(StrEnum):
    """What the ticket system says of the alert now."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class Alert(BaseModel):
    """One alert, frozen. Identity is the configured source's name plus the system's own id.

    `starts_at`, `ends_at` and `updated_at` are aware and UTC. `fingerprint` names the *kind* of alert across
    episodes (Alertmanager's label hash, PagerDuty's incident key) and is what re-fires are linked by.
    `body` and the label values are hostile text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(min_length=1)
    id: str = Field(min_length=1)
    title: str
    url: str = ""
    body: str = ""
    severity: Severity = Severity.UNKNOWN
    status: Status = Status.OPEN
    service: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    updated_at: datetime | None = None
    fingerprint: str = ""
    raw: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """`source:id`, the same whether the alert was pushed or polled."""
        return f"{self.source}:{self.id}"

    @property
    def resolved(self) -> bool:
        return self.status is Status.RESOLVED

    @field_validator("title")
    @classmethod
    def _bounded_title(cls, text: str) -> str:
        return clean(text)[:MAX_TITLE_CHARS].strip() or "(untitled alert)"

    @field_validator("body")
    @classmethod
    def _bounded_body(cls, text: str) -> str:
        text = clean(text)
        if len(text) <= MAX_BODY_CHARS:
            return text
        return f"{text[:MAX_BODY_CHARS]}\n[cut: {len(text)} characters in all]"

    @field_validator("id", "url", "service", "fingerprint")
    @classmethod
    def _storable(cls, text: str) -> str:
        """A lone surrogate can't be encoded, so the alert could never be recorded."""
        return clean(text)

    @field_validator("labels", "annotations")
    @classmethod
    def _bounded_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        kept = list(labels.items())[:MAX_LABELS]
        return {clean(name): clean(value)[:MAX_LABEL_CHARS] for name, value in kept}

    @field_validator("raw")
    @classmethod
    def _bounded_raw(cls, raw: dict[str, Any]) -> dict[str, Any]:
        size = len(json.dumps(raw, default=str))
        kept = raw if size <= MAX_RAW_BYTES else {"cut": True, "bytes": size, "keys": sorted(map(str, raw))[:50]}
        text = json.dumps(kept, default=str, ensure_ascii=False)
        storable: dict[str, Any] = json.loads(text.encode("utf-8", "replace"))  # lone surrogates become "?"
        return storable

    @field_validator("starts_at", "ends_at", "updated_at")
    @classmethod
    def _aware_utc(cls, at: datetime | None) -> datetime | None:
        if at is None:
            return None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


def clean(text: str) -> str:
    """Text that any store, terminal and API takes: lone surrogates replaced, NUL and other control characters out."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c for c in text if c in "\n\t" or (c >= " " and c != "\x7f" and not "\x80" <= c <= "\x9f"))


def parse_time(value: object) -> datetime | None:
    """An aware UTC time from what APIs send: RFC 3339 with any offset and up to nine fractional digits.

    The zero time (year 1, "not ended"), blanks and anything unreadable give None: a bad time must not cost an alert.
    """
    if not isinstance(value, str) or not value.strip():
        return None
    text = value.strip().replace("z", "Z").replace("Z", "+00:00")
    try:
        at = datetime.fromisoformat(_microseconds(text))
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if at.year > 1 else None


def _microseconds(text: str) -> str:
    """Cut a fraction longer than six digits, which Python 3.11 still refuses to read."""
    head, dot, tail = text.partition(".")
    if not dot:
        return text
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[:digits][:6]}{tail[digits:]}"
