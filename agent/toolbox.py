"""The tools of a run under names that every provider takes, in a stable order."""

from __future__ import annotations

import difflib
import hashlib
import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agent.digest import BYTES_PER_TOKEN
from agent.finding import best, find_tools_tool
from agent.schemas import portable
from agent.tools import Tool, compact_json

MAX_NAME_CHARS = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
NO_LIMIT = 10**9
log = logging.getLogger(__name__)


def legal_name(name: str) -> str:
    """`^[a-zA-Z0-9_-]{1,64}$`, the same always; what had to be changed gets a hash suffix, so names stay apart."""
    legal = _ILLEGAL.sub("_", name)
    if legal == name and 0 < len(name) <= MAX_NAME_CHARS:
        return name
    suffix = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{legal[: MAX_NAME_CHARS - 7] or 'unnamed'}_{suffix}"


def _tokens(schemas: Iterable[dict[str, Any]]) -> int:
    return sum(len(compact_json(schema)) for schema in schemas) // BYTES_PER_TOKEN


class Toolbox:
    """Looks tools up by the name the model was given. One badly named tool costs itself only."""

    def __init__(self, tools: Iterable[Tool], schema_tokens: int = NO_LIMIT) -> None:
        self._tools: dict[str, Tool] = {}
        self._schemas: dict[str, dict[str, Any]] = {}
        self._given = tuple(tools)
        for tool in self._given:
            self._add(tool)
        self._deferred: tuple[str, ...] = ()
        self._schema_tokens = schema_tokens
        others = tuple(name for name, tool in self._tools.items() if not tool.core)
        if _tokens(self._schemas[name] for name in others) > schema_tokens:
            # Only the loop's own tools are described; the others are named, and found when needed.
            self._deferred = others
            self._add(find_tools_tool(others, self._find))
        self.schemas = [schema for name, schema in self._schemas.items() if name not in self._deferred]

    def _find(self, query: str) -> list[Tool]:
        return best(query, [self._tools[name] for name in self._deferred])

    def offered(self, queries: Iterable[str]) -> list[dict[str, Any]]:
        """What the next request offers: the described tools, then those that were found, in the order of finding."""
        found = dict.fromkeys(tool.name for query in queries for tool in self._find(query)) if self._deferred else {}
        return [*self.schemas, *(self._schemas[name] for name in found)]

    def _add(self, tool: Tool) -> None:
        name = legal_name(tool.name)
        if not tool.name or name in self._tools:
            log.warning("tool disabled: no name, or its name is taken: %r", tool.name[:80])
            return
        try:
            schema = {**tool.schema()["function"], "name": name, "parameters": portable(tool.parameters)}
        except ValueError as error:
            log.warning("tool disabled: %r: %s", tool.name[:80], error)
            return
        self._tools[name] = tool if name == tool.name else replace(tool, name=name)
        self._schemas[name] = {"type": "function", "function": schema}

    def extended(self, extra: Iterable[Tool]) -> Toolbox:
        """A toolbox with more tools, after those that are here; this one does not change."""
        return Toolbox((*self._given, *extra), self._schema_tokens)

    def within(self, schema_tokens: int) -> Toolbox:
        """The same tools, of which no more are described than fit that budget."""
        return self if schema_tokens >= self._schema_tokens else Toolbox(self._given, schema_tokens)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def names(self) -> list[str]:
        return list(self._tools)

    def schemas_of(self, *names: str) -> list[dict[str, Any]]:
        return [self._schemas[name] for name in names if name in self._schemas]

    def unknown(self, name: str) -> str:
        """What to tell a model that asked for a tool that is not there."""
        near = difflib.get_close_matches(name, self._tools, n=3, cutoff=0.4) or self.names()[:20]
        return f"Not run: there is no tool {name[:80]!r}. Closest: {', '.join(near)}."
