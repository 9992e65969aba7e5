"""`kubectl describe` text: containers with their states, limits and probes, conditions, settings, events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent.alert import parse_time
from agent.rules.observation import Fact, Observation, Thing, age_seconds
from agent.rules.transcript import Reading

MAX_LINES = 3_000

_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9 ./_-]{0,80}?):(?:\s+(?P<value>.*))?")
_CONTAINERS = re.compile(r"\s*(?:Init |Ephemeral )?Containers:\s*")
_PORT = re.compile(r"(\d{1,5})/(?:TCP|UDP|SCTP)")
_PROBE_PORT = re.compile(
    r"(?P<how>http-get|tcp-socket|grpc|exec)\b[^#]{0,200}?:(?P<port>\d{1,5}|[a-z][a-z0-9-]{0,14})(?:/| |$)"
)
_GAP = re.compile(r"\s{2,}")
_STAMP = "%a, %d %b %Y %H:%M:%S %z"


@dataclass(slots=True)
class _Container:
    name: str
    indent: int
    image: str = ""
    ports: list[str] = field(default_factory=list)
    section: str = ""
    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


def read_time(text: str) -> datetime | None:
    """An RFC 3339 time, or kubectl's `Sat, 29 Nov 2025 20:49:26 +0800`."""
    if (at := parse_time(text)) is not None:
        return at
    try:
        return datetime.strptime(text.strip(), _STAMP).astimezone(UTC)
    except ValueError:
        return None


def read_describe(reading: Reading, about: Thing) -> Iterator[Observation]:
    """Settings and conditions line by line; the containers and the events each in their own way."""
    lines = reading.body.split("\n")[:MAX_LINES]
    events = next((i for i, line in enumerate(lines) if line.startswith("Events:")), len(lines))
    yield from _settings(reading, about, lines[:events])
    yield from _containers(reading, about, lines[:events])
    yield from _events(reading, about, lines[events + 1 :])


def _settings(reading: Reading, about: Thing, lines: list[str]) -> Iterator[Observation]:
    """Every line outside the containers, with the section it stands in."""
    section, inside = "", False
    for line in lines:
        if _CONTAINERS.fullmatch(line):
            inside = True
        elif line and not line[0].isspace():
            inside = False
        if inside or not line.strip():
            continue
        if not line[0].isspace():
            section = line.partition(":")[0]
        yield Observation(
            fact=Fact.CONDITION,
            about=about,
            text=line.strip(),
            ref=reading.ref,
            values={"section": section, "value": line.partition(":")[2].strip() if line[0] != " " else line.strip()},
        )


def _containers(reading: Reading, about: Thing, lines: list[str]) -> Iterator[Observation]:
    """A container begins one level inside `Containers:`; its keys are one level further in."""
    base: int | None = None
    container: _Container | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if _CONTAINERS.fullmatch(line):
            yield from _close(reading, about, container)
            base, container = indent, None
        elif base is None or not line.strip():
            continue
        elif indent <= base:
            yield from _close(reading, about, container)
            base, container = None, None
        elif (container is None or indent <= container.indent) and line.rstrip().endswith(":"):
            yield from _close(reading, about, container)
            container = _Container(line.strip().rstrip(":"), indent)
        elif container is not None:
            yield from _line(reading, about, container, line)
    yield from _close(reading, about, container)


def _line(reading: Reading, about: Thing, container: _Container, line: str) -> Iterator[Observation]:
    match = _KEY.fullmatch(line.rstrip())
    if match is None:
        return
    key, value = match["key"], (match["value"] or "").strip()
    if len(match["indent"]) <= container.indent + 2:
        if key in ("State", "Last State") or container.section not in ("State", "Last State"):
            container.section = key
        yield from _key_line(reading, about, container, key, value, line.strip())
        container.section = key
    elif container.section in ("State", "Last State"):
        container.lines.append(line.strip())
        container.values[key.lower().replace(" ", "_")] = value
    elif container.section in ("Limits", "Requests"):
        values = {"what": container.section.lower(), "resource": key, "quantity": value, "container": container.name}
        # The heading is quoted with the figure: `memory: 64Mi` alone does not say which of the two it is.
        text = f"{container.lines[-1]}\n{line.strip()}" if container.lines else line.strip()
        container.lines.append(line.strip())
        yield _observation(reading, Fact.LIMIT, about, text, values)
    elif container.section == "Environment" and value and not value.startswith("<set to"):
        yield _observation(reading, Fact.SETTING, about, line.strip(), {"name": key, "value": value})


def _key_line(
    reading: Reading, about: Thing, container: _Container, key: str, value: str, line: str
) -> Iterator[Observation]:
    yield from _state(reading, about, container)
    if key in ("State", "Last State"):
        container.lines = [line]
        container.values = {"when": "now" if key == "State" else "last", "state": value}
    elif key in ("Limits", "Requests"):
        container.lines = [line]
    elif key == "Image":
        container.image = value
        yield _observation(reading, Fact.IMAGE, about, line, {"image": value, "container": container.name})
    elif key in ("Port", "Ports"):
        container.ports += _PORT.findall(value)
        values = {"ports": " ".join(container.ports), "container": container.name}
        if container.ports:
            yield _observation(reading, Fact.PORTS, about, line, values)
    elif key in ("Liveness", "Readiness", "Startup"):
        target = _PROBE_PORT.search(value)
        values = {"probe": key.lower(), "container": container.name, "ports": " ".join(container.ports)}
        values |= {"how": target["how"], "port": target["port"]} if target else {}
        yield _observation(reading, Fact.PROBE, about, line, values)


def _state(reading: Reading, about: Thing, container: _Container) -> Iterator[Observation]:
    """One observation a state, quoted from its first to its last line."""
    if "when" in container.values:
        values = container.values | {"container": container.name, "image": container.image}
        if values["state"] == "Running" and (began := read_time(values.get("started", ""))) is not None:
            values["running_since"] = began.isoformat()
        at = read_time(values.get("finished", "") or values.get("started", ""))
        text = "\n".join(container.lines)
        yield Observation(fact=Fact.CONTAINER, about=about, text=text, ref=reading.ref, at=at, values=values)
    container.values, container.lines = {}, []


def _close(reading: Reading, about: Thing, container: _Container | None) -> Iterator[Observation]:
    if container is not None:
        yield from _state(reading, about, container)


def _events(reading: Reading, about: Thing, lines: list[str]) -> Iterator[Observation]:
    """`Type  Reason  Age  From  Message`; the time is an age, or absolute where the tool gives it so."""
    for line in lines:
        cells = _GAP.split(line.strip(), maxsplit=4)
        if len(cells) < 5 or cells[0] in ("Type", "----"):
            continue
        kind, reason, age, _, message = cells
        at = parse_time(age.partition(" ")[0])
        values = {"type": kind, "reason": reason, "message": message}
        values["age"] = "" if at else str(age_seconds(age.partition("(")[0]) or "")
        yield Observation(fact=Fact.EVENT, about=about, text=line.strip(), ref=reading.ref, at=at, values=values)


def _observation(reading: Reading, fact: Fact, about: Thing, text: str, values: dict[str, str]) -> Observation:
    return Observation(fact=fact, about=about, text=text, ref=reading.ref, values=values)
