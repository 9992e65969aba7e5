"""Reading the configuration: one YAML file and the environment, into `Settings`; nothing else reads either."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agent.errors import ConfigError
from worker.settings import Settings

PLACES = (Path("rootcaused.yaml"), Path("/etc/rootcaused/config.yaml"))
VARIABLE = "ROOTCAUSED_CONFIG"
STATE_VARIABLE = "ROOTCAUSED_STATE_DIR"
_REFERENCE = re.compile(r"\$\{(?P<kind>file:)?(?P<name>[^}:]+)(?::-(?P<default>[^}]*))?\}")

Path_ = tuple[str | int, ...]  # the keys that lead to a value


def find(given: Path | None, env: Mapping[str, str], places: tuple[Path, ...] = PLACES) -> Path | None:
    """The file to read: the one given, the one `ROOTCAUSED_CONFIG` names, else the first that is there.

    Raises `ConfigError` when a file that was named is not there.
    """
    named = given or (Path(env[VARIABLE]) if env.get(VARIABLE) else None)
    if named is not None:
        if not named.is_file():
            raise ConfigError("there is no such file", file=str(named))
        return named
    return next((place for place in places if place.is_file()), None)


def load(given: Path | None, env: Mapping[str, str]) -> Settings:
    """The settings; with no file at all, the defaults. Raises `ConfigError`: one line a problem, with its place."""
    file = find(given, env)
    if file is None:
        return Settings(**_state(env))
    document = read(file, env)
    if document.problems:
        raise document.error()
    try:
        return Settings.model_validate({**_state(env), **document.value})
    except ValidationError as error:
        document.problems += [document.problem(details) for details in error.errors()]
        raise document.error() from None  # pydantic's own text repeats the input, secrets and all


def _state(env: Mapping[str, str]) -> dict[str, str]:
    return {"state_dir": env[STATE_VARIABLE]} if env.get(STATE_VARIABLE) else {}


@dataclass
class Document:
    """A parsed file: its value with references resolved, and the line (from 1) where each value stands."""

    file: Path
    value: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path_, int] = field(default_factory=dict)
    problems: list[tuple[int, str, str]] = field(default_factory=list)  # line, key, words

    def add(self, line: int, path: Path_, words: str) -> None:
        self.problems.append((line, _dotted(path), words))

    def line(self, path: Path_) -> int:
        """The line of the value, or of the nearest thing around it that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, details: ErrorDetails) -> tuple[int, str, str]:
        path = self._in_file(tuple(details["loc"]))
        words = _words(details)
        if not path and ": " in words:  # a check over the whole file names its own key
            key, _, rest = words.partition(": ")
            return self.line(tuple(key.split("."))), key, rest
        if details["type"] == "extra_forbidden":
            words += _close(str(path[-1]), _siblings(path))
        return self.line(path), _dotted(path), words

    def error(self) -> ConfigError:
        ordered = sorted(self.problems)
        rest = [f"{self.file}:{line}: {_keyed(key, words)}" for line, key, words in ordered[1:]]
        line, key, words = ordered[0]
        return ConfigError("\n".join([words, *rest]), file=str(self.file), line=line, key=key or None)

    def _in_file(self, path: Path_) -> Path_:
        """Without what pydantic puts in between: the kind of a union's member, the names of validators."""
        kept: Path_ = ()
        for index, part in enumerate(path):
            if (*kept, part) in self.lines or index == len(path) - 1:
                kept = (*kept, part)
        return kept


def read(file: Path, env: Mapping[str, str]) -> Document:
    """Parse a file; problems are collected, not raised, but for a file that is no YAML mapping at all."""
    document = Document(file)
    try:
        text = file.read_text("utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"not YAML: {error.problem}", file=str(file), line=line) from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"can't be read: {error}", file=str(file)) from None
    if node is None:
        return document
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError("must be a mapping of keys to values", file=str(file), line=node.start_mark.line + 1)
    document.value = _value(node, (), document, env)
    return document


def _value(node: yaml.Node, path: Path_, document: Document, env: Mapping[str, str]) -> Any:
    line = node.start_mark.line + 1
    document.lines.setdefault(path, line)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document, env)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), document, env) for index, item in enumerate(node.value)]
    value = yaml.SafeLoader("").construct_object(node)
    return _resolved(value, line, path, document, env) if isinstance(value, str) else value


def _mapping(node: yaml.MappingNode, path: Path_, document: Document, env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, line = str(key_node.value), key_node.start_mark.line + 1
        if key in found:
            document.add(line, (*path, key), "this key stands here twice")
        document.lines[(*path, key)] = line
        found[key] = _value(value_node, (*path, key), document, env)
    return found


def _resolved(text: str, line: int, path: Path_, document: Document, env: Mapping[str, str]) -> str:
    """`${NAME}`, `${NAME:-default}` and `${file:/run/secrets/name}` replaced."""

    def replace(found: re.Match[str]) -> str:
        name, default = found["name"], found["default"]
        if found["kind"]:
            try:
                return Path(name).read_text("utf-8").rstrip("\n")
            except (OSError, UnicodeDecodeError) as error:
                document.add(line, path, f"the file {name} can't be read: {getattr(error, 'strerror', error)}")
                return ""
        value = env.get(name) or default
        if value is None:
            document.add(line, path, f"the environment variable {name} is not set")
        return value or ""

    return _REFERENCE.sub(replace, text)


def _words(details: ErrorDetails) -> str:
    """Pydantic's message for a person, never with the input: it may be a secret."""
    kind, message = details["type"], details["msg"]
    if kind == "extra_forbidden":
        return "there is no such key"
    if kind == "missing":
        return "is needed and not there"
    if kind.startswith("union_tag"):
        expected = details.get("ctx", {}).get("expected_tags", "")
        return f"`kind` must be one of {expected}" if expected else "needs a `kind`"
    return message.removeprefix("Value error, ")


def _siblings(path: Path_) -> list[str]:
    """The keys that could stand beside this one, by the schema."""
    schema = json_schema()
    definitions = schema.get("$defs", {})
    node: dict[str, Any] = schema
    names = set(node.get("properties", ()))
    for part in path[:-1]:
        node = _step(node, part, definitions)
        names = {name for option in _options(node, definitions) for name in option.get("properties", ())}
    return sorted(names)


def _step(node: dict[str, Any], part: str | int, definitions: dict[str, Any]) -> dict[str, Any]:
    for option in _options(node, definitions):
        following = option.get("properties", {}).get(part) or option.get("additionalProperties") or option.get("items")
        if isinstance(following, dict):
            return following
    return {}


def _options(node: dict[str, Any], definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in node:
        yield from _options(definitions[node["$ref"].rpartition("/")[2]], definitions)
    elif choices := [*node.get("oneOf", ()), *node.get("anyOf", ())]:
        for choice in choices:
            yield from _options(choice, definitions)
    else:
        yield node


def _close(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}" if names else ""


def _dotted(path: Path_) -> str:
    return ".".join(map(str, path))


def _keyed(key: str, words: str) -> str:
    return f"{key}: {words}" if key else words


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}


def redacted(settings: Settings) -> str:
    """The settings in force as YAML, each secret as `**********`."""
    return yaml.safe_dump(json.loads(settings.model_dump_json()), sort_keys=False, allow_unicode=True)
