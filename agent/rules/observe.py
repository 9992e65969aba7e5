"""Every result so far as observations: the tool decides how a text is read, never the text itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from agent.rules.names import is_object_name
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.reading.describe import read_describe
from agent.rules.reading.logs import read_logs
from agent.rules.reading.manifest import read_manifest
from agent.rules.reading.monitoring import read_anomalies, read_dependencies, read_unit
from agent.rules.reading.series import read_rules, read_series
from agent.rules.reading.story import read_story
from agent.rules.reading.tables import read_events, read_get, read_top, singular
from agent.rules.toolbox import Act, acts_of
from agent.rules.transcript import Reading
from agent.tools import compact_json

MAX_LINE_CHARS = 2_000
MAX_BODY_CHARS = 1_000_000

_ABSENT = re.compile(r"not ?found|404", re.IGNORECASE)
_STATISTICS = re.compile(r"\b(?:min|first|last)=")


def acts_in(readings: Sequence[Reading], offered: Sequence[str]) -> dict[str, Act]:
    """The act of every tool that is on offer or was called; at the last step tools are withdrawn."""
    return acts_of({*offered, *(reading.tool for reading in readings)})


def observe(readings: Sequence[Reading], acts: dict[str, Act]) -> tuple[Observation, ...]:
    """In call order. Results without a reference can't be cited, so they are not evidence."""
    return tuple(
        observation
        for reading in readings
        if reading.ref and (act := acts.get(reading.tool)) is not None
        for observation in _read_once(
            act, reading.tool, compact_json(reading.arguments), reading.ref, reading.status, reading.query, reading.body
        )
    )


# Every turn of a run comes with all results before it; reading each of them once keeps a turn's cost to what is new.
@lru_cache(maxsize=128)
def _read_once(
    act: Act, tool: str, arguments: str, ref: str, status: str, query: str, body: str
) -> tuple[Observation, ...]:
    given = json.loads(arguments)
    return tuple(_read(Reading(tool=tool, arguments=given, ref=ref, status=status, query=query, body=body), act))


def _bounded(reading: Reading) -> Reading:
    """No line longer than any pattern should have to search; a quote is far shorter."""
    lines = reading.body[:MAX_BODY_CHARS].split("\n")
    if all(len(line) <= MAX_LINE_CHARS for line in lines):
        return reading
    return replace(reading, body="\n".join(line[:MAX_LINE_CHARS] for line in lines))


def _read(reading: Reading, act: Act) -> Iterator[Observation]:
    reading = _bounded(reading)
    about = _about(reading, act)
    if reading.status == "success":
        yield from _read_data(reading, act, about)
    elif about.name and reading.body and _ABSENT.search(reading.body[:2_000]) and act in (Act.GET, Act.DESCRIBE):
        line = next(line for line in reading.body.split("\n") if line.strip())
        yield Observation(fact=Fact.ABSENT, about=about, text=line.strip(), ref=reading.ref)


def _read_data(reading: Reading, act: Act, about: Thing) -> Iterator[Observation]:
    match act:
        case Act.GET:
            yield from read_events(reading) if about.kind == "event" else read_get(reading, about.kind)
        case Act.DESCRIBE:
            ours = not reading.body.startswith("Name:")
            yield from read_story(reading, about) if ours else read_describe(reading, about)
        case Act.EVENTS:
            yield from read_events(reading)
        case Act.TOP:
            yield from read_top(reading, about.kind if about.kind in ("pod", "node") else "pod")
        case Act.LOGS:
            yield from read_logs(reading, about)
        case Act.LOG_QUERY:
            # Without its siblings a metric store can't be told from a log store by its name.
            yield from read_series(reading) if _STATISTICS.search(reading.body[:5_000]) else read_logs(reading, about)
        case Act.QUERY | Act.QUERY_RANGE:
            yield from read_series(reading)
        case Act.RULES:
            yield from read_rules(reading)
        case Act.ALERTS:
            yield from read_rules(reading)
            yield from read_anomalies(reading)
        case _:
            yield from _read_surroundings(reading, act, about)


def _read_surroundings(reading: Reading, act: Act, about: Thing) -> Iterator[Observation]:
    match act:
        case Act.YAML:
            yield from read_manifest(reading)
        case Act.DEPENDENCIES:
            yield from read_dependencies(reading, Thing("workload", about.name))
        case Act.SERVICE_STATUS:
            yield from read_unit(reading)
        case _:
            return


def _about(reading: Reading, act: Act) -> Thing:
    """The object a call asked about, from its arguments."""
    arguments = {key: str(value) for key, value in reading.arguments.items()}
    name = next((arguments[key] for key in ("name", "pod", "pod_name", "object", "service") if arguments.get(key)), "")
    kind = next((arguments[key] for key in ("kind", "resource", "resource_type", "type") if arguments.get(key)), "")
    if "/" in name:
        kind, _, name = name.partition("/")
    kind = singular(kind) or ("pod" if act in (Act.LOGS, Act.TOP) else "")
    if not name and act is Act.LOGS:
        selector = arguments.get("selector") or arguments.get("label_selector") or ""
        kind, name = "workload", selector.rpartition("=")[2]
    if name and not is_object_name(name):
        return NOTHING
    return Thing(kind, name)
