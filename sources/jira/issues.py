"""From Jira's issues (v2, v3 and webhook form alike) to our alerts."""

from __future__ import annotations

import json
import re
import urllib.parse
from typing import Any

from agent.alert import Alert, Severity, Status, parse_time
from sources.jira.config import JiraConfig
from sources.jira.document import plain_value, text_of
from sources.port import Broken

MAX_RAW_CHARS = 2_000
FIELDS = (
    "summary", "description", "status", "priority", "labels", "components", "project", "issuetype", "environment",
    "created", "updated", "resolution", "resolutiondate", "reporter", "assignee", "parent",
)  # fmt: skip
# Jira Cloud's priorities, Data Center's, and the usual numbered ones.
SEVERITIES = {
    Severity.CRITICAL: ("highest", "blocker", "critical", "urgent", "p1", "sev1", "sev-1"),
    Severity.ERROR: ("high", "major", "p2", "sev2", "sev-2"),
    Severity.WARNING: ("medium", "normal", "p3", "sev3", "sev-3"),
    Severity.INFO: ("low", "lowest", "minor", "trivial", "p4", "p5", "sev4", "sev-4", "sev5", "sev-5"),
}
_BY_PRIORITY = {name: severity for severity, names in SEVERITIES.items() for name in names}
_PAIR = re.compile(r"([A-Za-z_][\w./-]{0,60})[=:](?!//)(\S{1,200})")
_STATUSES = {"new": Status.OPEN, "indeterminate": Status.ACKNOWLEDGED, "done": Status.RESOLVED}


def read(source: str, issue: object, config: JiraConfig) -> Alert | Broken:
    """The alert, or why there is none; a fault in one issue must not cost its neighbours."""
    if not isinstance(issue, dict):
        return Broken(id="", reason=f"an issue is not an object but {type(issue).__name__}", raw=_cut(issue))
    native, fields = issue.get("id"), issue.get("fields")
    if not isinstance(native, str) or not native:
        return Broken(id="", reason="an issue without an id", raw=_cut(issue))
    if not isinstance(fields, dict):
        return Broken(id=native, reason="an issue without fields", raw=_cut(issue))
    try:
        return _alert(source, native, issue, fields, config)
    except (ValueError, TypeError, AttributeError) as error:  # pydantic's ValidationError is a ValueError
        return Broken(id=native, reason=f"unreadable: {type(error).__name__}", raw=_cut(issue))


def _alert(source: str, native: str, issue: dict[str, Any], fields: dict[str, Any], config: JiraConfig) -> Alert:
    key = _text(issue.get("key"))
    site = config.site_url or config.url
    components = [name for name in map(plain_value, _list(fields.get("components"))) if name]
    status = _status(fields)
    return Alert(
        source=source,
        id=native,
        title=_text(fields.get("summary")) or key,
        url=f"{site}/browse/{urllib.parse.quote(key, safe='')}" if key else "",
        body=text_of(fields.get("description")),
        severity=_severity(fields, config),
        status=status,
        service=components[0] if components else "",
        labels=_labels(key, fields, config),
        starts_at=parse_time(fields.get("created")),
        ends_at=parse_time(fields.get("resolutiondate")) if status is Status.RESOLVED else None,
        updated_at=parse_time(fields.get("updated")),
        fingerprint=_fingerprint(fields),
        raw=issue,
    )


def _labels(key: str, fields: dict[str, Any], config: JiraConfig) -> dict[str, str]:
    """The operator's fields win, then labels written as `name=value` or `name:value`, then what every issue has."""
    tags = [tag for tag in _list(fields.get("labels")) if isinstance(tag, str)]
    project = fields.get("project")
    common = {
        "key": key,
        "project": _text(project.get("key")) if isinstance(project, dict) else "",
        "issuetype": plain_value(fields.get("issuetype")),
        "priority": plain_value(fields.get("priority")),
        "issue_status": plain_value(fields.get("status")),
        "components": plain_value(fields.get("components")),
        "labels": ", ".join(tags),
        "environment": text_of(fields.get("environment")),
        "reporter": plain_value(fields.get("reporter")),
        "assignee": plain_value(fields.get("assignee")),
        "parent": plain_value(_key_of(fields.get("parent"))),
    }
    pairs = {found[1]: found[2] for tag in tags if (found := _PAIR.fullmatch(tag))}
    chosen = {label: plain_value(fields.get(field)) for label, field in config.label_fields.items()}
    return {name: value for name, value in {**common, **pairs, **chosen}.items() if value}


def _fingerprint(fields: dict[str, Any]) -> str:
    """The label by which jiralert knows a group of alerts again; other issues tell nothing of the kind."""
    tags = [tag for tag in _list(fields.get("labels")) if isinstance(tag, str)]
    return next((tag for tag in tags if tag.startswith(("JIRALERT{", "ALERT{"))), "")


def _severity(fields: dict[str, Any], config: JiraConfig) -> Severity:
    name = plain_value(fields.get("priority")).strip().lower()
    own = {priority.strip().lower(): severity for priority, severity in config.severities.items()}
    return own.get(name) or _BY_PRIORITY.get(name) or Severity.UNKNOWN


def _status(fields: dict[str, Any]) -> Status:
    """By the category, which every workflow has; older servers send none with a webhook, then by the resolution."""
    status = fields.get("status")
    category = status.get("statusCategory") if isinstance(status, dict) else None
    if isinstance(category, dict) and category.get("key"):
        return _STATUSES.get(_text(category["key"]), Status.OPEN)
    return Status.RESOLVED if fields.get("resolution") else Status.OPEN


def _key_of(issue: object) -> object:
    return issue.get("key") if isinstance(issue, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _cut(value: object) -> str:
    return json.dumps(value, default=str)[:MAX_RAW_CHARS]
