from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from agent.errors import ConfigError
from toolsets.yaml_file import parse, read


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    parts: dict[str, Inner]
    names: list[int] = []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parts:\n  a:\n    size: many\n", "f.yaml:3: parts.a.size: Input should be a valid integer"),
        ("parts:\n  a:\n    size: 1\n    colour: red\n", "f.yaml:4: parts.a.colour: Extra inputs are not permitted"),
        ("parts:\n  a: {}\n", "f.yaml:2: parts.a.size: Field required"),
        ("parts: {}\nnames:\n  - 1\n  - x\n", "f.yaml:4: names.1: Input should be a valid integer"),
        ("parts: {}\nparts: {}\n", "f.yaml:2: parts: is given twice"),
        ("parts: [\n", "f.yaml:2: "),
        ("", "f.yaml: "),
    ],
)
def test_a_complaint_names_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(text, Outer, file="f.yaml")
    assert str(error.value).startswith(message)


def test_a_complaint_does_not_repeat_the_value() -> None:
    with pytest.raises(ConfigError) as error:
        parse("parts:\n  a:\n    size: s3cr3t-value\n", Outer, file="f.yaml")
    assert "s3cr3t-value" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.yaml: can't be read: No such file"):
        read(tmp_path / "absent.yaml", Outer)
