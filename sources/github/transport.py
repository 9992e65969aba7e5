"""HTTP as GitHub answers it: limits, moves, gone things and refused credentials each have a type of their own."""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import dataclass, field, replace
from typing import Any

from agent.errors import Permanent, RootcausedError, Transient
from agent.http import MAX_WORDS_CHARS, Http, Response, checked, server_time
from sources.github.limits import Gate, limit_wait


class Moved(Permanent):
    """Raised on a redirect to the same server; `details["path"]` is the new path below the API's address."""


class Gone(Permanent):
    """Raised on 404 and 410. GitHub says 404 also of what the credential may not see."""


class Invalid(Permanent):
    """Raised on 400, 413 and 422, with what GitHub says of each field."""


class Unaccepted(Permanent):
    """Raised on 401; `details["at"]` is the server's time."""


@dataclass(slots=True, kw_only=True)
class GitHubHttp(Http):
    """Raises `Transient` on a rate limit, whatever its status, and sends nothing until it is over."""

    gate: Gate = field(default_factory=Gate)

    def request(self, method: str, path: str, **options: Any) -> Response:
        self.gate.check(path)
        response = Http.request(self, method, path, **options)  # a bare super() does not work in a class with slots
        if (seconds := limit_wait(response)) is not None:
            self.gate.shut(path, seconds)
            raise Transient(_said(method, response), retry_after=seconds)
        match response.status:
            case 401:
                raise Unaccepted(_said(method, response), at=server_time(response.headers))
            case 400 | 413 | 422:
                raise Invalid(_said(method, response) + _of_fields(response))
            case 404 | 410:
                raise Gone(_said(method, response), status=response.status)
            case 301 | 302 | 307 | 308 if to := self._below(response.headers.get("location", "")):
                raise Moved(_said(method, response), path=to)
        return response

    def signed(self, authorization: str) -> GitHubHttp:
        """The same connections with these credentials, which errors then leave out."""
        return replace(self, headers={**self.headers, "Authorization": authorization})

    def _below(self, location: str) -> str:
        """The path below our address that a redirect leads to; "" when it leads elsewhere."""
        try:
            to, base = urllib.parse.urlsplit(location), urllib.parse.urlsplit(self.base_url)
        except ValueError:
            return ""
        if (to.scheme, to.netloc) not in (("", ""), (base.scheme, base.netloc)):
            return ""
        return to.path.removeprefix(base.path) if to.path.startswith(f"{base.path}/") else ""


def _said(method: str, response: Response) -> str:
    """The status and the API's own words, as in every other error."""
    try:
        checked(method, response)
    except RootcausedError as error:
        return str(error)
    return ""


def _of_fields(response: Response) -> str:
    """`Validation Failed` alone helps nobody: the reasons are in objects beside it."""
    try:
        body = json.loads(response.body)
    except (ValueError, RecursionError):
        return ""
    errors = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(errors, list):
        return ""
    reasons = [_reason(error) for error in errors if isinstance(error, dict)]
    text = "; ".join(filter(None, reasons))
    for secret in response.hide:
        text = text.replace(secret, "<redacted>")
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MAX_WORDS_CHARS]
    return f": {text}" if text else ""


def _reason(error: dict[str, Any]) -> str:
    if isinstance(error.get("message"), str):
        return str(error["message"])
    return " ".join(str(error[name]) for name in ("field", "code") if isinstance(error.get(name), str))
