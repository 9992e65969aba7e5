"""As much of JQL as our requests use: comparisons, `in`, AND, OR, parentheses, ORDER BY created and key."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

Condition = Callable[[dict[str, Any]], bool]
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|>=|!=|[=~(),]|[^\s"=~!(),<>]+)')
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
FIELDS = ("project", "statuscategory", "updated", "summary", "labels", "key")


class JqlError(Exception):
    """Raised with what Jira would say of the query."""


def parse(jql: str, now: datetime) -> tuple[Condition, list[tuple[str, bool]]]:
    """The condition over snapshots (see `tests.support.jira_api`) and the order: names, and whether descending."""
    condition, found, order = _split(jql)
    reader = _Reader(_tokens(condition), now)
    answer = reader.any_of() if reader.left else (lambda snapshot: True)
    if reader.left:
        raise JqlError(f"Error in the JQL Query: Expecting operator but got '{reader.left[0]}'.")
    fields = [(part.split()[0].lower(), part.lower().endswith(" desc")) for part in order.split(",") if part.strip()]
    if found and not fields:
        raise JqlError("Error in the JQL Query: ORDER BY without fields")
    return answer, fields or [("created", True)]


def _split(jql: str) -> tuple[str, bool, str]:
    parts = re.split(r"(?i)\border by\b(?=[^\"]*$)", jql, maxsplit=1)
    return parts[0], len(parts) > 1, parts[1] if len(parts) > 1 else ""


def _tokens(text: str) -> list[str]:
    found, end = [], 0
    while text[end:].strip():
        match = _TOKEN.match(text, end)
        if match is None:
            raise JqlError(f"Error in the JQL Query: unexpected {text[end:].strip()[:10]!r}")
        found.append(match[1])
        end = match.end()
    return found


class _Reader:
    def __init__(self, tokens: list[str], now: datetime) -> None:
        self.left = tokens
        self._now = now

    def any_of(self) -> Condition:
        parts = [self.all_of()]
        while self._word("or"):
            parts.append(self.all_of())
        return lambda snapshot: any(part(snapshot) for part in parts)

    def all_of(self) -> Condition:
        parts = [self._term()]
        while self._word("and"):
            parts.append(self._term())
        return lambda snapshot: all(part(snapshot) for part in parts)

    def _term(self) -> Condition:
        if self._word("("):
            inner = self.any_of()
            self._expect(")")
            return inner
        name = self._next().lower()
        if name not in FIELDS:
            raise JqlError(f"Field '{name}' does not exist or you do not have permission to view it.")
        return self._compared(name, self._next().lower())

    def _compared(self, name: str, operator: str) -> Condition:
        match operator:
            case "in":
                self._expect("(")
                values = [self._value()]
                while self._word(","):
                    values.append(self._value())
                self._expect(")")
                return lambda snapshot: snapshot[name].lower() in values
            case ">=":
                since = self._time(self._value())
                return lambda snapshot: snapshot[name] >= since
            case "=" | "!=" | "~":
                value = self._value()
                if operator == "~":
                    return lambda snapshot: value in snapshot[name].lower()
                return lambda snapshot: (value in _all(snapshot[name])) == (operator == "=")
        raise JqlError(f"Error in the JQL Query: {operator!r} is not an operator")

    def _time(self, text: str) -> datetime:
        """Epoch milliseconds, or an age; a written date would be read in the user's own zone."""
        if text.isdigit():
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        if age := re.fullmatch(r"-(\d+)([mhd])", text):
            return self._now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        raise JqlError(f"Date value '{text}' is invalid")

    def _value(self) -> str:
        return self._next().strip('"').lower()

    def _word(self, word: str) -> bool:
        if self.left and self.left[0].lower() == word:
            self.left.pop(0)
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._word(word):
            raise JqlError(f"Error in the JQL Query: Expecting {word!r}")

    def _next(self) -> str:
        if not self.left:
            raise JqlError("Error in the JQL Query: unexpected end")
        return self.left.pop(0)


def _all(value: object) -> list[str]:
    return [str(item).lower() for item in value] if isinstance(value, list) else [str(value).lower()]
