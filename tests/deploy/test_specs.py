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


def faults(spec, pointer, payload, *, nulls=False):
    """What the schema at `pointer` has against the payload; `nulls` where the specification itself allows them."""
    registry = Registry().with_resource(ROOT, Resource.from_contents(spec, default_specification=DRAFT4))
    validator = OAS30Validator({"$ref": f"{ROOT}#{pointer}"}, registry=registry)
    return [
        f"{error.json_path}: {error.message[:200]}"
        for error in validator.iter_errors(payload if nulls else without_nulls(payload))
    ]


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


@cache
def subset(path):
    return json.loads(shared_file(f"specs/{path}").read_text())


def of(world, source):
    return next(one["native"] for one in world.get("/demo/incidents")["incidents"] if one["source"] == source)


@needs_shared
def test_opsgenie_replies_fit(fresh):
    spec, native = subset("opsgenie/alerts-subset.prism.json"), of(fresh, "opsgenie")
    added = fresh.send("POST", f"/opsgenie/v2/alerts/{native}/notes", {"note": "x", "user": "rootcaused"})
    assert added.status == 202
    asked = f"/opsgenie/v2/alerts/requests/{added.json['requestId']}"
    for pointed, path in (
        ("/v2/alerts", "/opsgenie/v2/alerts"),
        ("/v2/alerts/{identifier}", f"/opsgenie/v2/alerts/{native}"),
        ("/v2/alerts/{identifier}/notes", f"/opsgenie/v2/alerts/{native}/notes"),
        ("/v2/alerts/requests/{requestId}", asked),
    ):
        pointer = answer(pointed, "get").replace("/content/application~1json", "")  # it is of version 2
        assert faults(spec, pointer, fresh.get(path)) == []


@needs_shared
def test_jira_replies_fit(fresh):
    spec, native = subset("jira/platform-v3-subset.prism.json"), of(fresh, "jira")
    document = {"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": []}]}
    path = f"/jira/rest/api/3/issue/{native}/comment"
    assert fresh.send("POST", path, {"body": document}).status == 201
    pointed = "/rest/api/3/issue/{issueIdOrKey}"
    assert faults(spec, answer(f"{pointed}/comment", "get"), fresh.get(path)) == []
    assert faults(spec, answer(pointed, "get"), fresh.get(f"/jira/rest/api/3/issue/{native}?fields=summary")) == []
    assert faults(spec, answer("/rest/api/3/myself", "get"), fresh.get("/jira/rest/api/3/myself")) == []
    found = fresh.send("POST", "/jira/rest/api/3/search/jql", {"jql": "project = OPS", "fields": ["summary"]}).json
    assert len(found["issues"]) == 2
    assert faults(spec, answer("/rest/api/3/search/jql", "post"), found) == []


@needs_shared
def test_github_replies_fit(fresh):
    spec = subset("github/api.github.com.issues-subset.prism.json")
    repository, _, number = of(fresh, "github").rpartition("#")
    path, pointed = f"/github/repos/{repository}/issues", "/repos/{owner}/{repo}/issues"
    assert fresh.send("POST", f"{path}/{number}/comments", {"body": "x"}).status == 201
    assert len(fresh.get(path)) == 2
    assert faults(spec, answer(pointed, "get"), fresh.get(path), nulls=True) == []
    assert faults(spec, answer(f"{pointed}/{{issue_number}}", "get"), fresh.get(f"{path}/{number}"), nulls=True) == []
    comments = fresh.get(f"{path}/{number}/comments")
    assert faults(spec, answer(f"{pointed}/{{issue_number}}/comments", "get"), comments, nulls=True) == []
