"""HTTP in: signed webhooks, health, metrics, and the API (`worker/api.py`)."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from agent.errors import ConfigError, Transient
from sources.port import Malformed, Unauthorised
from worker.api import Json, add_api
from worker.front import Delivered, Front
from worker.metrics import CONTENT_TYPE, Metrics
from worker.settings import ServerSettings, Settings

ADMIT_SECONDS = 3.0  # PagerDuty gives up after 5 s; what takes longer is sent again and found as a duplicate
BODY_SECONDS = 10.0
PING_SECONDS = 2.0
RETRY_AFTER_SECONDS = 10
ADMITTING_THREADS = 8
READING_THREADS = 4
T = TypeVar("T")

log = structlog.get_logger("rootcaused.receiver")


def create_app(front: Front, *, admit_seconds: float = ADMIT_SECONDS) -> FastAPI:
    """The ASGI app. Nothing is connected before the first request."""
    metrics = Metrics(front.store)
    admitting, reading = Threads(ADMITTING_THREADS), Threads(READING_THREADS)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        admitting.close()
        reading.close()

    app = FastAPI(title="rootcaused", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    webhooks = Webhooks(front, metrics, admitting, admit_seconds)
    app.add_exception_handler(HTTPException, _refusal)
    app.add_exception_handler(Exception, _crash)
    app.add_api_route("/webhooks/{source}", webhooks.receive, methods=["POST"])

    @app.get("/healthz")
    async def healthz() -> Response:
        """The process is alive and its event loop turns."""
        return Json({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> Response:
        """Whether a webhook would be taken now: Redis answers."""
        try:
            await reading.run(front.store.ping, PING_SECONDS)
        except (Transient, TimeoutError):
            return Json({"status": "redis does not answer"}, status_code=503)
        return Json({"status": "ok"})

    @app.get("/metrics")
    async def show_metrics() -> Response:
        try:
            return Response(await reading.run(metrics.text, BODY_SECONDS), media_type=CONTENT_TYPE)
        except TimeoutError:
            return Json({"error": "redis does not answer"}, status_code=503)

    add_api(app, front)
    return app


class Threads:
    """A bounded pool of its own, so that calls that hang in one place starve only that place."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="rootcaused")

    async def run(self, call: Callable[[], T], seconds: float) -> T:
        """Raises `TimeoutError`; a call that began goes on to its own end."""
        return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._pool, call), seconds)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Takes deliveries. What is not durably recorded is answered 503: senders retry that, and drop on 4xx for good."""

    front: Front
    metrics: Metrics
    threads: Threads
    seconds: float

    async def receive(self, source: str, request: Request) -> Response:
        config = self.front.settings.sources.get(source)
        if config is None or source not in self.front.sources:
            return self._refuse("unknown", "unknown_source", 404, "there is no such source")
        if not config.takes_webhooks:
            log.warning("webhook_refused", source=source, reason="no webhook secret is configured for this source")
            return self._refuse(source, "not_enabled", 403, "webhooks are not enabled for this source")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(request, self.front.settings.server.max_body_bytes)
        except TimeoutError:
            return self._refuse(source, "slow", 408, "the body took too long")
        except _TooLarge:
            log.warning("webhook_refused", source=source, reason="body over server.max_body_bytes")
            return self._refuse(source, "too_large", 413, "the body is too large")
        headers = {name.lower(): value for name, value in request.headers.items()}
        return await self._admit(source, headers, body)

    async def _admit(self, source: str, headers: dict[str, str], body: bytes) -> Response:
        try:
            delivered = await self.threads.run(lambda: self.front.receive(source, headers, body), self.seconds)
        except Unauthorised as error:
            log.warning("webhook_refused", source=source, reason=str(error))
            return self._refuse(source, "unauthorised", 401, "unauthorised")
        except Malformed as error:
            log.warning("webhook_malformed", source=source, reason=str(error))
            return self._refuse(source, "malformed", 400, "malformed")
        except (Transient, TimeoutError) as error:
            log.warning("webhook_not_recorded", source=source, reason=f"{type(error).__name__}: {error}")
        except Exception:  # whatever it was, the alert is not recorded, and only a 5xx is sent again
            log.exception("webhook_crashed", source=source)
        else:
            return self._taken(source, delivered)
        return self._refuse(source, "not_recorded", 503, "not recorded; send it again")

    def _taken(self, source: str, delivered: Delivered) -> Response:
        queued = sum(admission.queued for admission in delivered.admissions)
        outcome = "duplicate" if delivered.duplicate else "ignored" if delivered.ignored else "admitted"
        self.metrics.webhook(source, outcome)
        content = {
            "outcome": outcome,
            "alerts": len(delivered.admissions),
            "queued": queued,
            "broken": delivered.broken,
            "ignored": delivered.ignored,
        }
        return Json(content, status_code=202 if queued else 200)

    def _refuse(self, source: str, outcome: str, status: int, words: str) -> Response:
        self.metrics.webhook(source, outcome)
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else None
        return Json({"error": words}, status_code=status, headers=headers)


class _TooLarge(Exception):
    """Raised when a body exceeds `server.max_body_bytes`."""


async def _body(request: Request, limit: int) -> bytes:
    """The raw bytes, as they were signed. Raises `_TooLarge` before more than the limit is held."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _TooLarge
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise _TooLarge
    return bytes(body)


async def _refusal(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Json({"error": str(error.detail)}, status_code=error.status_code, headers=error.headers)


async def _crash(_request: Request, _error: Exception) -> Response:
    """The server logs it; outside, nothing of it is shown."""
    return Json({"error": "internal error"}, status_code=500)


def check_bind(server: ServerSettings) -> None:
    """Raises `ConfigError` when the API would be open to more than this machine."""
    if server.token is None and not loopback(server.host):
        raise ConfigError(
            f"is required, because server.host ({server.host}) is reachable from other machines; "
            "set a token, or set server.host to 127.0.0.1",
            key="server.token",
        )


def loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def serve(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT. Raises `ConfigError` when the API would be open to others without a token."""
    import signal
    import sys

    import uvicorn

    from worker.front import open_front

    check_bind(settings.server)
    app = create_app(open_front(settings))
    # uvicorn ends by sending itself the signal again, which would make an orderly end look like a kill.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    options: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": 10,
        "limit_concurrency": 200,
    }
    uvicorn.run(app, host=settings.server.host, port=settings.server.port, **options)
    return 0
