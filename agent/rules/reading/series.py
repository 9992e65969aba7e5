"""Metric results: one line of statistics a series, `{labels} min=… max=… avg=… first=… last=…`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from agent.alert import parse_time
from agent.rules.measures import measure_of
from agent.rules.names import is_label_value
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.transcript import Reading

MAX_SERIES = 500

_LABEL = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,80})=\"([^\"]{0,300})\"")
_STATISTIC = re.compile(
    r"\b(min|max|avg|mean|first|last|current|value)[=:]\s*([-+]?(?:\d[\d.]{0,30}(?:e[-+]?\d{1,3})?|inf|nan))",
    re.IGNORECASE,
)
_INSTANT = re.compile(r"\}?\s*(?:=>|:|=)?\s*([-+]?\d[\d.]{0,30}(?:e[-+]?\d{1,3})?)(?:\s*@.*)?$", re.IGNORECASE)
_COMMON = re.compile(r"^\d{1,6} series.{0,80}; all have (.{1,3000})$")
_CONSTANT = re.compile(r"\bconstant ([-+]?\d[\d.]{0,30}(?:e[-+]?\d{1,3})?)", re.IGNORECASE)
_CHANGE = re.compile(r"(?:change|step from).{0,80}? at (\d{4}-\d{2}-\d{2}T[0-9:.]{5,18}Z?)", re.IGNORECASE)
_EDGE = re.compile(r"; (begins|ends) (\d{4}-\d{2}-\d{2}T[0-9:.]{8,18}Z?)")
_ABOUT = (
    *(("pod", "pod"), ("deployment", "workload"), ("statefulset", "workload")),
    *(("persistentvolumeclaim", "persistentvolumeclaim"), ("service", "service"), ("app", "workload")),
    *(("node", "node"), ("instance", "instance"), ("job", "service")),
)
_RULE = re.compile(r"(?P<name>[A-Za-z_][^ ]{0,200}) \(group [^)]{0,200}\) [^:]{0,120}: (?P<expr>.+)")
_EXPRESSION = re.compile(r"(?:expr|query)[\"']?\s*[:=]\s*(?P<expr>.+)")
_NAMED = re.compile(r"(?:alert|name|alertname)[\"']?\s*[:=]\s*[\"']?(?P<name>[A-Za-z0-9_:.-]{1,120})")


def read_series(reading: Reading) -> Iterator[Observation]:
    """`measure` says what was measured, from the query that ran. A line without numbers is passed over."""
    asked = (reading.arguments.get(key) for key in ("query", "expr", "promql", "expression"))
    query = str(next((text for text in asked if text), reading.query))
    measure = measure_of(query)
    common: dict[str, str] = {}
    found = 0
    for line in reading.body.split("\n"):
        if shared := _COMMON.search(line):
            common = dict(_LABEL.findall(shared[1]))
        if not (statistics := _statistics(line)):
            continue
        found += 1
        if found > MAX_SERIES:
            return
        labels = {key: value for key, value in _labels(line, common) if is_label_value(value)}
        values = {"measure": measure, "query": query, **{f"label_{k}": v for k, v in labels.items()}, **statistics}
        values |= dict(_EDGE.findall(line))
        yield Observation(
            fact=Fact.SERIES, about=_about(labels), text=line.strip(), ref=reading.ref, at=_changed(line), values=values
        )


def _labels(line: str, common: dict[str, str]) -> list[tuple[str, str]]:
    """A line's own labels, and those that all series share and the heading says once."""
    return [*common.items(), *_LABEL.findall(line[:3_000])]


def _statistics(line: str) -> dict[str, str]:
    tail = line[line.rfind("}") + 1 :] if "}" in line else line
    found = {name.lower(): value for name, value in _STATISTIC.findall(tail)}
    if constant := _CONSTANT.search(tail):
        found = {"first": constant[1], "last": constant[1]}
    elif not found and "}" in line and (instant := _INSTANT.match(tail)):
        found = {"last": instant[1]}
    last = found.get("last") or found.get("current") or found.get("value")
    if last is not None:
        found["last"] = last
        found.setdefault("max", last)
        found.setdefault("min", last)
    return found


def _changed(line: str) -> datetime | None:
    change = _CHANGE.search(line)
    return parse_time(change[1]) if change else None


def _about(labels: dict[str, str]) -> Thing:
    return next((Thing(kind, labels[key]) for key, kind in _ABOUT if labels.get(key)), Thing("", ""))


def read_rules(reading: Reading) -> Iterator[Observation]:
    """The alerting rules with their expressions, whether they stand in one line or in blocks."""
    name = ""
    for line in reading.body.split("\n")[:5_000]:
        if whole := _RULE.fullmatch(line):
            yield _rule(reading, whole["name"], line, whole["expr"])
            continue
        if named := _NAMED.search(line):
            name = named["name"]
        if name and (expression := _EXPRESSION.search(line)):
            yield _rule(reading, name, line, expression["expr"].strip().strip("\"'"))


def _rule(reading: Reading, name: str, line: str, expression: str) -> Observation:
    values = {"expr": expression}
    return Observation(fact=Fact.RULE, about=Thing("rule", name), text=line.strip(), ref=reading.ref, values=values)
