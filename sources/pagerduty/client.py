"""PagerDuty over its own client library, with the library's retries off and replies bounded like everybody else's."""

from __future__ import annotations

import functools
import ssl
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pagerduty

from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.http import MAX_BODY_BYTES, READ_SECONDS, Response, checked, retry_after
from sources.configs import PagerDutyConfig

MAX_TURN_SECONDS = 300.0  # to wait for the request before ours


class _Client(pagerduty.RestApiV2Client):
    """Takes the address the configuration has already checked: the library refuses http, also on loopback."""

    @property
    def url(self) -> str:
        return str(self._url)

    @url.setter
    def url(self, url: str) -> None:
        self._url = url


class _Bounded(httpx2.SyncByteStream):
    """A body that may neither be endless nor drip for ever."""

    def __init__(self, stream: httpx2.SyncByteStream, deadline: Deadline, what: str) -> None:
        self._stream, self._deadline, self._what = stream, deadline, what

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise Permanent(f"{self._what}: body over {MAX_BODY_BYTES} bytes")
            if self._deadline.passed:
                raise Transient(f"{self._what}: out of time after {size} bytes")
            yield chunk

    def close(self) -> None:
        self._stream.close()

    @property
    def elapsed(self) -> Any:
        """The library times every reply by this."""
        return getattr(self._stream, "elapsed", None)


@dataclass(slots=True)
class _Turn:
    """The request under way. Apart from the api, so that the client does not keep the api alive."""

    what: str = ""
    deadline: Deadline = field(default_factory=Deadline.never)

    def bound(self, reply: httpx2.Response) -> None:
        assert isinstance(reply.stream, httpx2.SyncByteStream)
        reply.stream = _Bounded(reply.stream, self.deadline, self.what)


class PagerDutyApi:
    """One request at a time, as PagerDuty advises for each token; each is sent exactly once."""

    def __init__(self, config: PagerDutyConfig) -> None:
        self._token = config.token.get_secret_value()
        self._from = config.from_email
        self._url = config.url
        self._lock = threading.Lock()
        self._made: _Client | None = None  # at first use, so that no connection crosses a fork
        self._turn = _Turn()

    def get(self, path: str, params: Mapping[str, Any] | None = None, *, deadline: Deadline) -> Response:
        """A read that must succeed. Raises `Transient` or `Permanent` by status."""
        return self.checked("GET", self.send("GET", path, params=params, deadline=deadline))

    def checked(self, method: str, response: Response) -> Response:
        return checked(method, response, wait=rate_limit_reset)

    def send(
        self,
        method: str,
        path: str,
        *,
        deadline: Deadline,
        params: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> Response:
        """One request. Any status is a `Response`; network faults are `Transient`. Lists become `name[]` parameters."""
        what = f"{method} {self._url}{path}"
        options: dict[str, Any] = {"headers": {"Content-Type": "application/json"}}  # the spec wants it on GET too
        if params:
            options["params"] = {k: list(v) if isinstance(v, tuple) else v for k, v in params.items()}
        if payload is not None:
            options["json"] = dict(payload)
        if not self._lock.acquire(timeout=min(deadline.remaining, MAX_TURN_SECONDS)):
            raise Transient(f"{what}: no time left")
        try:
            reply = self._exchange(what, method, path, deadline, options)
        finally:
            self._lock.release()
        return Response(
            status=reply.status_code,
            headers={name.lower(): value for name, value in reply.headers.items()},
            body=reply.content,
            url=f"{self._url}{path}",
            hide=(self._token,),
        )

    def _exchange(
        self, what: str, method: str, path: str, deadline: Deadline, options: dict[str, Any]
    ) -> httpx2.Response:
        if deadline.passed:
            raise Transient(f"{what}: no time left")
        client = self._client()
        client.timeout = min(READ_SECONDS, deadline.remaining)  # type: ignore[assignment]  # seconds; declared int
        self._turn.what, self._turn.deadline = what, deadline
        try:
            reply: httpx2.Response | None = client.request(method, path, **options)
            fault = ""
        except pagerduty.HttpError as error:  # the library raises on 401 and 3xx, and quotes part of the token
            reply, fault = error.response, ""
        except pagerduty.Error as error:
            reply, fault = None, type(error.__cause__ or error).__name__
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reply, fault = None, type(error).__name__
        if reply is None:
            raise Transient(f"{what}: {fault}")
        return reply

    def _client(self) -> _Client:
        if self._made is None:
            hooks = {"response": [self._turn.bound]}
            client = _Client(self._token, default_from=self._from, base_url=self._url, event_hooks=hooks, verify=_tls())
            client.max_network_attempts = 0  # one try: a POST whose reply was lost must not be sent again
            # 429 can't be set to "no retry": 0 means for ever. A limit that is already passed gives the reply at once.
            client.retry, client.max_http_attempts = {429: 1}, -1
            weakref.finalize(self, client.close)
            self._made = client
        return self._made


@functools.cache
def _tls() -> ssl.SSLContext:
    """Reading the certificate store takes longer than a request, so it is done once a process."""
    return httpx2.create_ssl_context()


def rate_limit_reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until PagerDuty takes requests again; a 429 may come without the header."""
    value = headers.get("ratelimit-reset", "").strip()
    return retry_after({"retry-after": value}) if value else retry_after(headers)
