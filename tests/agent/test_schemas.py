"""Whatever JSON Schema a plug-in brings, what is sent is in the part that every provider takes."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.schemas import portable
from agent.toolbox import Toolbox
from tests.support.cases import a_tool
from tests.support.providers.schemas import check_gemini_schema, check_json_schema


def one(schema: Any) -> dict[str, Any]:
    made = portable({"type": "object", "properties": {"p": schema}, "$defs": {"Kind": {"enum": ["pod", "node"]}}})
    part: dict[str, Any] = made["properties"]["p"]
    return part


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": ["string", "null"]}, {"type": "string"}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "n"},
            {"type": "integer", "description": "n"},
        ),
        ({"$ref": "#/$defs/Kind"}, {"type": "string", "enum": ["pod", "node"]}),
        ({"const": "pod"}, {"type": "string", "enum": ["pod"]}),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, {"type": "string", "enum": ["a", "b"]}),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, {"type": "number"}),
        ({"enum": ["a", ""]}, {"type": "string", "enum": ["a"]}),
        ({"allOf": [{"type": "string"}, {"description": "d"}]}, {"type": "string", "description": "d"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "integer", "default": 3}, {"type": "integer", "description": "default 3"}),
    ],
)
def test_what_providers_refuse_is_put_in_other_words(given: Any, made: Any) -> None:
    assert one(given) == made


def test_a_union_of_kinds_becomes_text_that_says_so() -> None:
    made = one({"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "integer"}]})
    assert made["type"] == "string"
    assert "object, integer" in made["description"]


SCHEMAS = st.recursive(
    st.one_of(
        st.sampled_from(
            [{}, True, {"type": "string"}, {"type": ["integer", "null"]}, {"enum": [1, None]}, {"const": "x"}]
        ),
        st.builds(
            lambda words: {"type": "string", "format": words, "default": None, "examples": [1]}, st.text(max_size=5)
        ),
    ),
    lambda inner: st.one_of(
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"type": "array", "items": part, "minItems": 1}, inner),
        st.builds(lambda part: {"type": "object", "properties": {"a": part}, "additionalProperties": False}, inner),
        st.builds(lambda part: {"allOf": [part, {"title": "t"}]}, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(SCHEMAS)
def test_any_schema_becomes_one_that_the_strictest_provider_takes(schema: Any) -> None:
    made = portable({"type": "object", "properties": {"p": schema}})
    check_gemini_schema(made)
    check_json_schema(made)


def test_a_schema_that_refers_to_itself_disables_its_tool_only(caplog: pytest.LogCaptureFixture) -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": []}
    bad = type(a_tool())(name="bad", description="", parameters=endless, run=a_tool().run)
    with caplog.at_level(logging.WARNING):
        assert Toolbox([bad, a_tool()]).names() == ["loki_query"]
    assert "refer to themselves" in caplog.text
