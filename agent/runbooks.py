"""Runbooks: Markdown with front matter from the operator's folders, matched to an alert by its labels.

    ---
    title: Payment database is full
    match: {alertname: [DiskFull, DiskPressure], service: "pay*"}
    ---
    Look at the slow query log first ...

Every key of `match` must fit: a label of the alert, or `title`, `service`, `severity`, `source`. Values are shell
patterns, or lists of them. Nothing is fetched from anywhere.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from agent.alert import Alert
from agent.errors import ConfigError

MAX_FILE_BYTES = 200_000
MAX_FILES = 2_000
MAX_MATCHED = 3
_FENCE = "---"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """`name` is its path below the folder; `match` maps a label to the patterns of which one must fit."""

    name: str
    title: str
    text: str
    match: Mapping[str, tuple[str, ...]]

    def fits(self, alert: Alert) -> bool:
        known = {
            **alert.labels,
            "title": alert.title,
            "service": alert.service or alert.labels.get("service", ""),
            "severity": alert.severity.value,
            "source": alert.source,
        }
        return bool(self.match) and all(
            any(fnmatch.fnmatch(known.get(label, "").lower(), pattern.lower()) for pattern in patterns)
            for label, patterns in self.match.items()
        )


def load(folders: Iterable[Path]) -> tuple[Runbook, ...]:
    """All runbooks, in the order of their names. Raises `ConfigError` naming the file that can't be read."""
    found: list[Runbook] = []
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError("there is no such folder of runbooks", file=str(folder))
        paths = [path for path in sorted(folder.rglob("*.md")) if path.is_file() and _inside(path, folder)]
        if len(paths) > MAX_FILES:
            raise ConfigError(f"more than {MAX_FILES} runbooks", file=str(folder))
        found += [_read(path, folder) for path in paths]
    return tuple(found)


def matching(runbooks: Iterable[Runbook], alert: Alert) -> tuple[Runbook, ...]:
    """Those that fit, the most specific first, a few at most."""
    fitting = [runbook for runbook in runbooks if runbook.fits(alert)]
    return tuple(sorted(fitting, key=lambda runbook: (-len(runbook.match), runbook.name))[:MAX_MATCHED])


def _inside(path: Path, folder: Path) -> bool:
    """A link out of the folder would put any file of this machine into a prompt."""
    return path.resolve().is_relative_to(folder.resolve())


def _read(path: Path, folder: Path) -> Runbook:
    name = path.relative_to(folder).as_posix()
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"larger than {MAX_FILE_BYTES} bytes", file=str(path))
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't be read: {error}", file=str(path)) from error
    front, body = _parted(text)
    try:
        meta = yaml.safe_load(front) or {}
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 2
        raise ConfigError("the front matter is not YAML", file=str(path), line=line) from error
    if not isinstance(meta, dict) or not isinstance(meta.get("match", {}), dict):
        raise ConfigError("the front matter must be a mapping, and so must `match`", file=str(path), key="match")
    return Runbook(
        name=name,
        title=str(meta.get("title") or name.removesuffix(".md")),
        text=body.strip(),
        match={str(label): _patterns(value) for label, value in meta.get("match", {}).items()},
    )


def _parted(text: str) -> tuple[str, str]:
    """Front matter and body; a file without front matter matches nothing."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != _FENCE:
        return "", text
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.strip() == _FENCE), None)
    return ("", text) if end is None else ("\n".join(lines[1:end]), "\n".join(lines[end + 1 :]))


def _patterns(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
