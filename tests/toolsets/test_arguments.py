from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ToolError
from toolsets.arguments import flag, only_known, text, whole

SCHEMA = {"type": "object", "properties": {"name": {}, "namespace": {}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"name": "x", "name_space": "y"},
            "no parameter 'name_space'; did you mean namespace\\? There are: name, namespace",
        ),
        ({"namespace": "y"}, "parameter name is required"),
        ({"name": None}, "parameter name is required"),
    ],
)
def test_a_call_that_does_not_fit_the_schema_says_how(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        only_known(arguments, SCHEMA)


def test_null_is_as_good_as_left_out() -> None:
    assert only_known({"name": "x", "namespace": None}, SCHEMA) == {"name": "x"}


@pytest.mark.parametrize(
    ("value", "expected"), [(" a ", "a"), (5, "5"), (True, "true"), (None, "default"), ("", "default"), (1.5, "1.5")]
)
def test_text_is_read_as_models_write_it(value: Any, expected: str) -> None:
    assert text({"x": value}, "x", "default") == expected


@pytest.mark.parametrize("value", [["a"], {"a": 1}, "a\x00b", "a" * 5_000])
def test_what_is_not_text_is_refused(value: Any) -> None:
    with pytest.raises(ToolError, match="x: "):
        text({"x": value}, "x")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("true", True), ("False", False), (0, False), (None, False), ("", False), (1, True)],
)
def test_flags(value: Any, expected: bool) -> None:
    assert flag({"x": value}, "x") is expected


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
def test_a_number_is_in_its_bounds_or_refused(value: Any) -> None:
    try:
        number = whole({"x": value}, "x", default=5, low=1, high=100)
    except ToolError:
        assert not isinstance(value, int)
    else:
        assert 1 <= number <= 100
