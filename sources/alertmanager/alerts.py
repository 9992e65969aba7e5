"""From Alertmanager's alerts (API v2 and webhook v4 alike) to ours, with the same identity for both."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.alert import Alert, Severity, Status, parse_time
from sources.port import Broken

MAX_RAW_CHARS = 2_000
SERVICE_LABELS = (
    "service",
    "service_name",
    "app",
    "app_kubernetes_io_name",
    "deployment",
    "statefulset",
    "daemonset",
    "component",
    "job",
    "container",
)
# What these say of others carries their own name as `service` and `job`.
EXPORTERS = re.compile(r"kube-state-metrics|node-exporter|cadvisor|kubelet|blackbox|pushgateway")
SEVERITIES = {
    Severity.CRITICAL: ("critical", "crit", "page", "pager", "fatal", "emergency", "disaster", "p1", "sev1"),
    Severity.ERROR: ("error", "err", "major", "high", "urgent", "p2", "sev2"),
    Severity.WARNING: ("warning", "warn", "minor", "medium", "average", "p3", "sev3"),
    Severity.INFO: ("info", "information", "informational", "notice", "low", "none", "debug", "p4", "p5", "sev4"),
}
_BY_WORD = {word: severity for severity, words in SEVERITIES.items() for word in words}


def read(source: str, item: object) -> Alert | Broken:
    """The alert, or why there is none; a fault in one alert must not cost its neighbours."""
    native = item.get("fingerprint") if isinstance(item, dict) else None
    try:
        return _alert(source, item)
    except (ValueError, TypeError) as error:  # pydantic's ValidationError is a ValueError
        reason = str(error) if type(error) is ValueError else f"unreadable: {type(error).__name__}"
        return Broken(id=native if isinstance(native, str) else "", reason=reason, raw=_cut(item))


def identity(fingerprint: str, starts_at: datetime | None) -> str:
    """Fingerprint and start: the fingerprint alone names every episode of the same labels.

    Webhooks give the start in nanoseconds and the API cuts it to milliseconds, so milliseconds it is.
    """
    if starts_at is None:
        return f"{fingerprint}-unknown"
    return f"{fingerprint}-{starts_at:%Y%m%dT%H%M%S}.{starts_at.microsecond // 1000:03d}Z"


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """Alertmanager's own: FNV-1a over the sorted labels (prometheus/common, model/signature.go)."""
    total = 0xCBF29CE484222325
    for name in sorted(labels, key=str.encode):
        for byte in b"%s\xff%s\xff" % (name.encode(), labels[name].encode()):
            total = ((total ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{total:016x}"


def _alert(source: str, item: object) -> Alert:
    if not isinstance(item, dict):
        raise ValueError(f"an alert is not an object but {type(item).__name__}")
    labels = _texts(item.get("labels"), "labels")
    annotations = _texts(item.get("annotations"), "annotations")
    if not labels:
        raise ValueError("an alert without labels")
    starts_at = parse_time(item.get("startsAt"))
    if starts_at is None:
        annotations["rootcaused_warning"] = f"startsAt was unreadable: {str(item.get('startsAt'))[:50]}"
    status = item.get("status")
    resolved = status == "resolved"
    if isinstance(status, dict) and status.get("state") == "suppressed":
        annotations["rootcaused_warning"] = "silenced or inhibited"
    fingerprint = item.get("fingerprint")
    fingerprint = fingerprint if isinstance(fingerprint, str) and fingerprint else fingerprint_of(labels)
    url = item.get("generatorURL")
    return Alert(
        source=source,
        id=identity(fingerprint, starts_at),
        title=_title(labels, annotations),
        url=url if isinstance(url, str) else "",
        body="\n".join(f"{name}: {value}" for name, value in annotations.items()),
        severity=_BY_WORD.get(labels.get("severity", labels.get("priority", "")).strip().lower(), Severity.UNKNOWN),
        status=Status.RESOLVED if resolved else Status.OPEN,
        service=_service(labels),
        labels=labels,
        annotations=annotations,
        starts_at=starts_at,
        ends_at=_end(item, starts_at) if resolved else None,  # while it fires this is zero or in the future
        updated_at=parse_time(item.get("updatedAt")),
        fingerprint=fingerprint,
        raw=item,
    )


def _service(labels: Mapping[str, str]) -> str:
    named = [labels[name] for name in SERVICE_LABELS if labels.get(name)]
    return next((name for name in named if not EXPORTERS.search(name)), named[0] if named else "")


def _end(item: dict[str, Any], starts_at: datetime | None) -> datetime | None:
    ends_at = parse_time(item.get("endsAt"))
    return max(ends_at, starts_at) if ends_at and starts_at else ends_at


def _title(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    name = labels.get("alertname", "")
    told = annotations.get("summary") or annotations.get("title") or annotations.get("message") or ""
    return ": ".join(part for part in (name, told) if part)


def _texts(value: object, what: str) -> dict[str, str]:
    """Names to texts; null is empty, numbers are written out, anything nested is refused."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{what} are not an object but {type(value).__name__}")
    if nested := [name for name, held in value.items() if isinstance(held, dict | list)]:
        raise ValueError(f"{what}: the value of {str(nested[0])[:80]!r} is not text")
    return {
        name: held if isinstance(held, str) else json.dumps(held) for name, held in value.items() if held is not None
    }


def _cut(value: object) -> str:
    return json.dumps(value, default=str)[:MAX_RAW_CHARS]
