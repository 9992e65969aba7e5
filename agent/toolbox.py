"""The tools of a run under names that every provider takes, in a stable order."""

from __future__ import annotations

import difflib
import hashlib
import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agent.tools import Tool

MAX_NAME_CHARS = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
log = logging.getLogger(__name__)


def legal_name(name: str) -> str:
    """`^[a-zA-Z0-9_-]{1,64}$`, the same always; what had to be changed gets a hash suffix, so names stay apart."""
    legal = _ILLEGAL.sub("_", name)
    if legal == name and 0 < len(name) <= MAX_NAME_CHARS:
        return name
    suffix = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{legal[: MAX_NAME_CHARS - 7] or 'unnamed'}_{suffix}"


class Toolbox:
    """Looks tools up by the name the model was given. One badly named tool costs itself only."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            name = legal_name(tool.name)
            if not tool.name or name in self._tools:
                log.warning("tool disabled: no name, or its name is taken: %r", tool.name[:80])
                continue
            self._tools[name] = tool if name == tool.name else replace(tool, name=name)
        self.schemas: list[dict[str, Any]] = [tool.schema() for tool in self._tools.values()]

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def names(self) -> list[str]:
        return list(self._tools)

    def schemas_of(self, *names: str) -> list[dict[str, Any]]:
        return [self._tools[name].schema() for name in names if name in self._tools]

    def unknown(self, name: str) -> str:
        """What to tell a model that asked for a tool that is not there."""
        near = difflib.get_close_matches(name, self._tools, n=3, cutoff=0.4) or self.names()[:20]
        return f"Not run: there is no tool {name[:80]!r}. Closest: {', '.join(near)}."
