"""The `read_result` tool: lines, matches, JSON paths, slices and counts of a result that was too long to be shown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from agent.errors import ToolError
from agent.spill import Results
from agent.tools import Arguments, Tool, ToolContext, ToolResult, compact_json

READ_RESULT = "read_result"
MAX_LINES = 200
MAX_LINE_CHARS = 2_000
MAX_CHARS = 6_000
MAX_CONTEXT = 20
_STEP = re.compile(r"\.?\[(?P<index>-?\d+)?\]|\.?\[\"(?P<quoted>[^\"]*)\"\]|\.(?P<name>[^.\[\]\"\s|]+)")


def read_result_tool(results: Results) -> Tool:
    def run(arguments: Arguments, _context: ToolContext) -> ToolResult:
        ref = str(arguments["ref"]).strip().upper()
        text = results.get(ref)
        if text is None:
            raise ToolError(f"There is no stored result {ref!r}; refs look like T3.")
        return _read(text, ref, arguments)

    return Tool(
        name=READ_RESULT,
        description=(
            "Read an earlier result further, at no cost to the data source: matching lines, a range, a JSON path."
        ),
        parameters={
            "type": "object",
            "properties": {
                "ref": {"type": "string", "description": "of the call, e.g. T3"},
                "grep": {"type": "string", "description": "plain text, case ignored; a|b for either"},
                "context": {"type": "integer", "description": "lines around each match"},
                "path": {"type": "string", "description": "of JSON, like jq: .items[].status.phase"},
                "show": {"type": "string", "enum": ["lines", "count", "unique"]},
                "start": {"type": "integer", "description": "first line, from 1; negative from the end"},
                "lines": {"type": "integer", "description": f"default 50, at most {MAX_LINES}"},
                "offset": {"type": "integer", "description": "first character, from 0, instead of lines"},
            },
            "required": ["ref"],
        },
        run=run,
        core=True,
    )


def _read(text: str, ref: str, arguments: Arguments) -> ToolResult:
    asked = [ref]
    if path := str(arguments.get("path") or "").strip():
        asked.append(path)
        text = "\n".join(_written(value) for value in _at(_json(text, ref), path))
    if (offset := arguments.get("offset")) is not None:
        return _characters(text, int(offset), " ".join(asked))
    lines = text.splitlines()
    numbers = range(len(lines))
    context = min(MAX_CONTEXT, max(0, arguments.get("context") or 0))
    show = arguments.get("show") or "lines"
    if grep := str(arguments.get("grep") or ""):
        asked.append(f"grep {grep!r}")
        numbers = _matching(lines, grep, context if show == "lines" else 0)  # type: ignore[assignment]
        if not numbers:
            return ToolResult.no_data(f"no line of {len(lines)} matches.", query=" ".join(asked))
    if show != "lines":
        return _counted([lines[number] for number in numbers], show, " ".join([*asked, show]))
    start = int(arguments.get("start") or 1)
    asked += [f"from {start}"] if "start" in arguments or not grep else []
    first = max(0, start - 1 if start > 0 else len(numbers) + start)
    if first >= len(numbers):
        return ToolResult.no_data(f"there are {len(numbers)} lines.", query=" ".join(asked))
    wanted = min(MAX_LINES, max(1, arguments.get("lines") or 50))
    shown = [f"{number + 1}: {lines[number][:MAX_LINE_CHARS]}" for number in numbers[first : first + wanted]]
    rest = len(numbers) - first - wanted
    more = f"\n[{rest} more of {len(numbers)} lines]" if rest > 0 else ""
    return ToolResult.success("\n".join(shown) + more, query=" ".join(asked))


def _matching(lines: list[str], grep: str, context: int) -> list[int]:
    """Line numbers. Plain text, not a pattern: a hostile pattern could hold the whole process."""
    words = [word.lower() for word in grep.split("|") if word.strip()]
    hits = [number for number, line in enumerate(lines) if any(word in line.lower() for word in words)]
    around = {near for hit in hits for near in range(hit - context, hit + context + 1) if 0 <= near < len(lines)}
    return sorted(around)


def _counted(lines: list[str], show: str, asked: str) -> ToolResult:
    counts = Counter(line.strip()[:MAX_LINE_CHARS] for line in lines if line.strip())
    if show == "count":
        return ToolResult.success(f"{len(lines)} lines, {len(counts)} distinct", query=asked)
    shown = [f"{count} x {line}" for line, count in counts.most_common(MAX_LINES)]
    more = f"\n[{len(counts) - MAX_LINES} more distinct lines]" if len(counts) > MAX_LINES else ""
    return ToolResult.success("\n".join(shown) + more, query=asked)


def _characters(text: str, offset: int, asked: str) -> ToolResult:
    first = offset if offset >= 0 else max(0, len(text) + offset)
    asked = f"{asked} from character {first}"
    if first >= len(text):
        return ToolResult.no_data(f"there are {len(text)} characters.", query=asked)
    rest = max(0, len(text) - first - MAX_CHARS)
    more = f"\n[{rest} more of {len(text)} characters]" if rest else ""
    return ToolResult.success(text[first : first + MAX_CHARS] + more, query=asked)


def _json(text: str, ref: str) -> Any:
    """The value of the text, or of each of its lines. Raises `ToolError` for text that is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    values: list[Any] = []
    for line in text.splitlines():
        try:
            values += [json.loads(line)] if line.lstrip().startswith(("{", "[")) else []
        except (ValueError, RecursionError):
            continue
    if not values:
        raise ToolError(f"{ref} is not JSON, so it has no paths. Use grep or start.")
    return values


def _at(value: Any, path: str) -> Iterator[Any]:
    """The values at a path of names, indexes and `[]`. Raises `ToolError` where it can't be read or leads nowhere."""
    steps: list[str | int | None] = []
    place = 0
    while place < len(path) and path[place:] != ".":
        step = _STEP.match(path, place) or (_STEP.match(f".{path}") if place == 0 else None)
        if step is None:
            raise ToolError(f"Can't read the path at {path[place:]!r}. Write it like .items[0].name or .items[].name.")
        name = step["name"] if step["name"] is not None else step["quoted"]
        steps.append(name if name is not None else None if step["index"] is None else int(step["index"]))
        place = step.end() - (step.string != path)
    yield from _walk(value, steps)


def _walk(value: Any, steps: list[str | int | None]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    match step:
        case None if isinstance(value, list | dict):
            for item in value.values() if isinstance(value, dict) else value:
                yield from _walk(item, rest)
        case str() if isinstance(value, dict) and step in value:
            yield from _walk(value[step], rest)
        case int() if isinstance(value, list) and -len(value) <= step < len(value):
            yield from _walk(value[step], rest)
        case str() if isinstance(value, dict):
            raise ToolError(f"There is no {step!r}; there are: {', '.join(map(str, list(value)[:30]))}.")
        case _:
            kind = f"a list of {len(value)}" if isinstance(value, list) else f"{type(value).__name__}"
            raise ToolError(f"{'[]' if step is None else repr(step)} does not lead on from {kind}.")


def _written(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)
