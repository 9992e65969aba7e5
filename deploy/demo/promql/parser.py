"""PromQL tokens to a syntax tree, by recursive descent."""

from __future__ import annotations

import re
from typing import Literal

from deploy.demo.promql.lexer import Token, seconds, tokens, unquoted
from deploy.demo.promql.syntax import (
    Aggregate,
    Binary,
    Call,
    Matcher,
    Matching,
    Negative,
    Node,
    Number,
    QueryError,
    Selector,
    Subquery,
    Text,
)

AGGREGATIONS = frozenset({"sum", "avg", "min", "max", "count", "group", "stddev", "topk", "bottomk", "quantile"})
_WITH_PARAMETER = frozenset({"topk", "bottomk", "quantile"})
_PRECEDENCE = (("or",), ("and", "unless"), ("==", "!=", ">", "<", ">=", "<="), ("+", "-"), ("*", "/", "%"), ("^",))
_COMPARISONS = frozenset(_PRECEDENCE[2])
_DEFAULT_STEP_SECONDS = 60.0


def parse(query: str) -> Node:
    """The tree of one expression. Raises `QueryError`."""
    if not query.strip():
        raise QueryError("unknown position: parse error: no expression found in input")
    parser = _Parser(tokens(query))
    node = parser.binary(0)
    parser.expect("end")
    return node


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._next = 0

    @property
    def ahead(self) -> Token:
        return self._tokens[self._next]

    def take(self) -> Token:
        token = self.ahead
        self._next += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Step over the next token when it is one of these symbols or words."""
        if self.ahead.kind in {"symbol", "name"} and self.ahead.text in texts:
            self._next += 1
            return True
        return False

    def expect(self, wanted: str) -> Token:
        """The next token, which must be of this kind or text."""
        token = self.ahead
        if token.kind != wanted and not (token.kind == "symbol" and token.text == wanted):
            raise self.unexpected(token, wanted)
        return token if token.kind == "end" else self.take()

    def unexpected(self, token: Token, wanted: str) -> QueryError:
        what = "end of input" if token.kind == "end" else f'"{token.text}"'
        return QueryError(f"1:{token.at + 1}: parse error: unexpected {what}, expected {wanted}")

    def binary(self, level: int) -> Node:
        """Operators of this level and tighter; `^` alone groups to the right."""
        if level == len(_PRECEDENCE):
            return self.unary()
        left = self.binary(level + 1)
        while self.ahead.kind in {"symbol", "name"} and self.ahead.text in _PRECEDENCE[level]:
            operator = self.take().text
            as_bool = operator in _COMPARISONS and self.accept("bool")
            matching = self.matching()
            right = self.binary(level if operator == "^" else level + 1)
            left = Binary(operator, left, right, as_bool, matching)
        return left

    def matching(self) -> Matching:
        if self.ahead.text not in {"on", "ignoring"}:
            return Matching()
        on = self.take().text == "on"
        labels = self.names()
        sides: dict[str, Literal["left", "right"]] = {"group_left": "left", "group_right": "right"}
        if self.ahead.text not in sides:
            return Matching(on, labels)
        many = sides[self.take().text]
        return Matching(on, labels, many, self.names() if self.ahead.text == "(" else ())

    def names(self) -> tuple[str, ...]:
        self.expect("(")
        found: list[str] = []
        while not self.accept(")"):
            found.append(self.expect("name").text)
            if not self.accept(","):
                self.expect(")")
                break
        return tuple(found)

    def unary(self) -> Node:
        if self.accept("-"):
            return Negative(self.binary(5))  # binds looser than ^, tighter than *
        self.accept("+")
        return self.ranged(self.primary())

    def ranged(self, node: Node) -> Node:
        """What may follow an operand: `[5m]`, `[1h:5m]`, `offset 5m`."""
        if self.accept("["):
            span = seconds(self.expect("duration").text)
            if self.accept(":"):
                step = seconds(self.take().text) if self.ahead.kind == "duration" else _DEFAULT_STEP_SECONDS
                node = Subquery(node, span, step)
            elif isinstance(node, Selector) and node.seconds is None:
                node = Selector(node.matchers, span)
            else:
                raise QueryError("parse error: ranges only allowed for vector selectors")
            self.expect("]")
        if self.accept("offset"):
            back = -1.0 if self.accept("-") else 1.0
            return self.shifted(node, back * seconds(self.expect("duration").text))
        if self.ahead.text == "@":
            raise QueryError("the @ modifier is not supported here; use a time parameter")
        return node

    def shifted(self, node: Node, offset: float) -> Node:
        match node:
            case Selector(matchers, span, _):
                return Selector(matchers, span, offset)
            case Subquery(inner, span, step, _):
                return Subquery(inner, span, step, offset)
            case _:
                raise QueryError("parse error: offset modifier must be preceded by a selector or subquery")

    def primary(self) -> Node:
        token = self.ahead
        if token.kind == "number":
            self.take()
            return Number(float(int(token.text, 16)) if token.text.startswith("0x") else float(token.text))
        if token.kind == "string":
            self.take()
            return Text(unquoted(token.text))
        if self.accept("("):
            inner = self.binary(0)
            self.expect(")")
            return inner
        if token.text == "{":
            return self.selector("")
        if token.kind == "name":
            return self.named()
        raise self.unexpected(token, "an expression")

    def named(self) -> Node:
        name = self.take().text
        if name in AGGREGATIONS and self.ahead.text in {"(", "by", "without"}:
            return self.aggregate(name)
        if self.ahead.text == "(":
            return Call(name, self.arguments())
        if name.lower() in {"inf", "nan"}:
            return Number(float(name))
        return self.selector(name)

    def aggregate(self, name: str) -> Node:
        grouping = self.grouping()
        arguments = self.arguments()
        grouping = grouping or self.grouping()
        wanted = 2 if name in _WITH_PARAMETER else 1
        if len(arguments) != wanted:
            raise QueryError(f'parse error: "{name}" takes {wanted} argument(s), got {len(arguments)}')
        side, labels = grouping or ("by", ())
        return Aggregate(name, arguments[-1], arguments[0] if wanted == 2 else None, side, labels)

    def grouping(self) -> tuple[Literal["by", "without"], tuple[str, ...]] | None:
        if self.accept("by"):
            return "by", self.names()
        return ("without", self.names()) if self.accept("without") else None

    def arguments(self) -> tuple[Node, ...]:
        self.expect("(")
        found: list[Node] = []
        while not self.accept(")"):
            found.append(self.binary(0))
            if not self.accept(","):
                self.expect(")")
                break
        return tuple(found)

    def selector(self, name: str) -> Node:
        matchers = [Matcher("__name__", "=", name)] if name else []
        if self.accept("{"):
            while not self.accept("}"):
                matchers.append(self.matcher())
                if not self.accept(","):
                    self.expect("}")
                    break
        if not any(not matcher.accepts({}) for matcher in matchers):
            raise QueryError("1:1: parse error: vector selector must contain at least one non-empty matcher")
        return Selector(tuple(matchers))

    def matcher(self) -> Matcher:
        name = self.expect("name").text
        operator = self.take().text
        if operator not in {"=", "!=", "=~", "!~"}:
            raise QueryError(f'parse error: unexpected "{operator}" in label matching, expected one of = != =~ !~')
        value = unquoted(self.expect("string").text)
        if operator in {"=~", "!~"}:
            try:
                re.compile(value)
            except re.error as error:
                raise QueryError(f"parse error: error parsing regexp: {error}") from error
        return Matcher(name, operator, value)
