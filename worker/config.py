"""Reading the configuration: one YAML file and the environment, into `Settings`; nothing else reads either."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from agent.errors import ConfigError
from agent.redaction import Redactor
from worker.settings import Settings, secrets_of

PLACES = (Path("rootcaused.yaml"), Path("/etc/rootcaused/config.yaml"))
VARIABLE = "ROOTCAUSED_CONFIG"
STATE_VARIABLE = "ROOTCAUSED_STATE_DIR"
_REFERENCE = re.compile(r"\$\{(?P<kind>file:)?(?P<name>[^}:]+)(?::-(?P<default>[^}]*))?\}")
MIN_HIDDEN_CHARS = 4  # a shorter value occurs in ordinary words
_HOST_PORT = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[^:@\[\]]+)(?::\d{1,5})?")
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = (_TAG + "str", _TAG + "timestamp")  # a date is text to us
_DATA_TAGS = tuple(_TAG + kind for kind in ("int", "float", "bool", "null"))

Path_ = tuple[str | int, ...]  # the keys that lead to a value


def environment() -> Mapping[str, str]:
    """The process's; nothing else reads it."""
    return os.environ


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
    try:
        settings = Settings.model_validate({**_state(env), **document.value})
    except ValidationError as error:  # pydantic's own text repeats the input, secrets and all
        document.take(document.problem(details) for details in error.errors())
        raise document.error() from None
    document.take((document.line(path), dotted(path), "a secret can't be empty") for path in _empty(settings, ()))
    if settings.redis.url and (words := _address_fault(settings.redis.url.get_secret_value())):
        document.take([(document.line(("redis", "url")), "redis.url", words)])
    if document.problems:
        raise document.error()
    # Every process of one daemon must mean the same directory, and an error should name it in full.
    return settings.model_copy(update={"state_dir": settings.state_dir.expanduser().absolute()})


def _state(env: Mapping[str, str]) -> dict[str, str]:
    return {"state_dir": env[STATE_VARIABLE]} if env.get(STATE_VARIABLE) else {}


@dataclass
class Document:
    """A parsed file: its value with references resolved, and the line (from 1) where each value stands."""

    file: Path
    value: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path_, int] = field(default_factory=dict)
    problems: list[tuple[int, str, str]] = field(default_factory=list)  # line, key, words
    filled: dict[str, str] = field(default_factory=dict)  # what came from outside the file, and by which reference
    around: list[int] = field(default_factory=list)  # ids of the nodes being read

    def add(self, line: int, path: Path_, words: str) -> None:
        self.problems.append((line, dotted(path), words))

    def take(self, found: Iterable[tuple[int, str, str]]) -> None:
        """Add what is wrong with keys of which nothing is known to be wrong yet: a missing variable is told once."""
        known = {key for _, key, _ in self.problems}
        self.problems += [(line, key, self._hidden(words)) for line, key, words in found if key not in known]

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
        elif details["type"].startswith("union_tag"):
            given, path = self._at((*path, "kind")), (*path, "kind")
            kinds = _kinds(path)
            words = f"there is no kind {str(given)[:40]!r}" if given is not None else "is needed and not there"
            words += _close(str(given), kinds)
        elif details["type"] == "string_type" and isinstance(self._at(path), int | float):  # bool is an int
            words = "must be a string: put it in quotes"
        return self.line(path), dotted(path), words

    def _at(self, path: Path_) -> Any:
        value: Any = self.value
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def _hidden(self, words: str) -> str:
        """A value from a variable or a file is shown as the reference it came by."""
        for value, reference in sorted(self.filled.items(), key=lambda pair: -len(pair[0])):
            if len(value) >= MIN_HIDDEN_CHARS:
                words = words.replace(value, reference).replace(repr(value)[1:-1], reference)
        return words

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
        text = file.read_bytes().decode("utf-8-sig")
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return document
        value = _value(node, (), document, env, loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = mark.line + 1 if mark else 1
        raise ConfigError(f"not YAML: {error.problem or error.context}", file=str(file), line=where) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not YAML: {str(error).splitlines()[0]}", file=str(file), line=1) from None
    except UnicodeDecodeError as error:
        where = error.object[: error.start].count(b"\n") + 1
        raise ConfigError("not UTF-8 text", file=str(file), line=where) from None
    except OSError as error:
        raise ConfigError(f"can't be read: {error.strerror}", file=str(file)) from None
    except RecursionError:
        raise ConfigError("nested too deeply", file=str(file), line=1) from None
    if value is not None and not isinstance(value, dict):
        raise ConfigError("must be a mapping of keys to values", file=str(file), line=node.start_mark.line + 1)
    document.value = value or {}
    return document


def _value(node: yaml.Node, path: Path_, document: Document, env: Mapping[str, str], loader: yaml.SafeLoader) -> Any:
    line = node.start_mark.line + 1
    document.lines.setdefault(path, line)
    if id(node) in document.around:
        return document.add(line, path, "an anchor can't contain itself")
    document.around.append(id(node))
    try:
        if node.tag not in (*_TEXT_TAGS, *_DATA_TAGS, _TAG + "map", _TAG + "seq"):
            return document.add(line, path, f"the tag {node.tag.replace(_TAG, '!!')} means nothing here")
        if isinstance(node, yaml.MappingNode):
            return _mapping(node, path, document, env, loader)
        if isinstance(node, yaml.SequenceNode):
            return [_value(item, (*path, index), document, env, loader) for index, item in enumerate(node.value)]
        if node.tag in _TEXT_TAGS:
            return _resolved(str(node.value), line, path, document, env)
        return loader.construct_object(node)
    except ValueError as error:  # such as an !!int that is none
        return document.add(line, path, f"can't be read: {error}")
    finally:
        document.around.pop()


def _mapping(
    node: yaml.MappingNode, path: Path_, document: Document, env: Mapping[str, str], loader: yaml.SafeLoader
) -> dict[str, Any]:
    given: set[str] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            document.add(key_node.start_mark.line + 1, path, "a key must be plain text")
        elif key_node.value in given:
            document.add(key_node.start_mark.line + 1, (*path, key_node.value), "this key stands here twice")
        else:
            given.add(key_node.value)
    loader.flatten_mapping(node)  # what `<<` brings in comes first, so that the mapping's own keys win
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if isinstance(key_node, yaml.ScalarNode):
            key = str(key_node.value)
            document.lines[(*path, key)] = key_node.start_mark.line + 1
            found[key] = _value(value_node, (*path, key), document, env, loader)
    return found


def _resolved(text: str, line: int, path: Path_, document: Document, env: Mapping[str, str]) -> str:
    """`${NAME}`, `${NAME:-default}` and `${file:/run/secrets/name}` replaced."""

    def replace(found: re.Match[str]) -> str:
        name, default = found["name"], found["default"]
        value = _from_file(Path(name), line, path, document) if found["kind"] else env.get(name) or default
        if value is None and not found["kind"]:
            how = "empty" if name in env else "not set"  # an empty secret is one that everybody knows
            document.add(line, path, f"the environment variable {name} is {how}")
        if value:
            document.filled[value] = found.group()
        return value or ""

    return _REFERENCE.sub(replace, text)


def _from_file(file: Path, line: int, path: Path_, document: Document) -> str | None:
    try:
        text = file.read_text("utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        document.add(line, path, f"the file {file} can't be read: {why}")
        return None
    if not text:
        document.add(line, path, f"the file {file} is empty")
    return text or None


def _empty(value: object, path: Path_) -> Iterator[Path_]:
    """Where a secret is empty: a webhook signed with it could be signed by anybody."""
    if isinstance(value, SecretStr):
        if not value.get_secret_value():
            yield path
    elif isinstance(value, BaseModel | dict):
        for name, item in dict(value).items():
            yield from _empty(item, (*path, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _empty(item, (*path, index))


def _address_fault(url: str) -> str:
    """What is wrong with an address of Redis, without showing it: it holds the password. "" when nothing is."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "is no address"
    hosts = parts.netloc.rpartition("@")[2]
    match parts.scheme:
        case "redis" | "rediss":
            fits = bool(_HOST_PORT.fullmatch(hosts))
        case "sentinel":
            fits = all(re.fullmatch(r"[^:@,]+:\d{1,5}", host) for host in hosts.split(","))
        case "unix" | "redis+socket":
            return "" if parts.path else "needs the path of a socket"
        case _:
            return "must start with redis://, rediss://, unix://, redis+socket:// or sentinel://"
    if not fits:
        return "must have a host, and a port that is a number (sentinel: host:port,host:port)"
    return "" if re.fullmatch(r"/?\d*", parts.path) else "must end with the number of a database, such as /0"


def _words(details: ErrorDetails) -> str:
    """Pydantic's message for a person, never with the input: it may be a secret."""
    kind, message = details["type"], details["msg"]
    if kind == "extra_forbidden":
        return "there is no such key"
    if kind == "missing":
        return "is needed and not there"
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


def _kinds(path: Path_) -> list[str]:
    """The kinds there are at this place, by the schema."""
    schema = json_schema()
    node: dict[str, Any] = schema
    for part in path[:-1]:
        node = _step(node, part, schema.get("$defs", {}))
    return sorted(node.get("discriminator", {}).get("mapping", {}))


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
    there_are = f"; there are {', '.join(names)}" if names else ""
    return f"; did you mean {near[0]!r}?{there_are}" if near else there_are


def dotted(path: Path_) -> str:
    return ".".join(map(str, path))


def _keyed(key: str, words: str) -> str:
    return f"{key}: {words}" if key else words


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, for editors. A reference may stand where a number, a choice or the like is due."""
    made: dict[str, Any] = _with_references(Settings.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _with_references(part: Any) -> Any:
    if isinstance(part, list):
        return [_with_references(item) for item in part]
    if not isinstance(part, dict):
        return part
    made = {name: _with_references(item) for name, item in part.items()}
    if made.get("type") in ("integer", "number", "boolean") or "enum" in made or isinstance(made.get("pattern"), str):
        outside = {name: made.pop(name) for name in ("title", "description", "default") if name in made}
        return {**outside, "anyOf": [made, {"type": "string", "pattern": r"\$\{.+\}"}]}
    return made


def redacted(settings: Settings) -> str:
    """The settings in force as YAML, each secret as `**********`, also one inside an address."""
    redactor = Redactor(secrets_of(settings))
    dump = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return redactor.redact(dump)
