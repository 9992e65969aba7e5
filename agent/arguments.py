"""The arguments of a call: read from what the model wrote, and checked against the tool's schema.

A call never runs with arguments that were cut, guessed or left out: the model is told what is wrong and asked again.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from agent.errors import ToolError
from agent.plain import well_formed
from agent.tools import Tool, compact_json

UNREADABLE = "unreadable_arguments"  # the key under which text that is not JSON stays in the history, as legal JSON
MAX_KEPT_CHARS = 2_000
MAX_DEPTH = 32
_NOTHING = ("", "null", "none")


def legal(arguments: Any) -> str:
    """Arguments as every provider takes them back: a JSON object. What can't be read is kept under one key."""
    value = _decoded(arguments)
    if isinstance(value, dict):
        return arguments if isinstance(arguments, str) and _is_object(arguments) else compact_json(value)
    if value is None:
        return "{}"
    return compact_json({UNREADABLE: str(arguments)[:MAX_KEPT_CHARS]})


def read(arguments: str, tool: Tool) -> dict[str, Any]:
    """The arguments to run the tool with. Raises `ToolError`, written for the model, when it must not run."""
    value = _decoded(arguments)
    if not isinstance(value, dict) or UNREADABLE in value:
        raise ToolError(
            f"Not run: the arguments are not one complete JSON object{_where(well_formed(value))}. {_shape(tool)}"
        )
    return checked(value, tool)


def checked(arguments: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """Arguments that are an object already, in the types of the tool's schema. Raises `ToolError`."""
    value = well_formed(arguments)
    properties: Mapping[str, Any] = tool.parameters.get("properties") or {}
    given = {key: item for key, item in value.items() if item is not None}
    for key in given:
        if key not in properties and properties and not tool.parameters.get("additionalProperties"):
            raise ToolError(f"Not run: unknown parameter {key!r}{_closest(key, properties)}. {_shape(tool)}")
    for key in tool.parameters.get("required") or ():
        if key not in given:
            raise ToolError(f"Not run: parameter {key!r} is required. {_shape(tool)}")
    return {key: _checked(item, properties.get(key) or {}, key) for key, item in given.items()}


def _decoded(arguments: Any) -> Any:
    """A dict, None for "no arguments", or the text itself when it can't be read. Double encoding is undone once."""
    if arguments is None or isinstance(arguments, dict):
        return arguments
    text = str(arguments).strip()
    if text.lower() in _NOTHING:
        return {}
    value = strict_json(text)
    if isinstance(value, str):
        value = strict_json(value)
    return value if isinstance(value, dict) else text


def strict_json(text: str) -> Any:
    """The value of a JSON text; None when it is no JSON that any store and provider takes: not NaN, not too deep."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if _depth_within(value, MAX_DEPTH) else None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _depth_within(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_depth_within(item, levels - 1) for item in inner)


def _is_object(text: str) -> bool:
    return isinstance(strict_json(text), dict)


def _where(value: Any) -> str:
    text = value.get(UNREADABLE, "") if isinstance(value, dict) else str(value)
    try:
        json.loads(str(text))
    except json.JSONDecodeError as error:
        return f" ({error.msg} at character {error.pos})"
    except (ValueError, RecursionError):
        return ""
    return " (not an object, or nested too deep)"


def _shape(tool: Tool) -> str:
    return f"Parameters of {tool.name}: {compact_json(tool.parameters)[:1_500]}"


def _closest(key: str, properties: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(key, properties, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _checked(value: Any, schema: Mapping[str, Any], key: str) -> Any:
    """The value in the type the schema asks for. Raises `ToolError` naming the key where that would lose something."""
    kind = schema.get("type")
    value = _coerced(value, kind) if isinstance(kind, str) else _of_any_kind(value, schema)
    if isinstance(kind, str) and not _is_a(value, kind):
        raise ToolError(f"Not run: parameter {key!r} must be of type {kind}, not {compact_json(value)[:100]}.")
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        raise ToolError(
            f"Not run: parameter {key!r} must be one of {compact_json(allowed)}, not {compact_json(value)[:100]}."
        )
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_checked(item, schema["items"], f"{key}[{index}]") for index, item in enumerate(value)]
    return value


def _of_any_kind(value: Any, schema: Mapping[str, Any]) -> Any:
    """A union was sent as text (see `agent.schemas`): the value in the first of its kinds that it can be."""
    options = schema.get("type") if isinstance(schema.get("type"), list) else None
    parts = [part for name in ("anyOf", "oneOf") for part in schema.get(name) or () if isinstance(part, Mapping)]
    kinds = [kind for kind in options or [part.get("type") for part in parts] if isinstance(kind, str)]
    if any(_is_a(value, kind) for kind in kinds if kind != "null"):
        return value
    coerced = (_coerced(value, kind) for kind in kinds)
    return next((one for one, kind in zip(coerced, kinds, strict=True) if _is_a(one, kind)), value)


def _coerced(value: Any, kind: str) -> Any:
    """The same value in another notation, where nothing is lost; else the value as it was."""
    match kind:
        case "string" if isinstance(value, int | float):
            return compact_json(value)
        case "integer" if isinstance(value, float) and value.is_integer():
            return int(value)
        case "integer" | "number" | "boolean" if isinstance(value, str):
            decoded = strict_json(value.strip().lower())
            return decoded if _is_a(decoded, kind) else value
        case "array" | "object" if isinstance(value, str):
            decoded = strict_json(value)
            if _is_a(decoded, kind):
                return decoded
            return [value] if kind == "array" else value
        case "array" if isinstance(value, int | float):
            return [value]
        case _:
            return value


def _is_a(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # not NaN
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return True
