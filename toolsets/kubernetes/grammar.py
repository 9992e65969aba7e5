"""What a model may write as a name, kind or selector: nothing else gets into a path or a query.

A value that fails can't become a path step, a flag of the shown command, or another host.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from agent.alert import parse_time
from agent.errors import ToolError

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # DNS-1123
NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._:]{0,251}[A-Za-z0-9])?")  # DNS-1123 subdomain, and the ":" of RBAC names
KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}(\.[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?)?")
SELECTOR = re.compile(r"[A-Za-z0-9!]([-A-Za-z0-9_./=!, ()]{0,1000})")
DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?")


def namespace(text: str) -> str:
    return _checked(LABEL, text, "namespace", "a lower-case name such as shop")


def name(text: str) -> str:
    return _checked(NAME, text, "name", "one object's name such as web-7d4b9c, without slash or space")


def container(text: str) -> str:
    return _checked(LABEL, text, "container", "a container's name such as app")


def kind(text: str) -> str:
    return _checked(KIND, text, "kind", "one kind such as pod, deployment or certificates.cert-manager.io")


def selector(text: str) -> str:
    return _checked(SELECTOR, text, "selector", "a label selector such as app=web,tier!=cache")


def _checked(grammar: re.Pattern[str], text: str, what: str, expected: str) -> str:
    if text and not grammar.fullmatch(text):
        raise ToolError(f"{what}: {text[:80]!r} can't be one; give {expected}")
    return text


def since(text: str, now: datetime) -> datetime | None:
    """A point in time from `30m`, `2h`, `1d`, or an RFC 3339 time; None for nothing."""
    if not text:
        return None
    if (match := DURATION.fullmatch(text)) and any(match.groups()):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return now - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if at := parse_time(text):
        return at
    raise ToolError(f"since: {text[:40]!r} is neither a duration such as 30m nor a time such as 2026-05-01T10:00:00Z")


def stamp(value: object) -> str:
    """An API time as `2026-05-01T10:00:00Z`; "" when there is none."""
    at = value if isinstance(value, datetime) else parse_time(value)
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""
