"""From the alerts of OpsGenie and JSM Operations (list, single and webhook form alike) to ours."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.alert import Alert, Severity, Status, parse_time
from sources.port import Broken

MAX_RAW_CHARS = 2_000
MAX_DETAIL_LABELS = 60
MAX_LABEL_CHARS = 200  # longer details are body text, not labels
MAX_UNIX_SECONDS = 1e11  # the year 5138: a larger number counts milliseconds, microseconds or nanoseconds
ONE_MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_BY_PRIORITY = {
    "1": Severity.CRITICAL,
    "2": Severity.ERROR,
    "3": Severity.WARNING,
    "4": Severity.INFO,
    "5": Severity.INFO,
}
_TAG = re.compile(r"([A-Za-z_][\w.-]{0,99})[:=](?!//)\s*(\S.*)")
_SERVICE_NAMES = ("service", "service_name", "serviceName", "app", "application", "component")


def read(source: str, item: object, *, url: str = "", problem: str = "") -> Alert | Broken:
    """The alert, or why there is none; a fault in one must not cost its neighbours.

    `problem` is why the item is not whole (a list leaves out description, details and entity).
    """
    if not isinstance(item, dict):
        return Broken(id="", reason=f"an alert is not an object but {type(item).__name__}", raw=_cut(item))
    native = item.get("id")
    if not isinstance(native, str) or not native.strip("."):  # dots alone could not be asked for by their id
        return Broken(id="", reason="an alert without an id", raw=_cut(item))
    try:
        return _alert(source, native, item, url, problem)
    except (ValueError, TypeError, AttributeError) as error:  # pydantic's ValidationError is a ValueError
        return Broken(id=native, reason=f"unreadable: {type(error).__name__}", raw=_cut(item))


def _alert(source: str, native: str, item: dict[str, Any], url: str, problem: str) -> Alert:
    details = details_of(item)
    tagged, plain_tags = _tags(item.get("tags"))
    status = _status(item)
    created = instant(item.get("createdAt"))
    labels = {
        "priority": _priority(item),
        "entity": text_of(item.get("entity")),
        "team": ", ".join(_teams(item)),
        "tags": ", ".join(plain_tags),
        "integration": text_of(_dict(item.get("integration")).get("name")),
        "origin": text_of(item.get("source")),
        "tiny_id": text_of(item.get("tinyId")),
        **tagged,
        **_as_labels(details),  # the monitor's own win: queries use them
    }
    annotations = {
        "details": problem,
        "count": text_of(item.get("count")),
        "last_occurred_at": text_of(item.get("lastOccurredAt")),
        "snoozed_until": text_of(item.get("snoozedUntil")) if item.get("snoozed") is True else "",
    }
    return Alert(
        source=source,
        id=native,
        title=text_of(item.get("message")),
        url=url,
        body=_body(item, details),
        severity=_BY_PRIORITY.get(_priority(item).removeprefix("P"), Severity.UNKNOWN),
        status=status,
        service=_service(item, details, tagged),
        labels={name: value for name, value in labels.items() if value},
        annotations={name: value for name, value in annotations.items() if value},
        starts_at=created,
        ends_at=_closed_at(item, created) if status is Status.RESOLVED else None,
        updated_at=instant(item.get("updatedAt")) or instant(item.get("lastOccurredAt")),
        fingerprint=text_of(item.get("alias")),
        raw=item,
    )


def instant(value: object) -> datetime | None:
    """A time from whatever they send: RFC 3339, or a count since 1970 in seconds, ms, µs or ns, also as a string."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value.strip()[:25])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return parse_time(value)
    try:
        seconds = float(value)
        while math.isfinite(seconds) and abs(seconds) >= MAX_UNIX_SECONDS:
            seconds /= 1_000
        return EPOCH + timedelta(milliseconds=round(seconds * 1_000)) if seconds > 0 else None
    except (ValueError, OverflowError):
        return None


def milliseconds(at: datetime) -> int:
    """Since 1970, rounded down: what the search language compares `createdAt` with."""
    return (at - EPOCH) // ONE_MILLISECOND


def details_of(item: dict[str, Any]) -> dict[str, str]:
    """The custom fields a monitor sent: `details`, which JSM Operations also calls `extraProperties`."""
    found = {**_dict(item.get("extraProperties")), **_dict(item.get("details"))}
    return {str(name): value for name, raw in found.items() if (value := _scalar(raw))}


def text_of(value: object) -> str:
    """Scalars as text; anything else is not text, and any field may be null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""


def _scalar(value: object) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, default=str, ensure_ascii=False)[:MAX_RAW_CHARS]
    return text_of(value)


def _status(item: dict[str, Any]) -> Status:
    """There are two states; an acknowledgement is a flag on an open alert."""
    if text_of(item.get("status")).lower() in ("closed", "resolved"):
        return Status.RESOLVED
    return Status.ACKNOWLEDGED if item.get("acknowledged") is True else Status.OPEN


def _priority(item: dict[str, Any]) -> str:
    """`P1` to `P5`; webhooks also send the number alone."""
    text = text_of(item.get("priority")).strip().upper()
    return f"P{text}" if text in _BY_PRIORITY else text


def _tags(tags: object) -> tuple[dict[str, str], list[str]]:
    """`name:value` and `name=value` tags as labels, and the other tags."""
    labels: dict[str, str] = {}
    others = []
    for tag in filter(None, map(text_of, tags if isinstance(tags, list) else ())):
        if named := _TAG.fullmatch(tag):
            labels.setdefault(named[1], named[2])
        else:
            others.append(tag)
    return labels, others


def _teams(item: dict[str, Any]) -> list[str]:
    """Names where there are any, else ids."""
    listed = [*_list(item.get("teams")), *(r for r in _list(item.get("responders")) if _dict(r).get("type") == "team")]
    names = [text_of(_dict(one).get("name")) or text_of(_dict(one).get("id")) or text_of(one) for one in listed]
    return list(dict.fromkeys(filter(None, names)))


def _as_labels(details: dict[str, str]) -> dict[str, str]:
    short = [(name, value) for name, value in details.items() if len(value) <= MAX_LABEL_CHARS and "\n" not in value]
    return dict(short[:MAX_DETAIL_LABELS])


def _service(item: dict[str, Any], details: dict[str, str], tagged: dict[str, str]) -> str:
    named = (found[name] for found in (details, tagged) for name in _SERVICE_NAMES if found.get(name))
    return text_of(item.get("entity")).strip() or next(named, "")


def _body(item: dict[str, Any], details: dict[str, str]) -> str:
    lines = "\n".join(f"{name}: {value}" for name, value in details.items())
    return "\n\n".join(filter(None, (text_of(item.get("description")), lines)))


def _closed_at(item: dict[str, Any], created: datetime | None) -> datetime | None:
    """`report.closeTime` counts the milliseconds from creation to closing."""
    taken = _dict(item.get("report")).get("closeTime")
    if created is None or isinstance(taken, bool) or not isinstance(taken, int):
        return None
    try:
        return created + timedelta(milliseconds=taken)
    except OverflowError:
        return None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _cut(value: object) -> str:
    return json.dumps(value, default=str)[:MAX_RAW_CHARS]
