"""Holds requests and replies against a vendor's OpenAPI description (3.0, or Swagger 2.0)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from openapi_schema_validator import OAS30Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

from tests.support.http_server import Reply, Request

HERE = "urn:spec"


class Spec:
    """`prefix` is what stands before the description's own paths."""

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.document = _load(path)
        self.prefix = prefix
        self._registry: Any = Registry().with_resource(HERE, Resource.from_contents(self.document, DRAFT4))

    def request_faults(self, request: Request) -> list[str]:
        """What the vendor would refuse: an unknown path, an unknown, missing or wrong parameter, a wrong body."""
        place = self._place(request)
        if place is None:
            return [f"{request.method} {request.path} is not in the description"]
        operation, pointer, path_item = place
        parameters = [self._resolved(p) for p in (*path_item.get("parameters", ()), *operation.get("parameters", ()))]
        known = {(p["in"], p["name"].lower()): p for p in parameters}
        faults = [f"{kind} {name} is missing" for (kind, name) in _missing(known, request)]
        for name, values in request.query.items():
            parameter = known.get(("query", name.lower()))
            if parameter is None:
                faults.append(f"query {name} is unknown")
                continue
            faults += [f"query {name}: {fault}" for fault in self._value_faults(parameter, values)]
        if "requestBody" in operation:
            schema = f"{pointer}/requestBody/content/application~1json/schema"
            faults += self.faults(schema, json.loads(request.body or b"null"))
        return faults

    def reply_faults(self, request: Request, reply: Reply) -> list[str]:
        """Where a reply of ours is not what the vendor would send."""
        place = self._place(request)
        assert place is not None
        operation, pointer, _ = place
        declared = operation["responses"][str(reply.status)]
        response = self._resolved(declared)
        where = declared["$ref"].removeprefix("#") if "$ref" in declared else f"{pointer}/responses/{reply.status}"
        schema = f"{where}/content/application~1json/schema" if "content" in response else f"{where}/schema"
        body = reply.body if not isinstance(reply.body, bytes) else json.loads(reply.body)
        return self.faults(schema, body)

    def faults(self, pointer: str, value: Any) -> list[str]:
        """`value` against the schema at `pointer`."""
        validator = OAS30Validator({"$ref": f"{HERE}#{pointer}"}, registry=self._registry)
        return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(value)]

    def _value_faults(self, parameter: Mapping[str, Any], values: list[str]) -> Iterator[str]:
        schema = parameter.get("schema", parameter)
        item = self._resolved(schema.get("items", schema))
        for value in values:
            typed = _typed(item.get("type"), value)
            if typed is None:
                yield f"{value!r} is not {item.get('type')}"
            elif "enum" in item and typed not in item["enum"]:
                yield f"{value!r} is none of {item['enum']}"

    def _place(self, request: Request) -> tuple[dict[str, Any], str, dict[str, Any]] | None:
        path = request.path.removeprefix(self.prefix)
        for template in sorted(self.document["paths"], key=lambda t: t.count("{")):
            item = self.document["paths"][template]
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and request.method.lower() in item:
                pointer = "/paths/" + template.replace("~", "~0").replace("/", "~1") + f"/{request.method.lower()}"
                return item[request.method.lower()], _quoted(pointer), item
        return None

    def _resolved(self, value: Any) -> Any:
        while isinstance(value, dict) and "$ref" in value:
            target: Any = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            value = target
        return value


def _quoted(pointer: str) -> str:
    return pointer.replace("{", "%7B").replace("}", "%7D")


def _missing(known: Mapping[tuple[str, str], Any], request: Request) -> Iterator[tuple[str, str]]:
    for (kind, name), parameter in known.items():
        present = request.headers if kind == "header" else {key.lower() for key in request.query}
        if parameter.get("required") and kind in ("header", "query") and name not in present:
            yield kind, name


def _typed(kind: str | None, value: str) -> Any:
    match kind:
        case "boolean":
            return {"true": True, "false": False}.get(value)
        case "integer":
            return int(value) if re.fullmatch(r"-?\d+", value) else None
        case _:
            return value


@cache
def _load(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    document = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    assert isinstance(document, dict)
    return document
