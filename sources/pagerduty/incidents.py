"""From PagerDuty's incidents (REST and webhook form alike) to our alerts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.alert import Alert, Severity, Status, parse_time
from sources.port import Broken

MAX_RAW_CHARS = 2_000
MAX_DETAIL_LABELS = 60
MAX_LABEL_CHARS = 200  # longer details are body text, not labels

STATUSES = {"triggered": Status.OPEN, "acknowledged": Status.ACKNOWLEDGED, "resolved": Status.RESOLVED}
_LABEL_LINE = re.compile(r"^ *- ([a-zA-Z_]\w*) = (\S[^\n]*)$", re.MULTILINE)
_BY_ALERT = {s.value: s for s in (Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.CRITICAL)}
_ORDER = list(_BY_ALERT.values())
_BY_PRIORITY = {
    "1": Severity.CRITICAL,
    "2": Severity.ERROR,
    "3": Severity.WARNING,
    "4": Severity.INFO,
    "5": Severity.INFO,
}
_BY_URGENCY = {"high": Severity.ERROR, "low": Severity.WARNING}


@dataclass(frozen=True, slots=True)
class Details:
    """What the alerts inside an incident say: text for people, labels for queries, the highest severity."""

    text: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    severity: Severity | None = None
    problem: str = ""  # why they could not be read


def read(source: str, incident: object, details: Details | None = None) -> Alert | Broken:
    """The alert, or why there is none; a fault in one incident must not cost its neighbours."""
    if not isinstance(incident, dict):
        return Broken(id="", reason=f"an incident is not an object but {type(incident).__name__}", raw=_cut(incident))
    native = incident.get("id")
    if not isinstance(native, str) or not native:
        return Broken(id="", reason="an incident without an id", raw=_cut(incident))
    try:
        return _alert(source, native, incident, details or Details())
    except (ValueError, TypeError, AttributeError) as error:  # pydantic's ValidationError is a ValueError
        return Broken(id=native, reason=f"unreadable: {type(error).__name__}", raw=_cut(incident))


def _alert(source: str, native: str, incident: dict[str, Any], details: Details) -> Alert:
    labels = {
        "urgency": _text(incident.get("urgency")),
        "priority": _name(incident.get("priority")),
        "team": ", ".join(filter(None, map(_name, _list(incident.get("teams"))))),
        "escalation_policy": _name(incident.get("escalation_policy")),
        "incident_number": _text(incident.get("incident_number", incident.get("number"))),
        "service_id": _text(_dict(incident.get("service")).get("id")),
    }
    annotations = {"reopened_at": _text(incident.get("reopened_at")), "details": details.problem}
    return Alert(
        source=source,
        id=native,
        title=_text(incident.get("title")) or _text(incident.get("summary")),
        url=_text(incident.get("html_url")),
        body=details.text or _body(incident),
        severity=_severity(incident, details),
        status=STATUSES.get(_text(incident.get("status")), Status.OPEN),
        service=_name(incident.get("service")),
        labels={**{k: v for k, v in labels.items() if v}, **details.labels},  # the monitor's own win: queries use them
        annotations={k: v for k, v in annotations.items() if v},
        starts_at=parse_time(incident.get("created_at")),
        ends_at=parse_time(incident.get("resolved_at")),
        updated_at=parse_time(incident.get("updated_at")) or parse_time(incident.get("last_status_change_at")),
        fingerprint=_text(incident.get("incident_key")),
        raw=incident,
    )


def read_details(alerts: Sequence[object]) -> Details:
    """The alerts of `GET /incidents/{id}/alerts`. A monitor sent them: any field may be anything."""
    texts: list[str] = []
    labels: dict[str, str] = {}
    found: list[Severity] = []
    for alert in map(_dict, alerts):
        if severity := _BY_ALERT.get(_text(alert.get("severity"))):
            found.append(severity)
        body = _dict(alert.get("body"))
        custom = _details_of(body)
        for name, value in [*_prometheus_labels(custom), *_flat(custom)]:
            if len(value) <= MAX_LABEL_CHARS and "\n" not in value and len(labels) < MAX_DETAIL_LABELS:
                labels.setdefault(name, value)
        texts.append(_described(alert, custom))
    highest = max(found, key=_ORDER.index) if found else None
    return Details(text="\n\n".join(filter(None, texts)), labels=labels, severity=highest)


def _details_of(body: dict[str, Any]) -> object:
    """Events API v2 puts the monitor's fields into `cef_details.details`; older integrations into `details`."""
    cef = _dict(body.get("cef_details"))
    return cef.get("details") or body.get("details") or {}


def _prometheus_labels(custom: object) -> list[tuple[str, str]]:
    """Alertmanager's PagerDuty integration sends the labels as text: `Labels:`, then lines of ` - name = value`."""
    firing = _text(_dict(custom).get("firing"))
    labels = firing.partition("Labels:")[2].partition("Annotations:")[0]
    return _LABEL_LINE.findall(labels)


def _flat(value: object, prefix: str = "") -> list[tuple[str, str]]:
    """Scalars and lists by dotted name, three levels deep."""
    if isinstance(value, list):
        value = json.dumps(value, default=str, ensure_ascii=False)[:MAX_RAW_CHARS]
    if not isinstance(value, dict):
        return [(prefix, _text(value))] if prefix and _text(value) else []
    if prefix.count(".") >= 3:
        return []
    return [pair for k, v in value.items() for pair in _flat(v, f"{prefix}.{k}" if prefix else str(k))]


def _described(alert: dict[str, Any], custom: object) -> str:
    lines = [_text(alert.get("summary"))]
    if isinstance(custom, str):
        lines.append(custom)
    else:
        lines += [f"{name}: {value}" for name, value in _flat(custom)]
    for context in map(_dict, _list(_dict(alert.get("body")).get("contexts"))):
        if href := _text(context.get("href")):
            lines.append(f"link: {href}")
    return "\n".join(filter(None, lines))


def _severity(incident: dict[str, Any], details: Details) -> Severity:
    """A priority is a person's word, so it comes first; then the monitor's; urgency is only a paging rule."""
    priority = _name(incident.get("priority")).strip().lower()
    if priority[:-1] in ("p", "sev", "sev-", "sev ") and priority[-1:] in _BY_PRIORITY:
        return _BY_PRIORITY[priority[-1]]
    if details.severity is not None:
        return details.severity
    return _BY_URGENCY.get(_text(incident.get("urgency")), Severity.UNKNOWN)


def _body(incident: dict[str, Any]) -> str:
    details = _dict(incident.get("body")).get("details")
    description = _text(incident.get("description"))
    text = details if isinstance(details, str) else "\n".join(f"{name}: {value}" for name, value in _flat(details))
    return text or ("" if description == _text(incident.get("title")) else description)


def _name(reference: object) -> str:
    return _text(_dict(reference).get("summary")) or _text(_dict(reference).get("name"))


def _text(value: object) -> str:
    """Scalars as text; anything else is not text, and any field may be null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _cut(value: object) -> str:
    return json.dumps(value, default=str)[:MAX_RAW_CHARS]
