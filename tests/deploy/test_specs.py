"""Every reply of the played PagerDuty and Alertmanager fits the vendor's own specification."""

from __future__ import annotations

import json
from functools import cache

import pytest
import yaml
from openapi_schema_validator import OAS30Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

from tests.support.shared import needs_shared, shared_file

ROOT = "urn:spec"


@cache
def pagerduty():
    return json.loads(shared_file("specs/pagerduty/incidents-subset.prism.json").read_text())


@cache
def alertmanager():
    return yaml.safe_load(shared_file("specs/alertmanager/openapi.yaml").read_text())


def faults(spec, pointer, payload):
    """What the schema at `pointer` has against the payload."""
    registry = Registry().with_resource(ROOT, Resource.from_contents(spec, default_specification=DRAFT4))
    validator = OAS30Validator({"$ref": f"{ROOT}#{pointer}"}, registry=registry)
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(without_nulls(payload))]


def without_nulls(payload):
    """PagerDuty says that any field that is not required may be null; its schemas do not, its examples do it."""
    if isinstance(payload, list):
        return [without_nulls(one) for one in payload]
    if isinstance(payload, dict):
        return {name: without_nulls(value) for name, value in payload.items() if value is not None}
    return payload


def answer(path, method):
    """The pointer to the schema of a 200."""
    escaped = path.replace("~", "~0").replace("/", "~1")
    return f"/paths/{escaped}/{method}/responses/200/content/application~1json/schema"


@needs_shared
def test_the_validator_finds_a_planted_fault():
    spec = pagerduty()
    assert faults(spec, answer("/incidents", "get"), {"incidents": [{"type": "incident", "status": "on fire"}]})


@needs_shared
@pytest.mark.parametrize("query", ["", "?limit=2&total=true", "?statuses[]=resolved"])
def test_incident_lists_fit(world, query):
    found = world.get(f"/pagerduty/incidents{query}")
    assert faults(pagerduty(), answer("/incidents", "get"), found) == []


@needs_shared
def test_incidents_alerts_and_notes_fit(fresh):
    for incident in fresh.get("/pagerduty/incidents")["incidents"]:
        path = f"/pagerduty/incidents/{incident['id']}"
        fresh.send("POST", f"{path}/notes", {"note": {"content": "x"}})
        for rest in ("", "/alerts", "/notes"):
            assert faults(pagerduty(), answer(f"/incidents/{{id}}{rest}", "get"), fresh.get(f"{path}{rest}")) == []


@needs_shared
def test_written_notes_fit(fresh):
    [first, *_] = fresh.get("/pagerduty/incidents")["incidents"]
    path = f"/pagerduty/incidents/{first['id']}/notes"
    added = fresh.send("POST", path, {"note": {"content": "x"}}).json
    assert faults(pagerduty(), answer("/incidents/{id}/notes", "post"), added) == []
    edited = fresh.send("PUT", f"{path}/{added['note']['id']}", {"note": {"content": "y"}}).json
    assert faults(pagerduty(), answer("/incidents/{id}/notes/{note_id}", "put"), edited) == []


@needs_shared
@pytest.mark.parametrize("path", ["/users/me", "/abilities"])
def test_the_account_fits(world, path):
    assert faults(pagerduty(), answer(path, "get"), world.get(f"/pagerduty{path}")) == []


@needs_shared
@pytest.mark.parametrize("path", ["/alerts", "/receivers", "/status", "/silences"])
def test_alertmanager_replies_fit(world, path):
    found = world.get(f"/alertmanager/api/v2{path}")
    assert faults(alertmanager(), f"/paths/~1{path[1:]}/get/responses/200/schema", found) == []
