"""Manifests in YAML: what a program is configured with, what a claim asks for, where a gateway sends requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from agent.rules.observation import Fact, Observation, Thing
from agent.rules.transcript import Reading

MAX_CHARS = 100_000
MAX_SETTINGS = 200
MAX_ROUTES = 300

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod"})
# `${NAME:default}` as Spring and many others write it: the default is what holds where nothing else is set.
_DEFAULTED = re.compile(r"\$\{[A-Za-z0-9_.]{1,100}:-?([^{}]{0,200})\}")
_ROUTE = re.compile(
    r"- id: *(?P<id>[A-Za-z0-9_-]{1,100})\s+uri: *(?P<uri>\S{1,300})\s+predicates:\s+- Path=(?P<path>\S{1,300})"
)
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]{0,20}://)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,252})(?::\d{1,5})?(?:/.*)?")


def read_manifest(reading: Reading) -> Iterator[Observation]:
    """Document by document; one that is no YAML, or was cut, is passed over."""
    for text in re.split(r"(?m)^---\s*$", reading.body[:MAX_CHARS]):
        try:
            document = yaml.load(text, Loader=_LOADER)  # noqa: S506  # a safe loader, by another name
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            yield from _document(reading, document, text)


def _document(reading: Reading, document: Mapping[str, Any], text: str) -> Iterator[Observation]:
    kind, name = _text(document.get("kind")), _text(_at(document, "metadata", "name"))
    about = Thing(kind.lower(), name)
    if kind in _WORKLOADS:
        spec = document.get("spec") if kind == "Pod" else _at(document, "spec", "template", "spec")
        yield from _containers(reading, about, spec if isinstance(spec, dict) else {}, text)
    elif kind == "PersistentVolumeClaim":
        yield from _claim(reading, about, document, text)
    elif kind in ("ConfigMap", "Secret"):
        values = {**_mapping(document.get("data")), **_mapping(document.get("stringData"))}
        yield from _settings(reading, about, {} if kind == "Secret" and "data" in document else values, text)
        if kind == "ConfigMap":
            yield from _routes(reading, about, text)


def _containers(reading: Reading, about: Thing, spec: Mapping[str, Any], text: str) -> Iterator[Observation]:
    for container in _list(spec.get("containers")):
        env = {_text(one.get("name")): one.get("value") for one in _list(container.get("env")) if "value" in one}
        yield from _settings(reading, about, env, text)
        ports = [port for one in _list(container.get("ports")) if (port := _text(one.get("containerPort")))]
        if ports:
            quoted = _lines(text, f"containerPort: {ports[0]}")
            values = {"ports": " ".join(ports), "container": _text(container.get("name"))}
            yield Observation(fact=Fact.PORTS, about=about, text=quoted, ref=reading.ref, values=values)
        for source in _list(container.get("envFrom")):
            for key in ("secretRef", "configMapRef"):
                if named := _text(_at(source, key, "name")):
                    yield _setting(reading, about, f"envFrom.{key}", named, _lines(text, f"name: {named}"))


def _settings(reading: Reading, about: Thing, values: Mapping[str, Any], text: str) -> Iterator[Observation]:
    for key, value in list(values.items())[:MAX_SETTINGS]:
        name, told = _text(key), _text(value)
        if name and told and len(told) <= 300 and "\n" not in told:
            yield _setting(reading, about, name, defaulted(told), _lines(text, name, told))


def _setting(reading: Reading, about: Thing, name: str, value: str, quoted: str) -> Observation:
    values = {"name": name, "value": value}
    return Observation(fact=Fact.SETTING, about=about, text=quoted, ref=reading.ref, values=values)


def _claim(reading: Reading, about: Thing, document: Mapping[str, Any], text: str) -> Iterator[Observation]:
    spec = _mapping(document.get("spec"))
    wanted = _mapping(_at(spec, "selector", "matchLabels"))
    values = {
        "modes": " ".join(_text(mode) for mode in _items(spec.get("accessModes"))),
        "storage": _text(_at(spec, "resources", "requests", "storage")),
        "class": _text(spec.get("storageClassName")),
        "selector": ",".join(sorted(f"{_text(key)}={_text(value)}" for key, value in wanted.items())),
    }
    start = text.find("spec:")
    quoted = text[start : start + 300].strip() if start >= 0 else f"name: {about.name}"
    yield Observation(fact=Fact.CLAIM, about=about, text=quoted, ref=reading.ref, values=values)


def _routes(reading: Reading, about: Thing, text: str) -> Iterator[Observation]:
    for number, match in enumerate(_ROUTE.finditer(text)):
        if number >= MAX_ROUTES:
            return
        target = _HOST.fullmatch(defaulted(match["uri"]))
        if target is not None:
            values = {"id": match["id"], "host": target["host"], "path": match["path"]}
            yield Observation(fact=Fact.ROUTE, about=about, text=match[0].strip(), ref=reading.ref, values=values)


def defaulted(text: str) -> str:
    """The text with each `${NAME:default}` replaced by its default."""
    return _DEFAULTED.sub(lambda match: match[1], text)


def _lines(text: str, *needles: str) -> str:
    """The lines of `text` from that which holds the first needle to that which holds the last, as they stand."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if needles[0] in line), None)
    if first is None:
        return needles[-1]
    last = next((i for i in range(first, min(first + 5, len(lines))) if needles[-1] in lines[i]), first)
    return "\n".join(lines[first : last + 1]).strip()[:300]


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value[:MAX_SETTINGS] if isinstance(value, list) else []


def _list(value: Any) -> list[dict[str, Any]]:
    return [one for one in _items(value) if isinstance(one, dict)]


def _text(value: Any) -> str:
    """A scalar as text. Anything else is nothing: a few aliases of each other are gigabytes once written out."""
    return str(value) if isinstance(value, str | int | float) else ""
