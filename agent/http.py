"""One HTTP policy for everything we talk to: finite timeouts, bounded bodies, typed errors, no secret in any of them."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
import urllib3

from agent.deadline import Deadline
from agent.errors import Permanent, Transient

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
MAX_BODY_BYTES = 20_000_000
RETRIABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
Params = Mapping[str, Any] | list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A finished reply, body read and bounded."""

    status: int
    headers: Mapping[str, str]  # lower-case names
    body: bytes
    url: str

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises `Transient`: a 200 with rubbish is a failed read, not an empty answer."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Transient(f"{_place(self.url)}: {self.status} with a body that is not JSON") from error


@dataclass(slots=True, kw_only=True)
class Http:
    """A client for one base address. Build it after any fork: connections must not be shared between processes.

    `headers` carry the credentials; nothing here ever puts a header, a query value or a body into an error.
    """

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: tuple[str, str] | None = None
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    read_seconds: float = READ_SECONDS
    session: requests.Session = field(default_factory=requests.Session)

    def request(
        self,
        method: str,
        path: str,
        *,
        deadline: Deadline,
        params: Params | None = None,
        payload: Any = None,
        headers: Mapping[str, str] | None = None,
        data: bytes | Mapping[str, str] | None = None,
    ) -> Response:
        """One request, sent once. Any status is a `Response`; raises `Transient` on network faults and time-outs."""
        url = self.base_url.rstrip("/") + path
        if deadline.passed:
            raise Transient(f"{method} {_place(url)}: no time left")
        try:
            with self.session.request(
                method,
                url,
                params=params,  # type: ignore[arg-type]  # the stubs lack list[tuple[str, str]] under Mapping | list
                json=payload,
                data=data,
                headers={**self.headers, **(headers or {})},
                auth=self.auth,
                verify=self.verify,
                cert=self.cert,
                timeout=(min(CONNECT_SECONDS, deadline.remaining), min(self.read_seconds, deadline.remaining)),
                allow_redirects=False,
                stream=True,
            ) as reply:
                return Response(
                    status=reply.status_code,
                    headers={name.lower(): value for name, value in reply.headers.items()},
                    body=self._read(reply, deadline, f"{method} {_place(url)}"),
                    url=url,
                )
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise Transient(f"{method} {_place(url)}: {type(error).__name__}") from error

    def get(self, path: str, *, deadline: Deadline, params: Params | None = None) -> Response:
        """A GET that must succeed. Raises `Transient` or `Permanent` by status; never returns one of 400 or more."""
        return checked("GET", self.request("GET", path, deadline=deadline, params=params))

    def _read(self, reply: requests.Response, deadline: Deadline, what: str) -> bytes:
        """The body while it streams, so that neither a slow drip nor an endless body can hold us."""
        parts: list[bytes] = []
        size = 0
        while chunk := reply.raw.read1(65_536, decode_content=True):
            size += len(chunk)
            if size > self.max_body_bytes:
                raise Permanent(f"{what}: body over {self.max_body_bytes} bytes")
            if deadline.passed:
                raise Transient(f"{what}: out of time after {size} bytes")
            parts.append(chunk)
        return b"".join(parts)


def checked(method: str, response: Response) -> Response:
    """The response when it is a success. Raises by who must act; the message has the status and the API's own words."""
    if response.status < 300:
        return response
    message = f"{method} {_place(response.url)}: {response.status}"
    if words := _words(response):
        message += f": {words}"
    if response.status in RETRIABLE or response.status >= 500:
        raise Transient(message, retry_after=retry_after(response.headers))
    raise Permanent(message)


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait by `Retry-After` (seconds or HTTP date); None when the header is absent or unreadable."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.replace(".", "", 1).isdigit():
        return float(value)
    try:
        at = email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def _place(url: str) -> str:
    """The address without user info and query, which may hold secrets."""
    parts = urllib3.util.parse_url(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2] if parts.netloc else ''}{parts.path or ''}"


def _words(response: Response) -> str:
    """The first 200 characters of an error body, on one line; HTML pages are left out."""
    if "html" in response.headers.get("content-type", ""):
        return ""
    return " ".join(response.text[:400].split())[:200]
