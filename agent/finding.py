"""Tools too many to describe all: the model sees their names, and asks with `find_tools` for those it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agent.errors import ToolError
from agent.plain import shorten
from agent.tools import Arguments, Tool, ToolContext, ToolResult

FIND_TOOLS = "find_tools"
MAX_FOUND = 8
MAX_NAMES_CHARS = 3_000
MIN_WORD_CHARS = 3
_WORD = re.compile(r"[a-z0-9]+")


def find_tools_tool(names: Sequence[str], find: Callable[[str], Sequence[Tool]]) -> Tool:
    """`find` gives the tools for a query; the loop offers them from the next turn on."""

    def run(arguments: Arguments, _context: ToolContext) -> ToolResult:
        query = str(arguments["query"])
        found = find(query)
        if not found:
            raise ToolError(f"No tool fits {query!r}. There are: {listed(names)}")
        told = "\n".join(f"{tool.name}: {shorten(tool.description, 300)}" for tool in found)
        return ToolResult.success(f"Ready to be called now:\n{told}")

    return Tool(
        name=FIND_TOOLS,
        description=f"Load tools before you call them. All there are: {listed(names)}",
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "names, or words for what you need, e.g. pod logs"}
            },
            "required": ["query"],
        },
        run=run,
        core=True,
    )


def listed(names: Sequence[str]) -> str:
    """The names; of very many the first word with how many begin with it."""
    text = ", ".join(names)
    if len(text) <= MAX_NAMES_CHARS:
        return text
    groups: dict[str, int] = {}
    for name in names:
        prefix = name.partition("_")[0]
        groups[prefix] = groups.get(prefix, 0) + 1
    return shorten(", ".join(f"{prefix}_* ({count})" for prefix, count in groups.items()), MAX_NAMES_CHARS)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def best(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that are named, else those with most of the words in name (twice) and description."""
    named = {word.strip(" ,;'\"`") for word in query.replace(",", " ").split()}
    known = [tool for tool in tools if tool.name in named]
    if known:
        return known[:MAX_FOUND]
    words = {word for word in _WORD.findall(query.lower()) if len(word) >= MIN_WORD_CHARS}

    def score(tool: Tool) -> int:
        return 2 * len(words & _words(tool.name)) + len(words & _words(tool.description))

    ranked = sorted(((score(tool), place, tool) for place, tool in enumerate(tools)), key=lambda one: (-one[0], one[1]))
    return [tool for points, _, tool in ranked if points > 0][:MAX_FOUND]
