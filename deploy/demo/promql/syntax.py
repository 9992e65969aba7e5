"""The syntax tree of the PromQL subset, and the error that Prometheus would answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Labels = Mapping[str, str]


class QueryError(Exception):
    """The query can't be read or is outside the subset; the message is for the caller."""


@dataclass(frozen=True, slots=True)
class Matcher:
    name: str
    operator: str  # = != =~ !~
    value: str

    def accepts(self, labels: Labels) -> bool:
        """Regular expressions are anchored, and an absent label is the empty string, as in Prometheus."""
        found = labels.get(self.name, "")
        if self.operator in {"=", "!="}:
            return (found == self.value) == (self.operator == "=")
        return bool(re.fullmatch(self.value, found, re.DOTALL)) == (self.operator == "=~")


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Selector:
    """`seconds` is set for a range selector."""

    matchers: tuple[Matcher, ...]
    seconds: float | None = None
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Subquery:
    inner: Node
    seconds: float
    step: float
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    name: str
    inner: Node
    parameter: Node | None = None
    grouping: Literal["by", "without"] = "by"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Matching:
    """How two vectors find each other. `many` is the side that may have several, "" for one to one."""

    on: bool = False
    labels: tuple[str, ...] = ()
    many: Literal["", "left", "right"] = ""
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node
    as_bool: bool = False
    matching: Matching = field(default_factory=Matching)


@dataclass(frozen=True, slots=True)
class Negative:
    inner: Node


Node = Number | Text | Selector | Subquery | Call | Aggregate | Binary | Negative
