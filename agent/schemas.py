"""Tool parameters in the part of JSON Schema that every provider takes; plug-ins bring all the rest of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 12
_KINDS = frozenset({"object", "string", "number", "integer", "boolean", "array"})


def portable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same parameters with nothing but type, description, enum, items, properties and required.

    References are put in place, unions become the first kind that holds most, and what is lost is told in the
    description. Raises `ValueError` for what has no such form (a reference to itself, no object at the top).
    """
    kind = schema.get("type", "object")
    if kind != "object":
        raise ValueError(f"parameters must be an object, not {kind!r}")
    made = _part(schema, schema, MAX_DEPTH)
    return made if made["type"] == "object" else {"type": "object", "properties": {}}


def _part(schema: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth <= 0:
        raise ValueError("parameters refer to themselves, or are nested too deep")
    if not isinstance(schema, Mapping):  # `true` and `{}` allow anything
        return {"type": "string", "description": "any value, as JSON text"}
    if isinstance(schema.get("$ref"), str):
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        return _part({**_referred(schema["$ref"], root), **rest}, root, depth - 1)
    schema = _merged(schema)
    options = next((schema[name] for name in ("anyOf", "oneOf") if isinstance(schema.get(name), list)), None)
    if options is not None:
        return _union(schema, options, root, depth)
    kind = _kind(schema)
    if kind == "object" and not schema.get("properties"):  # Gemini refuses an object that may hold anything
        words = f"{_description(schema, kind)} (an object, as JSON text)"
        return {"type": "string", "description": words.strip()}
    description = _description(schema, kind)
    made = {"type": kind, **({"description": description} if description else {})}
    return made | _inside(schema, kind, root, depth)


def _inside(schema: Mapping[str, Any], kind: str, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """What belongs to a kind: an object's properties, a list's items, a text's choices."""
    match kind:
        case "object":
            properties: Mapping[str, Any] = schema.get("properties") or {}
            required = [name for name in schema.get("required") or () if name in properties]
            inner = {str(name): _part(part, root, depth - 1) for name, part in properties.items()}
            return {"properties": inner, **({"required": required} if required else {})}
        case "array":
            items = schema.get("items", schema.get("prefixItems") or {})
            return {"items": _part((items or [{}])[0] if isinstance(items, list) else items, root, depth - 1)}
        case "string":
            allowed = [schema["const"]] if "const" in schema else schema.get("enum") or ()
            named = [value for value in allowed if value not in (None, "")]
            return {"enum": named} if named and all(isinstance(value, str) for value in named) else {}
        case _:
            return {}


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    place: Any = root
    for name in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        place = place.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    if not isinstance(place, Mapping):
        raise ValueError(f"nothing stands at {reference!r}")
    return place


def _merged(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`allOf` as one schema."""
    merged = {name: value for name, value in schema.items() if name != "allOf"}
    for part in schema.get("allOf") or ():
        for name, value in part.items() if isinstance(part, Mapping) else ():
            old = merged.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                merged[name] = {**old, **value}
            elif isinstance(old, list) and isinstance(value, list):
                merged[name] = [*old, *value]
            else:
                merged[name] = value
    return merged


def _union(schema: Mapping[str, Any], options: list[Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """One kind for all: the only one there is besides null, an enum of all texts, else text."""
    parts = [_part(one, root, depth - 1) for one in options if not _is_null(one)]
    if not parts:
        raise ValueError("a parameter that can only be null")
    kinds = list(dict.fromkeys(part["type"] for part in parts))
    told = {"description": schema["description"]} if isinstance(schema.get("description"), str) else {}
    if len(parts) == 1:
        return {**parts[0], **told}
    if kinds == ["string"] and all("enum" in part for part in parts):
        return {"type": "string", "enum": [value for part in parts for value in part["enum"]], **told}
    if len(kinds) == 1 and kinds[0] != "object":
        return {name: value for name, value in {**parts[0], **told}.items() if name != "enum"}
    if set(kinds) == {"integer", "number"}:
        return {"type": "number", **told}
    words = f"{told.get('description', '')} (one of: {', '.join(kinds)}; as JSON text where it is not text)"
    return {"type": "string", "description": words.strip()}


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and (schema.get("type") == "null" or schema.get("enum") == [None])


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    if kind in _KINDS:
        return str(kind)
    if "properties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    values = [value for value in (schema.get("enum") or [schema.get("const")]) if value is not None]
    if values and all(isinstance(value, bool) for value in values):
        return "boolean"
    if values and all(isinstance(value, int | float) for value in values):
        return "number"
    return "string"


def _description(schema: Mapping[str, Any], kind: str) -> str:
    """The words of the schema, with what of it has no place elsewhere."""
    told = [str(schema["description"])] if schema.get("description") else []
    if "default" in schema:
        told.append(f"default {schema['default']!r}")
    if kind != "string" and schema.get("enum"):
        told.append(f"one of {schema['enum']!r}")
    told += [f"{name} {schema[name]!r}" for name in ("pattern", "format", "minimum", "maximum") if name in schema]
    return "; ".join(told)
