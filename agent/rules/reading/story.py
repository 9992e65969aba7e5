"""Describe text in the words of our own Kubernetes toolset: `state: waiting CrashLoopBackOff; ready False`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from agent.alert import parse_time
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.reading.tables import read_events, read_get
from agent.rules.transcript import Reading

MAX_LINES = 3_000

_CONTAINER = re.compile(r"(?:(?:init|debug) )?container (?P<name>[a-z0-9-]{1,63}): (?P<image>.*)")
_STATE = re.compile(
    r"(?P<when>last )?state: (?P<state>running|waiting|terminated)(?: (?P<reason>[A-Za-z]{1,60}))?(?P<more>.*)"
)
_EXIT = re.compile(r"exit code (?P<code>-?\d{1,6})")
_PERIOD = re.compile(r"(?P<from>\S{20}) to (?P<to>\S{20})")
_SINCE = re.compile(r"since (?P<at>\S{20})")
_RESOURCES = re.compile(r"requests: (?P<requests>[^;]{1,500}); limits: (?P<limits>.{1,500})")
_PROBE = re.compile(
    r"(?P<probe>liveness|readiness|startup): (?P<how>HTTPS? GET|TCP|gRPC) :(?P<port>\d{1,5}|[a-z][a-z0-9-]{0,14})"
)
_SETTINGS = re.compile(r"env: (?P<pairs>.{1,10000})")
_ENV = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,100})=([^<,][^,]{0,200})(?:, |$)")
_CONDITION = re.compile(r"condition (?P<type>[A-Za-z./-]{1,100})=(?P<status>True|False|Unknown)(?P<more>.*)")
_REVISION = re.compile(r"\s+#(?P<number>\d{1,9})\s+(?P<at>\S{20})\s+(?P<name>[a-z0-9.-]{1,253})")
_CHANGE = re.compile(r"\s+(?P<path>[A-Za-z][^ ]{0,300}): (?P<old>.{1,400}?) -> (?P<new>.{1,400})")
_OWNED = re.compile(r"owned by: (?P<owners>.{1,1000})")


class _Seen(Protocol):
    """Makes an observation of the line that is being read."""

    def __call__(self, fact: Fact, values: dict[str, str], at: datetime | None = None) -> Observation: ...


@dataclass(slots=True)
class _Place:
    """Where in the text we are."""

    container: str = ""
    image: str = ""
    ports: str = ""
    changed: bool = False
    rolled_out: datetime | None = None


def read_story(reading: Reading, about: Thing) -> Iterator[Observation]:
    """Line by line up to the events; the tables inside are read as the lists they are."""
    lines = reading.body.split("\n")[:MAX_LINES]
    events = next((i for i, line in enumerate(lines) if line.startswith("events:")), len(lines))
    place = _Place()
    for line in lines[:events]:
        yield from _line(reading, about, place, line)
    yield from read_get(_part(reading, lines[:events], "pods matching"), "pod")
    yield from read_events(replace(reading, body="\n".join(lines[events + 1 :])))


def _part(reading: Reading, lines: list[str], heading: str) -> Reading:
    start = next((i for i, line in enumerate(lines) if line.startswith(heading)), len(lines))
    body = lines[start + 1 :]
    end = next((i for i, line in enumerate(body) if line.startswith(("rollout history", "condition "))), len(body))
    return replace(reading, body="\n".join(body[:end]))


def _line(reading: Reading, about: Thing, place: _Place, line: str) -> Iterator[Observation]:
    text = line.strip()

    def seen(fact: Fact, values: dict[str, str], at: datetime | None = None) -> Observation:
        kept = {key: value for key, value in values.items() if value}
        return Observation(fact=fact, about=about, text=text, ref=reading.ref, at=at, values=kept)

    if match := _CONTAINER.fullmatch(text):
        place.container, place.image, place.ports = match["name"], match["image"], ""
        yield seen(Fact.IMAGE, {"image": match["image"], "container": match["name"]})
    elif match := _STATE.fullmatch(text):
        values, at = _state(match)
        yield seen(Fact.CONTAINER, values | {"container": place.container, "image": place.image}, at)
    elif text.startswith("ports: "):
        place.ports = " ".join(re.findall(r"(\d{1,5})/", text))
        yield seen(Fact.PORTS, {"ports": place.ports, "container": place.container})
    elif match := _PROBE.match(text):
        yield seen(Fact.PROBE, {**match.groupdict(), "container": place.container, "ports": place.ports})
    elif match := _RESOURCES.fullmatch(text):
        yield from _resources(seen, place, match)
    else:
        yield from _rest(seen, place, line)


def _resources(seen: _Seen, place: _Place, match: re.Match[str]) -> Iterator[Observation]:
    for what in ("requests", "limits"):
        for resource, amount in re.findall(r"([a-z][a-z0-9./-]{0,60})=([0-9A-Za-z.]{1,30})", match[what]):
            values = {"what": what, "resource": resource, "quantity": amount, "container": place.container}
            yield seen(Fact.LIMIT, values)


def _rest(seen: _Seen, place: _Place, line: str) -> Iterator[Observation]:
    if match := _REVISION.match(line):
        place.rolled_out = place.rolled_out or parse_time(match["at"])
    elif line.startswith("changed from #"):
        place.changed = True
    elif place.changed and (match := _CHANGE.fullmatch(line)):
        yield seen(Fact.CHANGE, match.groupdict(), place.rolled_out)
    elif match := _CONDITION.fullmatch(line):
        place.changed = False
        since = _SINCE.search(match["more"])
        values = {"section": "Conditions", "type": match["type"], "status": match["status"]}
        yield seen(Fact.CONDITION, values, parse_time(since["at"]) if since else None)
    elif match := _OWNED.fullmatch(line):
        yield seen(Fact.CONDITION, {"section": "owners", "value": match["owners"]})
    elif match := _SETTINGS.fullmatch(line.strip()):
        for name, value in _ENV.findall(match["pairs"]):
            yield seen(Fact.SETTING, {"name": name, "value": value})
    elif line.strip():
        yield seen(Fact.CONDITION, {"section": line.partition(":")[0].strip(), "value": line.partition(":")[2].strip()})


def _state(match: re.Match[str]) -> tuple[dict[str, str], datetime | None]:
    values = {"when": "last" if match["when"] else "now", "state": match["state"].capitalize()}
    values["reason"] = match["reason"] if match["state"] != "running" else ""
    if code := _EXIT.search(match["more"]):
        values["exit_code"] = code["code"]
    if match["state"] == "running" and (since := _SINCE.search(match.string)):
        values["running_since"] = since["at"]
    if period := _PERIOD.search(match["more"]):
        return values, parse_time(period["to"])
    return values, None
