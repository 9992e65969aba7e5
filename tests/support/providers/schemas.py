"""What providers take of JSON Schema in a tool's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.providers.turn import refuse_unknown, refuse_unless

_KINDS = {"object", "string", "number", "integer", "boolean", "array"}


def check_json_schema(schema: Mapping[str, Any]) -> None:
    """An object schema without references to nowhere; OpenAI and Anthropic take most of the rest."""
    refuse_unless(schema.get("type") == "object", "Invalid schema for function: type must be 'object'")
    refuse_unless("$ref" not in str(schema), "Invalid schema for function: $ref")


def check_gemini_schema(schema: Mapping[str, Any], where: str = "parameters") -> None:
    """The subset of OpenAPI 3.0 that Gemini documents as `Schema`."""
    refuse_unknown(
        where,
        schema,
        "type description properties required items enum format nullable minItems maxItems minimum maximum title"
        " propertyOrdering anyOf",
    )
    if "anyOf" in schema:
        refuse_unless(schema.keys() <= {"anyOf", "description"}, f"{where}: anyOf must be the only field set")
        for index, one in enumerate(schema["anyOf"]):
            check_gemini_schema(one, f"{where}.anyOf[{index}]")
        return
    kind = str(schema.get("type", "")).lower()
    refuse_unless(isinstance(schema.get("type"), str) and kind in _KINDS, f"{where}.type: Invalid value")
    refuse_unless("enum" not in schema or kind == "string", f"{where}.enum: only allowed for STRING type")
    refuse_unless(all(schema.get("enum", ("x",))), f"{where}.enum: cannot be empty")
    if kind == "array":
        refuse_unless("items" in schema, f"{where}.items: missing field.")
        check_gemini_schema(schema["items"], f"{where}.items")
    if kind == "object":
        refuse_unless(schema.get("properties"), f"{where}.properties: should be non-empty for OBJECT type")
        for name, part in schema["properties"].items():
            check_gemini_schema(part, f"{where}.properties[{name}]")
        for name in schema.get("required", ()):
            refuse_unless(name in schema["properties"], f"{where}.required: property is not defined: {name}")
