"""From GitHub's issues (listed, searched, fetched and pushed alike) to our alerts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Self

from agent.alert import Alert, Severity, Status, parse_time
from agent.errors import Permanent
from sources.github.config import REPOSITORY, GitHubConfig, split_label
from sources.port import Broken

MAX_RAW_CHARS = 2_000
MAX_BODY_LABELS = 40
MAX_LABEL_CHARS = 200
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_LABEL_LINE = re.compile(r"^[ \t]*[-*] ([a-zA-Z_]\w{0,60}) ?= ?(\S[^\n]{0,200})$", re.MULTILINE)
_ORDER = (Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.CRITICAL)
_RAW = ("id", "node_id", "number", "state", "state_reason", "html_url", "comments", "locked", "author_association")


@dataclass(frozen=True, slots=True)
class Ref:
    """An issue's own name, `owner/name#12`, as people write it."""

    repository: str
    number: int

    @classmethod
    def parse(cls, native: str) -> Self:
        """Raises `Permanent` that says how it is written."""
        name, _, number = native.strip().rpartition("#")
        if not REPOSITORY.fullmatch(name) or not _NUMBER.fullmatch(number):
            raise Permanent(f"github: {native[:80]!r} is not of the form owner/name#number")
        return cls(name.lower(), int(number))

    @property
    def path(self) -> str:
        return f"/repos/{self.repository}/issues/{self.number}"

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"


def is_pull_request(issue: object) -> bool:
    """GitHub lists pull requests as issues."""
    return isinstance(issue, dict) and bool(issue.get("pull_request"))


def repository_of(issue: object) -> str:
    """`owner/name` in lower case; "" when the issue does not say. Search finds issues of many repositories."""
    url = issue.get("repository_url") if isinstance(issue, dict) else None
    name = "/".join(url.rstrip("/").split("/")[-2:]).lower() if isinstance(url, str) else ""
    return name if REPOSITORY.fullmatch(name) else ""


def label_names(issue: dict[str, Any]) -> list[str]:
    """A label is an object, in old replies a plain string."""
    labels = [label.get("name") if isinstance(label, dict) else label for label in _list(issue.get("labels"))]
    return [label for label in labels if isinstance(label, str) and label]


def has_labels(issue: dict[str, Any], wanted: tuple[str, ...]) -> bool:
    """GitHub's filter: all of them, and case does not matter."""
    return {label.casefold() for label in wanted} <= {label.casefold() for label in label_names(issue)}


def read(source: str, repository: str, issue: object, config: GitHubConfig) -> Alert | Broken:
    """The alert, or why there is none; a fault in one issue must not cost its neighbours."""
    if not isinstance(issue, dict):
        return Broken(id="", reason=f"an issue is not an object but {type(issue).__name__}", raw=_cut(issue))
    number = issue.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return Broken(id="", reason="an issue without a number", raw=_cut(issue))
    ref = Ref(repository, number)
    try:
        return _alert(source, ref, issue, config)
    except (ValueError, TypeError, AttributeError) as error:  # pydantic's ValidationError is a ValueError
        return Broken(id=str(ref), reason=f"unreadable: {type(error).__name__}", raw=_cut(issue))


def no_repository(issue: object) -> Broken:
    """What a search found and can't be named."""
    return Broken(id="", reason="an issue without a repository", raw=_cut(issue))


def _alert(source: str, ref: Ref, issue: dict[str, Any], config: GitHubConfig) -> Alert:
    names = label_names(issue)
    body = _text(issue.get("body"))
    named = {name: value for name, value in map(split_label, names) if name}
    about = {
        "repository": ref.repository,
        "github_labels": ", ".join(names),
        "author": login(issue.get("user")),
        "assignees": ", ".join(filter(None, map(login, _list(issue.get("assignees"))))),
        "milestone": _text(_dict(issue.get("milestone")).get("title")),
    }
    return Alert(
        source=source,
        id=str(ref),
        title=_text(issue.get("title")),
        url=_text(issue.get("html_url")),
        body=body,
        severity=_severity(names, config),
        status=Status.RESOLVED if issue.get("state") == "closed" else Status.OPEN,
        service=next((value for name, value in named.items() if name.lower() == "service"), ""),
        labels={**_body_labels(body), **{k: v for k, v in about.items() if v}, **named},
        starts_at=parse_time(issue.get("created_at")),
        ends_at=parse_time(issue.get("closed_at")) if issue.get("state") == "closed" else None,
        updated_at=parse_time(issue.get("updated_at")),
        fingerprint=_text(issue.get("node_id")) or str(ref),
        raw={name: issue.get(name) for name in _RAW},
    )


def _severity(labels: list[str], config: GitHubConfig) -> Severity:
    """The highest that a label names."""
    found = [severity for label in labels if (severity := config.severity_of(label)) in _ORDER]
    return max(found, key=_ORDER.index) if found else Severity.UNKNOWN


def _body_labels(body: str) -> dict[str, str]:
    """Receivers that open issues for alerts write the labels as lines of ` - name = value`."""
    return dict(_LABEL_LINE.findall(body)[:MAX_BODY_LABELS])


def login(user: object) -> str:
    """The name of a user; "" for a deleted one, which is null."""
    return _text(_dict(user).get("login"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _cut(value: object) -> str:
    return json.dumps(value, default=str)[:MAX_RAW_CHARS]
