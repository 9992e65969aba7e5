"""What an incident of the demo world is: the ticket, the alerting rule behind it, and its part of the cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from deploy.demo.cluster import Part


@dataclass(frozen=True, slots=True)
class Clock:
    """Times relative to the world's start, so that an incident reads the same whenever the world is started."""

    start: float  # epoch seconds

    def ago(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> float:
        return self.start - (((days * 24 + hours) * 60 + minutes) * 60 + seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The alerting rule that paged."""

    name: str
    expr: str
    hold_seconds: float
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    keep_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One thing to investigate. `due` is how many comments its ticket must have in the end."""

    id: str  # the name of its module, with dashes
    source: str  # pagerduty | alertmanager | opsgenie | jsm | jira | github
    title: str
    fired: float
    rule: Rule
    part: Part
    service: str = ""
    urgency: str = "high"
    severity: str = "critical"
    details: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what people have written already
    due: int = 1
    resolved_on_read: bool = False  # listed as open, but resolved when one looks at it

    @property
    def labels(self) -> dict[str, str]:
        return {"alertname": self.rule.name, **self.rule.labels}


def code(text: str, length: int = 14, alphabet: str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") -> str:
    """A made-up but constant identifier."""
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest())
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(alphabet))
        digits.append(alphabet[digit])
    return "".join(digits)


def hexadecimal(text: str, length: int = 16) -> str:
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()[:length]


def uid(text: str) -> str:
    """A constant UUID for an object's name."""
    digits = hexadecimal(text, 32)
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def rfc3339(at: float, *, fraction: int = 0) -> str:
    """UTC with `Z`; `fraction` is the number of digits after the second: 0, 3, 6 or 9."""
    moment = datetime.fromtimestamp(at, UTC)
    if not fraction:
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    digits = f"{moment.microsecond:06d}000"[:fraction]
    return f"{moment.strftime('%Y-%m-%dT%H:%M:%S')}.{digits}Z"
