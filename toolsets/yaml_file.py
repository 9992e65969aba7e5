"""Reads a YAML file into a pydantic model; every complaint names file, line and key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from agent.errors import ConfigError

M = TypeVar("M", bound=BaseModel)
Place = tuple[str | int, ...]


def read(path: Path, model: type[M]) -> M:
    """The file as `model`. Raises `ConfigError`."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"can't be read: {reason}", file=str(path)) from error
    return parse(text, model, file=str(path))


def parse(text: str, model: type[M], *, file: str) -> M:
    """`text` as `model`. Raises `ConfigError`."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = dict(_lines(root, (), file)) if root else {}
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(error.problem or "is not YAML", file=file, line=line) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError("is not YAML", file=file) from error
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _explained(error, lines, file) from error


def _lines(node: yaml.Node, place: Place, file: str) -> Iterator[tuple[Place, int]]:
    """Every key and list item with its line; a key given twice is refused, because YAML would drop one silently."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                raise ConfigError("is given twice", file=file, line=line, key=_key((*place, key.value)))
            seen.add(key.value)
            yield (*place, key.value), key.start_mark.line + 1
            yield from _lines(value, (*place, key.value), file)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*place, index), item.start_mark.line + 1
            yield from _lines(item, (*place, index), file)


def _explained(error: ValidationError, lines: dict[Place, int], file: str) -> ConfigError:
    """The first complaint, without the value: it may hold a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = tuple(part for part in first["loc"] if part != "[key]")
    more = error.error_count() - 1
    message = first["msg"].removeprefix("Value error, ") + (f" (and {more} more)" if more else "")
    return ConfigError(message, file=file, line=_line(lines, place), key=_key(place) or None)


def _line(lines: dict[Place, int], place: Place) -> int | None:
    """The line of the place, or of the nearest thing around it."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place)


def _key(place: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in place)
