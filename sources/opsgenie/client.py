"""HTTP to either API: each write is sent once, reads are tried again, refusals say what to mend."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.deadline import Deadline
from agent.errors import Permanent
from agent.http import Http, Params, Response, checked, retry_after
from sources.opsgenie.dialect import Dialect

Explain = Callable[[Response], str]


@dataclass(slots=True, kw_only=True)
class ExplainingHttp(Http):
    """A refusal that the operator can mend says how. `explain` gives the words, or ""."""

    explain: Explain

    def request(self, method: str, path: str, **options: Any) -> Response:
        response = Http.request(self, method, path, **options)  # a bare super() does not work in a class with slots
        if words := self.explain(response):
            try:
                checked(method, response)
            except Permanent as error:
                raise Permanent(f"{error} ({words})") from None
        return response


def rate_limit(headers: Mapping[str, str]) -> float | None:
    """Seconds until requests are taken again: Retry-After, else the length of OpsGenie's throttling period."""
    seconds = retry_after(headers)
    if seconds is not None:
        return seconds
    return retry_after({"retry-after": headers.get("x-ratelimit-period-in-sec", "")})


def part(native: str) -> str:
    """An id as one part of a path. Raises `Permanent` for one that would lead elsewhere: dots mean the folder above."""
    if not native.strip("."):
        raise Permanent(f"{native!r} is not an id")
    return urllib.parse.quote(native, safe="")


class OpsApi:
    """The alerts API below the dialect's root. Any thread may use it."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._http = dialect.http()
        self._authors: frozenset[str] = frozenset()

    def get(self, path: str, params: Params | None = None, *, deadline: Deadline) -> Response:
        """A read that must succeed. Raises `Transient` or `Permanent` by status."""
        return self._http.get(self._dialect.root(deadline) + path, params=params, deadline=deadline)

    def send(
        self,
        method: str,
        path: str,
        *,
        deadline: Deadline,
        params: Params | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> Response:
        """One request, sent once. Any status but an explained refusal is a `Response`."""
        path = self._dialect.root(deadline) + path
        return self._http.request(method, path, params=params, payload=payload, deadline=deadline)

    def checked(self, method: str, response: Response) -> Response:
        return checked(method, response, wait=rate_limit)

    def authors(self, deadline: Deadline) -> frozenset[str]:
        """The names our notes come back under, asked for once. Raises `Permanent` when nobody can tell."""
        if not self._authors:
            self._authors = self._dialect.authors(self._http, deadline)
        return self._authors
