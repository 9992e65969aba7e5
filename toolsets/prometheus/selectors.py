"""The selectors inside a PromQL query: enough of the grammar to say why an answer is empty, and no more."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`"""
_NAME = r"(?<![\w:.])[A-Za-z_:][\w:]*"
_BRACED = re.compile(rf"(?:({_NAME})\s*)?\{{((?:{_STRING}|[^{{}}\"'`])*)\}}")
_MATCHER = re.compile(rf"([A-Za-z_][\w]*)\s*(=~|!~|!=|=)\s*({_STRING})")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", re.IGNORECASE)
_COMMENT = re.compile(r"#[^\n]*")
_WORDS = frozenset(
    {"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "group_left", "group_right"}
    | {"inf", "nan", "atan2", "start", "end", "sum", "avg", "min", "max", "count", "stddev", "stdvar", "topk"}
    | {"bottomk", "quantile", "count_values", "group", "limitk", "limit_ratio"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """`text` is the selector as PromQL, without range and offset."""

    name: str
    matchers: tuple[Matcher, ...]
    text: str


def selectors(query: str) -> tuple[Selector, ...]:
    """The distinct selectors of a query, in order of appearance, those with braces first."""
    found: dict[str, Selector] = {}
    for match in _BRACED.finditer(query):
        one = _braced(match)
        found.setdefault(one.text, one)
    rest = _BRACED.sub(" ", query)
    rest = _GROUPING.sub(" ", _COMMENT.sub(" ", re.sub(_STRING, " ", rest)))
    rest = re.sub(r"\[[^\]]*\]", " ", rest)
    for word in re.finditer(rf"({_NAME})(?!\s*\()(?![\w:])", rest):
        if word[1].lower() not in _WORDS:
            found.setdefault(word[1], Selector(name=word[1], matchers=(), text=word[1]))
    return tuple(found.values())


def _braced(match: re.Match[str]) -> Selector:
    matchers = tuple(
        Matcher(label=label, operator=operator, value=_unquoted(value))
        for label, operator, value in _MATCHER.findall(match[2])
    )
    named = next((one.value for one in matchers if one.label == "__name__" and one.operator == "="), "")
    return Selector(
        name=match[1] or named,
        matchers=tuple(one for one in matchers if one.label != "__name__"),
        text=" ".join(match[0].split()),
    )


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    return inner if text[0] == "`" else re.sub(r"\\(.)", r"\1", inner)
