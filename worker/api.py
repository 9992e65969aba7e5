"""The API: alerts, investigations, requeue; for the operator's scripts and pages."""

from __future__ import annotations

import json
import secrets
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.responses import JSONResponse

from agent.errors import ConfigError, Permanent, Transient
from worker.front import Front, NotFound
from worker.record import State
from worker.records import details, outcome, summary

MAX_LISTED = 1_000
MAX_REQUEST_BYTES = 100_000
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Json(JSONResponse):
    """JSON in pure ASCII: what can't be encoded (a lone surrogate in an alert) must not cost the answer."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode("ascii")


class RequeueRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    instructions: str = ""


class Guard:
    """Who may use the API: whoever has `server.token`; without one, this machine alone (`check_bind` sees to that).

    Then the Host must be a local name, or any web page could read us by DNS rebinding.
    """

    def __init__(self, front: Front) -> None:
        token = front.settings.server.token
        self._expected = f"Bearer {token.get_secret_value()}".encode() if token else None

    def __call__(self, request: Request) -> None:
        if self._expected is None:
            if _hostname(request.headers.get("host", "")) not in LOCAL_NAMES:
                raise HTTPException(403, "without server.token the API answers to local names only")
            return
        given = request.headers.get("authorization", "").encode("utf-8", "replace")
        if not secrets.compare_digest(self._expected, given):
            raise HTTPException(401, "unauthorised", headers={"WWW-Authenticate": "Bearer"})


def add_api(app: FastAPI, front: Front) -> None:
    """Handlers are plain functions: the framework runs them in threads, since the store blocks."""
    guarded = [Depends(Guard(front))]
    api = Api(front)
    app.add_api_route("/api/v1/alerts", api.alerts, dependencies=guarded)
    app.add_api_route("/api/v1/alerts/{key:path}/requeue", api.requeue, methods=["POST"], dependencies=guarded)
    app.add_api_route("/api/v1/alerts/{key:path}", api.alert, dependencies=guarded)
    app.add_api_route("/api/v1/investigations/{investigation}", api.investigation, dependencies=guarded)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Transient, _away)
    app.add_exception_handler(ConfigError, _away)
    app.add_exception_handler(Permanent, _refused)


class Api:
    def __init__(self, front: Front) -> None:
        self._front = front
        self._store = front.store

    def alerts(
        self,
        state: Annotated[list[State] | None, Query()] = None,
        source: str = "",
        since: datetime | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100,
    ) -> Response:
        records = self._store.records(state or (), source=source, since=since, limit=limit)
        return Json({"alerts": [summary(record) for record in records], "counts": self._store.counts()})

    def alert(self, key: str) -> Response:
        record = self._store.get(key)
        if record is None:
            raise HTTPException(404, "no such alert")
        report = self._store.report(record.investigation)
        return Json(
            {
                **details(record),
                "audit": self._store.audit(key),
                "report": report.model_dump(mode="json", by_alias=True) if report else None,
            }
        )

    def investigation(self, investigation: str) -> Response:
        report, events = self._store.report(investigation), self._store.events(investigation)
        if report is None and not events:
            raise HTTPException(404, "no such investigation")
        return Json(
            {
                "report": report.model_dump(mode="json", by_alias=True) if report else None,
                "events": [event.model_dump(mode="json") for event in events],
            }
        )

    async def requeue(self, key: str, request: Request) -> Response:
        """The body, if any, is JSON: a web page elsewhere can't send that type without asking first."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "send application/json")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_REQUEST_BYTES:
                raise HTTPException(413, "the body is too large")
        try:
            wanted = RequeueRequest.model_validate_json(bytes(body) or b"{}")
        except ValidationError:
            raise HTTPException(400, 'send {"instructions": "..."} or {}') from None
        admission = await run_in_threadpool(self._front.requeue, key, instructions=wanted.instructions)
        return Json(outcome(admission), status_code=202 if admission.queued else 200)


def _hostname(host: str) -> str:
    """Without the port."""
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0].lower()


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors()]
    return Json({"error": "; ".join(faults)}, status_code=422)


async def _away(_request: Request, _error: Exception) -> Response:
    return Json({"error": "not possible now; try again"}, status_code=503, headers={"Retry-After": "10"})


async def _refused(_request: Request, error: Exception) -> Response:
    if isinstance(error, NotFound):
        return Json({"error": "no such alert"}, status_code=404)
    return Json({"error": "the ticket system refused"}, status_code=502)
