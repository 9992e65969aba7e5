"""PromQL text to tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deploy.demo.promql.syntax import QueryError

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
_DURATION = r"(?:\d+(?:ms|[smhdwy]))+"
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<duration>{_DURATION}\b)
  | (?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>[a-zA-Z_][a-zA-Z0-9_:]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
  | (?P<symbol>==|!=|=~|!~|>=|<=|[-+*/%^(){{}}\[\],=<>:@])
    """,
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # duration number name string symbol end
    text: str
    at: int


def tokens(query: str) -> list[Token]:
    """All tokens and a final `end`. Raises `QueryError`."""
    found: list[Token] = []
    position = 0
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None:
            raise QueryError(f"1:{position + 1}: parse error: unexpected character: {query[position]!r}")
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match.group(), position))
        position = match.end()
    return [*found, Token("end", "", len(query))]


def seconds(duration: str) -> float:
    """`1h30m` as 5400.0. Raises `QueryError`."""
    if not re.fullmatch(_DURATION, duration):
        raise QueryError(f'parse error: not a valid duration string: "{duration}"')
    return sum(int(count) * _UNIT_SECONDS[unit] for count, unit in re.findall(r"(\d+)(ms|[smhdwy])", duration))


def unquoted(text: str) -> str:
    """What a string literal stands for."""
    if text[0] == "`":
        return text[1:-1]
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape.group(1), escape.group(1)), text[1:-1])
