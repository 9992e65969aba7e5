"""Arguments are run as written or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.arguments import checked, legal, read
from agent.errors import ToolError
from agent.tools import Tool, ToolResult


def tool(*required: str, **properties: Any) -> Tool:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name="get_logs", description="", parameters=parameters, run=lambda *_: ToolResult.success(""))


ANY = {"type": "string"}
STRICT = tool("ns", ns=ANY, limit={"type": "integer"})
LOOSE = tool(ns=ANY)


@pytest.mark.parametrize("written", ["", None, "null", "  ", "{}", "None"])
def test_nothing_is_no_arguments_for_a_tool_that_needs_none(written: Any) -> None:
    assert read(written or "", LOOSE) == {}
    with pytest.raises(ToolError, match="'ns' is required"):
        read(written or "", STRICT)


@pytest.mark.parametrize("written", ['{"ns":"a"}', '"{\\"ns\\":\\"a\\"}"', ' {"ns": "a"}\n'])
def test_an_object_is_read_also_when_it_was_encoded_twice(written: str) -> None:
    assert read(written, STRICT) == {"ns": "a"}


@pytest.mark.parametrize(
    "written",
    [
        '{"ns": "prod"',
        "{'ns': 'prod'}",
        "[]",
        "3",
        '"text"',
        '{"ns":"a"}{"ns":"b"}',
        '"\\"{\\\\\\"ns\\\\\\":1}\\""',
        "[" * 9_999,
        '{"ns":' * 40 + "1" + "}" * 40,
        '{"ns": NaN}',
    ],
)
def test_what_is_not_one_object_is_not_run_and_the_schema_is_shown(written: str) -> None:
    for tolerant in (STRICT, LOOSE):
        with pytest.raises(ToolError, match=r"not one complete JSON object.*Parameters of get_logs"):
            read(written, tolerant)
        with pytest.raises(ToolError, match="not one complete JSON object"):
            read(legal(written), tolerant)


def test_an_error_never_repeats_what_was_written() -> None:
    with pytest.raises(ToolError) as caught:
        read('{"header": "Authorization: Bearer zz-test-9981' + "x" * 2_000_000, STRICT)
    assert "zz-test-9981" not in str(caught.value)
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize(
    ("schema", "written", "wanted"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, True, "true"),
        ({"type": "array", "items": ANY}, "a", ["a"]),
        ({"type": "array", "items": ANY}, '["a","b"]', ["a", "b"]),
        ({"type": "array", "items": ANY}, [1], ["1"]),
        ({"type": "object"}, '{"a":1}', {"a": 1}),
        ({"type": "string", "enum": ["1", "2"]}, 1, "1"),
    ],
)
def test_another_notation_of_the_same_value_is_taken(schema: Any, written: Any, wanted: Any) -> None:
    assert read(json.dumps({"x": written}), tool("x", x=schema)) == {"x": wanted}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "integer"}, "five"),
        ({"type": "integer"}, 2.5),
        ({"type": "integer"}, True),
        ({"type": "boolean"}, 1),
        ({"type": "string"}, {"a": 1}),
        ({"type": "string", "enum": ["a", "b"]}, "c"),
        ({"type": "array", "items": {"type": "integer"}}, ["x"]),
        ({"type": "object"}, "x"),
    ],
)
def test_another_value_is_refused_and_the_key_is_named(schema: Any, written: Any) -> None:
    with pytest.raises(ToolError, match="parameter 'x"):
        read(json.dumps({"x": written}), tool("x", x=schema))


def test_a_misspelt_key_is_refused_because_the_scope_would_be_another() -> None:
    with pytest.raises(ToolError, match=r"unknown parameter 'namspace' .did you mean 'namespace'"):
        read('{"namspace": "prod"}', tool(namespace=ANY))


def test_null_is_left_out() -> None:
    assert read('{"ns": "a", "limit": null}', STRICT) == {"ns": "a"}
    with pytest.raises(ToolError, match="'ns' is required"):
        read('{"ns": null}', STRICT)


@given(st.one_of(st.text(), st.none(), st.dictionaries(st.text(), st.text()), st.text().map(json.dumps)))
def test_legal_arguments_are_always_an_object_and_stay_as_they_are(written: Any) -> None:
    once = legal(written)
    assert isinstance(json.loads(once), dict)
    assert legal(once) == once


@pytest.mark.parametrize(
    ("schema", "given", "read_as"),
    [
        ({"type": ["integer", "null"]}, "3", 3),
        ({"type": ["string", "integer"]}, "3", "3"),
        ({"anyOf": [{"type": "object"}, {"type": "integer"}]}, '{"a": 1}', {"a": 1}),
        ({"oneOf": [{"type": "boolean"}, {"type": "null"}]}, "true", True),
        ({"anyOf": [{"$ref": "#/$defs/X"}]}, "x", "x"),
    ],
)
def test_a_union_that_was_sent_as_text_is_read_in_its_own_kind(schema: Any, given: Any, read_as: Any) -> None:
    assert checked({"p": given}, tool(p=schema)) == {"p": read_as}
