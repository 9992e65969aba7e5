"""Our requests, and the replies of our stand-ins, against the vendors' own descriptions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sources.opsgenie.source import OpsAlerts
from tests.support.alerts import alert
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.openapi import Spec
from tests.support.opsgenie_api import CLOUD_ID, JsmOpsApiFake, OpsGenieApiFake, ops_alert
from tests.support.opsgenie_sources import SOON, jsm_ops, opsgenie
from tests.support.reports import report
from tests.support.shared import needs_shared, shared_file

JSM = f"/jsm/ops/api/{CLOUD_ID}/v1/alerts"
Exchanged = list[tuple[Request, Reply]]


def opsgenie_spec() -> Spec:
    return Spec(shared_file("specs/opsgenie/alerts-subset.prism.json"))


def jsm_spec() -> Spec:
    return Spec(shared_file("specs/opsgenie/jsm-ops-alerts.transcribed.json"), prefix="/jsm/ops")


def used(source: OpsAlerts, api: Any) -> Exchanged:
    """A poll of two pages, a second poll, a sweep, a read, a first report and a newer one, with notes on two pages."""
    exchanged: Exchanged = []

    def note(request: Request, reply: Reply) -> Reply:
        exchanged.append((request, reply))
        return reply

    api.after = note
    api.note_page = 1
    api.alerts = [ops_alert(f"A{n:03d}") for n in range(101)]
    list(source.poll("", deadline=SOON))
    list(source.poll("2031-02-03T11:59:00Z", deadline=SOON))
    list(source.search("tag:infra OR priority:P1", limit=5, deadline=SOON))
    source.check(deadline=SOON)
    source.fetch("A001", deadline=SOON)
    for headline in ("one", "two"):
        run = report().run.model_copy(update={"investigation": headline})
        previous = source.find(alert(), deadline=SOON)
        source.publish(alert(), report(headline=headline, run=run), previous=previous, deadline=SOON)
    source.related(alert(), deadline=SOON)
    return exchanged


def everything_opsgenie_is_asked() -> Exchanged:
    api = OpsGenieApiFake(pending=1)
    with HttpServer(api) as server:
        return used(opsgenie(server.url, tag="rootcaused", query="tag:infra OR NOT tag:infra"), api)


def everything_jsm_ops_is_asked() -> Exchanged:
    api = JsmOpsApiFake(last_offset=19_999)
    with HttpServer(api) as server:
        exchanged = used(jsm_ops(server.url, query="tag:infra OR NOT tag:infra"), api)
    return [(request, reply) for request, reply in exchanged if request.path.startswith("/jsm/")]


EXCHANGES = {
    "opsgenie": (opsgenie_spec, everything_opsgenie_is_asked),
    "jsm_ops": (jsm_spec, everything_jsm_ops_is_asked),
}


@needs_shared
@pytest.mark.parametrize("name", EXCHANGES)
def test_the_vendor_would_take_every_request(name: str) -> None:
    spec_of, exchanges = EXCHANGES[name]
    spec, exchanged = spec_of(), exchanges()
    faults = {f"{r.method} {r.path}": spec.request_faults(r) + body_faults(spec, r) for r, _ in exchanged}
    assert {place: found for place, found in faults.items() if found} == {}
    assert {request.method for request, _ in exchanged} == {"GET", "POST", *(["PATCH"] if name == "jsm_ops" else [])}


@needs_shared
@pytest.mark.parametrize("name", EXCHANGES)
def test_our_stand_in_answers_like_the_vendor(name: str) -> None:
    spec_of, exchanges = EXCHANGES[name]
    spec = spec_of()
    replies = [(request, reply) for request, reply in exchanges() if reply.status != 404]
    faults = {f"{r.method} {r.path}": reply_faults(spec, r, a) for r, a in replies}
    assert {place: found for place, found in faults.items() if found} == {}
    assert len(faults) >= 5


def reply_faults(spec: Spec, request: Request, reply: Reply) -> list[str]:
    """Swagger 2.0 has the answer to an accepted write once for all paths, where the shared check does not look."""
    if reply.status == 202:
        return spec.faults("/responses/Accepted/schema", reply.body)
    return spec.reply_faults(request, reply)


def body_faults(spec: Spec, request: Request) -> list[str]:
    """Swagger 2.0 describes a body among the parameters, which the shared check passes over."""
    if not request.body or "definitions" not in spec.document:
        return []
    name = "AddTagsToAlertPayload" if request.path.endswith("/tags") else "AddNoteToAlertPayload"
    return spec.faults(f"/definitions/{name}", request.json())


def asked(path: str, method: str = "GET", body: Any = None, **query: str) -> Request:
    content = json.dumps(body).encode() if body is not None else b""
    return Request(method, path, {name: [value] for name, value in query.items()}, {}, content)


@needs_shared
@pytest.mark.parametrize(("planted", "fault"), [
    (asked("/v2/alerts", sort="age"), "none of"),
    (asked("/v2/alerts", order="up"), "none of"),
    (asked("/v2/alerts", limit="many"), "not integer"),
    (asked("/v2/alerts", size="5"), "unknown"),
    (asked("/v2/alerts/A1/notes", identifierType="name"), "none of"),
    (asked("/v1/alerts"), "not in the description"),
])  # fmt: skip
def test_the_check_of_opsgenie_refuses_planted_faults(planted: Request, fault: str) -> None:
    assert fault in str(opsgenie_spec().request_faults(planted))


@needs_shared
def test_the_check_of_opsgenie_bodies_refuses_planted_faults() -> None:
    spec = opsgenie_spec()
    assert body_faults(spec, asked("/v2/alerts/A1/notes", "POST", {"user": "x"}))
    assert body_faults(spec, asked("/v2/alerts/A1/notes", "POST", {"note": 7}))
    assert body_faults(spec, asked("/v2/alerts/A1/tags", "POST", {"tags": "x"}))
    planted = Reply(200, {"data": [{"tinyId": "7"}], "took": 0.1, "requestId": "r"})
    assert spec.reply_faults(asked("/v2/alerts"), planted)


@needs_shared
@pytest.mark.parametrize(("planted", "fault"), [
    (asked(JSM, sort="updatedAt"), "none of"),
    (asked(JSM, limit="5"), "unknown"),
    (asked(JSM, size="many"), "not integer"),
    (asked(f"{JSM}/A1/notes", "POST", {"text": "x"}), "'note' is a required property"),
    (asked(f"{JSM}/A1/notes/N1", "PATCH", {"note": 7}), "is not of type 'string'"),
    (asked(f"{JSM}/A1/notes/N1", "PUT", {"note": "x"}), "not in the description"),
])  # fmt: skip
def test_the_check_of_jsm_ops_refuses_planted_faults(planted: Request, fault: str) -> None:
    assert fault in str(jsm_spec().request_faults(planted))
