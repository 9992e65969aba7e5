"""One HTTP policy for everything we talk to: finite timeouts, bounded bodies, typed errors, no secret in them."""

from __future__ import annotations

import email.utils
import json
import random
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import requests
import requests.adapters
import urllib3

from agent.deadline import Deadline
from agent.errors import Permanent, Transient

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
MAX_BODY_BYTES = 20_000_000
MAX_WORDS_CHARS = 300  # of an API's own error text
READ_ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.2  # between attempts of a read; doubled each time
MAX_WAIT_SECONDS = 86_400.0  # what a server may ask for at most
MAX_PAUSE_SECONDS = 5.0  # a longer Retry-After is the caller's to schedule, not ours to sleep
POOL_SIZE = 16  # the loop runs up to 16 calls at a time
RETRIABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
Params = Mapping[str, Any] | list[tuple[str, str]]
Wait = Callable[[Mapping[str, str]], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A finished reply, body read and bounded. `hide` lists credentials that must not show in an error."""

    status: int
    headers: Mapping[str, str]  # lower-case names
    body: bytes = field(repr=False)
    url: str
    hide: tuple[str, ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises `Transient`: a 200 with rubbish is a failed read, not an empty answer."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Transient(f"{_place(self.url)}: {self.status} with a body that is not JSON") from error


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait by `Retry-After` (seconds or HTTP date); None when the header is absent or unreadable."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return min(float(value), MAX_WAIT_SECONDS)
    at = _http_date(value)
    if at is None:
        return None
    return min(max(0.0, at.timestamp() - (time.time() if now is None else now)), MAX_WAIT_SECONDS)


def server_time(headers: Mapping[str, str]) -> datetime | None:
    """The server's own clock, from its `Date` header; None when it sends none that can be read."""
    return _http_date(headers.get("date", ""))


def _http_date(value: str) -> datetime | None:
    try:
        at = email.utils.parsedate_to_datetime(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def _session() -> requests.Session:
    """A pool of its own for each client, wide enough for parallel tool calls. Proxies come from the environment."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=POOL_SIZE, max_retries=0))
    return session


@dataclass(slots=True, kw_only=True)
class Http:
    """A client for one base address. Build it after any fork: connections must not be shared between processes.

    `headers` carry the credentials; nothing here ever puts a header, a query value or a body into an error.
    `label` stands for the address in errors where the address itself is a secret (chat webhooks).
    `wait` reads the vendor's rate-limit headers. `sleep` is the pause between attempts of a read.
    """

    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    read_seconds: float = READ_SECONDS
    session: requests.Session = field(default_factory=_session, repr=False)
    label: str = ""
    wait: Wait = retry_after
    attempts: int = READ_ATTEMPTS
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

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
        url, userinfo = _without_userinfo(self.base_url.rstrip("/") + path)
        what = f"{method} {self._shown(url)}"
        if deadline.passed:
            raise Transient(f"{what}: no time left")
        try:
            with self.session.request(
                method,
                url,
                params=params,
                json=payload,
                data=data,
                headers={**self.headers, **(headers or {})},
                auth=self.auth or userinfo or _no_netrc,
                verify=self.verify,
                cert=self.cert,
                timeout=(min(CONNECT_SECONDS, deadline.remaining), min(self.read_seconds, deadline.remaining)),
                allow_redirects=False,
                stream=True,
            ) as reply:
                return Response(
                    status=reply.status_code,
                    headers={name.lower(): value for name, value in reply.headers.items()},
                    body=self._read(reply, deadline, what),
                    url=self._shown(url),
                    hide=self._secrets(userinfo),
                )
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            fault, unusable = _fault(error), isinstance(error, ValueError)
        # Raised out here, because the library's own message (and so a traceback with it) holds the query.
        if unusable:  # InvalidURL, InvalidHeader and the like: a mistake in the configuration
            raise Permanent(f"{what}: {fault}")
        raise Transient(f"{what}: {fault}")

    def get(self, path: str, *, deadline: Deadline, params: Params | None = None) -> Response:
        """A GET that must succeed; reads are idempotent, so passing faults are tried again while the deadline allows.

        Raises `Transient` or `Permanent` by status; never returns one of 300 or more.
        """
        pause = FIRST_PAUSE_SECONDS
        for _ in range(self.attempts - 1):
            try:
                return checked("GET", self.request("GET", path, deadline=deadline, params=params), wait=self.wait)
            except Transient as error:
                seconds = error.retry_after if error.retry_after is not None else pause * random.uniform(0.5, 1.5)
                if seconds > MAX_PAUSE_SECONDS or seconds >= deadline.remaining:
                    raise
            self.sleep(seconds)
            pause *= 2
        return checked("GET", self.request("GET", path, deadline=deadline, params=params), wait=self.wait)

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

    def _shown(self, url: str) -> str:
        return self.label or _place(url)

    def _secrets(self, userinfo: tuple[str, str] | None) -> tuple[str, ...]:
        """Every credential this client sends, whole and without its scheme word (`Bearer`, `Token token=`)."""
        named = [v for k, v in self.headers.items() if k.lower() not in _PLAIN_HEADERS]
        bare = [value.split(" ", 1)[-1].removeprefix("token=") for value in named]
        passwords = [pair[1] for pair in (self.auth, userinfo) if pair]
        parts = urllib.parse.urlsplit(self.base_url if self.label else "")  # a labelled address is itself a secret
        places = [*parts.path.split("/"), *(value for _, value in urllib.parse.parse_qsl(parts.query))]
        return tuple(sorted({s for s in (*named, *bare, *passwords, *places) if len(s) >= 4}, key=len, reverse=True))


_PLAIN_HEADERS = frozenset({"accept", "content-type", "user-agent", "from", "x-scope-orgid"})


def checked(method: str, response: Response, *, wait: Wait = retry_after) -> Response:
    """The response when it is a success. Raises by who must act; the message has the status and the API's own words."""
    if response.status < 300:
        return response
    message = f"{method} {_place(response.url)}: {response.status}"
    if response.status < 400:
        to = _place(response.headers.get("location", "")) or "nowhere"
        raise Permanent(f"{message}: redirected to {to}; redirects are not followed, so configure the final address")
    if words := _words(response):
        message += f": {words}"
    if response.status in RETRIABLE or response.status >= 500:
        raise Transient(message, retry_after=wait(response.headers))
    raise Permanent(message)


def _place(url: str) -> str:
    """The address without user info and query, which may hold secrets; "" when it can't be read."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return ""
    address = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return f"{parts.scheme}://{address}" if parts.scheme else address


def _without_userinfo(url: str) -> tuple[str, tuple[str, str] | None]:
    """The address, and the user and password that stood in it."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return url, None
    info, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = info.partition(":")
    return parts._replace(netloc=host).geturl(), (urllib.parse.unquote(user), urllib.parse.unquote(password))


def _no_netrc(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Stops requests from putting a ~/.netrc login over the credentials in our headers."""
    return request


def _fault(error: BaseException) -> str:
    """What went wrong, without the address: the kind, and the operating system's words where there are any."""
    kind, words = type(error).__name__, ""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            break
        if isinstance(seen, OSError) and seen.strerror and not isinstance(seen, requests.RequestException):
            words = str(seen.strerror)
        inner = getattr(seen, "reason", None) or (seen.args[0] if seen.args else None)
        seen = inner if isinstance(inner, BaseException) else seen.__cause__ or seen.__context__
    return f"{kind} ({words})" if words else kind


def _words(response: Response) -> str:
    """The API's own words, on one line and without our credentials; HTML pages are left out."""
    text = response.text[:4_000]
    if "html" in response.headers.get("content-type", "") or text.lstrip()[:1] == "<":
        return ""
    text = _message(response) or text
    for secret in response.hide:
        text = text.replace(secret, "<redacted>")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MAX_WORDS_CHARS]


def _message(response: Response) -> str:
    """The sentence inside the usual JSON error objects; "" when there is none."""
    try:
        body = json.loads(response.body)
    except (ValueError, RecursionError):
        return ""
    error = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    found = [error.get("message"), *_listed(error.get("errors")), *_listed(error.get("errorMessages"))]
    return ": ".join(part for part in found if isinstance(part, str) and part)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
