"""What goes over the wire between the server and the systems it plays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`path` is decoded and without the prefix of the played system; header names are lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def one(self, name: str, default: str = "") -> str:
        """The last value of a query parameter."""
        return (self.query.get(name) or [default])[-1]

    def all(self, name: str) -> list[str]:
        return self.query.get(name, [])

    @property
    def parts(self) -> list[str]:
        return [part for part in self.path.split("/") if part]

    def json(self) -> Any:
        """The body as JSON; None when it isn't."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def with_form(self) -> Request:
        """With the form fields of a POST among the query parameters, as Prometheus takes them."""
        if "x-www-form-urlencoded" not in self.headers.get("content-type", ""):
            return self
        merged = {**self.query, **parse_qs(self.body.decode("utf-8", "replace"), keep_blank_values=True)}
        return Request(method=self.method, path=self.path, query=merged, headers=self.headers, body=self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    payload: Any = None
    text: str | None = None  # instead of a payload
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        if self.status == 204:
            return b""
        return (json.dumps(self.payload) if self.text is None else self.text).encode()


class Played(Protocol):
    """A system of the world."""

    def handle(self, request: Request) -> Reply: ...


def whole(text: str, default: int) -> int:
    """A whole number not below zero, or the default where the text is none."""
    return int(text) if text.isdigit() else default
