"""Log lines: those that speak of trouble, one for each wording, with how often it came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from agent.alert import parse_time
from agent.rules.names import is_object_name
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.transcript import Reading

MAX_LINES = 20_000
MAX_LINE_CHARS = 2_000
MAX_WORDINGS = 150

_TROUBLE = re.compile(
    r"err(?:or|no)?\b|exception|fail|fatal|panic|refused|reset by peer|timed?[ -]?out|denied|forbidden|unauthori[sz]ed"
    r"|no such|not found|unavailable|unreachable|exhaust|no space|enospc|enotfound|expire|certificate|x509|too many"
    r"|unable|can(?:'t|not)|deadline|in use|reserved|read-?only|unknown ?host|resolution"
    r"|lag|rebalanc|not available|limit",
    re.IGNORECASE,
)
_HEADING = re.compile(r"== (?P<pod>[a-z0-9][a-z0-9.-]{0,252})/[a-z0-9-]{1,63}(?: \(previous run\))?: ")
_VARYING = re.compile(r"[0-9]+|[0-9a-f]{8,}")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?")
_LABELS = re.compile(r"\{([^{}\"]{0,60}=\"[^{}]{0,1500})\}")
_LABEL = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,60})=\"([^\"]{0,300})\"")
_OWNERS = (
    *(("pod", "pod"), ("app", "workload"), ("service", "workload"), ("service_name", "workload")),
    *(("deployment", "workload"), ("job", "workload"), ("container", "workload")),
)


def read_logs(reading: Reading, about: Thing) -> Iterator[Observation]:
    """At most `MAX_WORDINGS` lines. Lines that differ only in numbers count as one wording; the first is kept."""
    kept: dict[str, Observation] = {}
    writer = about
    for raw in reading.body.split("\n")[:MAX_LINES]:
        line = raw[:MAX_LINE_CHARS].strip()
        if heading := _HEADING.match(line):
            writer = Thing("pod", heading["pod"])
        if not line or _TROUBLE.search(line) is None:
            continue
        wording = _VARYING.sub("#", line[:400])
        if (seen := kept.get(wording)) is not None:
            count = int(seen.values["count"]) + 1
            kept[wording] = replace(seen, values={"count": str(count)})
        elif len(kept) < MAX_WORDINGS:
            owner = labelled(line) or writer
            kept[wording] = Observation(
                fact=Fact.LOG, about=owner, text=line, ref=reading.ref, at=_at(line), values={"count": "1"}
            )
    yield from kept.values()


def _at(line: str) -> datetime | None:
    stamp = _STAMP.search(line, 0, 80)
    return parse_time(stamp[0].replace(",", ".").replace(" ", "T")) if stamp else None


def labelled(line: str) -> Thing | None:
    """Who wrote the line, by the stream labels a log store puts before it."""
    match = _LABELS.search(line, 0, 2_000) if line.find("{", 0, 60) >= 0 else None
    if match is None:
        return None
    labels = dict(_LABEL.findall(match[1]))
    for key, kind in _OWNERS:
        if is_object_name(labels.get(key, "")):
            return Thing(kind, labels[key])
    return None
