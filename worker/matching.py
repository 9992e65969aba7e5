"""Matchers in Alertmanager's syntax over an alert: `severity=info`, `title=~"Disk.*"`, `namespace!~dev|test`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from agent.alert import Alert

OWN_FIELDS = ("title", "severity", "service", "source", "status")
_MATCHER = re.compile(r"\s*([A-Za-z_][\w.:/-]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NEWLINE = {"n": "\n"}

Operator = Literal["=", "!=", "=~", "!~"]


@dataclass(frozen=True, slots=True)
class Matcher:
    """`title`, `severity`, `service`, `source` and `status` are the alert's own; any other name is a label, and
    `labels.severity` is the label of that name. A label that is missing is "". Expressions match the whole value."""

    name: str
    operator: Operator
    value: str

    def holds(self, alert: Alert) -> bool:
        actual = value_of(alert, self.name)
        if self.operator in ("=", "!="):
            return (actual == self.value) is (self.operator == "=")
        return (_expression(self.value).fullmatch(actual) is not None) is (self.operator == "=~")


def parse_matcher(text: str) -> Matcher:
    """The first operator after the name counts, so a value may hold `=`. Raises `ValueError`."""
    parts = _MATCHER.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is not a matcher: write name=value, name!=value, name=~regex or name!~regex")
    name, operator, value = parts.groups()
    value = _unquoted(text, value)
    if operator in ("=~", "!~"):
        try:
            _expression(value)
        except re.error as error:
            raise ValueError(f"{text!r}: {error}") from error
    return Matcher(name, operator, value)  # type: ignore[arg-type]  # the expression's closed set


def all_hold(matchers: Iterable[str], alert: Alert) -> bool:
    return all(_parsed(text).holds(alert) for text in matchers)


def value_of(alert: Alert, name: str) -> str:
    """Empty where the alert has no such thing."""
    if name in OWN_FIELDS:
        return str(getattr(alert, name))
    return alert.labels.get(name, alert.labels.get(name.removeprefix("labels."), ""))


def _unquoted(text: str, value: str) -> str:
    if not value.startswith('"'):
        return value
    if not re.fullmatch(r'"(?:[^"\\]|\\.)*"', value, re.DOTALL):
        raise ValueError(f"{text!r}: the quotes do not match")
    return _ESCAPED.sub(lambda found: _NEWLINE.get(found[1], found[1] if found[1] in '"\\' else found[0]), value[1:-1])


@lru_cache(maxsize=1_000)
def _parsed(text: str) -> Matcher:
    return parse_matcher(text)


@lru_cache(maxsize=1_000)
def _expression(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)
