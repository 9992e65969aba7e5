"""Reads the arguments of a tool call as models write them: numbers as text, nulls, misspelt names."""

from __future__ import annotations

import difflib
from typing import Any

from agent.errors import ToolError
from agent.tools import Arguments, JsonSchema

MAX_TEXT_CHARS = 4_000


def only_known(arguments: Arguments, schema: JsonSchema) -> Arguments:
    """The arguments that were really given. Raises `ToolError` for a name the schema lacks or one it requires."""
    names = list(schema.get("properties", {}))
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise ToolError(f"no parameter {name!r}{hint} There are: {', '.join(names) or 'none'}")
    if missing := [name for name in schema.get("required", ()) if name not in given]:
        raise ToolError(f"parameter {', '.join(missing)} is required")
    return given


def text(arguments: Arguments, name: str, default: str = "") -> str:
    """One line or more of text; numbers and booleans are taken as they are written in JSON."""
    value = arguments.get(name)
    match value:
        case None:
            return default
        case str():
            written = value.strip()
        case bool():
            written = str(value).lower()
        case int() | float():
            written = str(value)
        case _:
            raise ToolError(f"{name}: expected text, got {type(value).__name__}")
    if len(written) > MAX_TEXT_CHARS or "\x00" in written:
        raise ToolError(f"{name}: over {MAX_TEXT_CHARS} characters, or has a NUL")
    return written or default


def flag(arguments: Arguments, name: str) -> bool:
    """True or false, also as text."""
    value: Any = arguments.get(name)
    if value is None or value == "":
        return False
    if isinstance(value, bool):
        return value
    match str(value).strip().lower():
        case "true" | "yes" | "1":
            return True
        case "false" | "no" | "0":
            return False
    raise ToolError(f"{name}: expected true or false")


def whole(arguments: Arguments, name: str, *, default: int, low: int, high: int) -> int:
    """A whole number, brought into `low`..`high`."""
    value: Any = arguments.get(name)
    if value is None or value == "":
        return default
    try:
        number = int(float(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise ToolError(f"{name}: expected a whole number") from error
    return max(low, min(high, number))
