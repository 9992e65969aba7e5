"""Jira's REST API, version 3 on Cloud and 2 on Data Center: one request sent once, errors by who must act.

PyPI's `jira` serves `permissions.py` alone: its search is refused by Cloud's own description or returns None, it
re-sends a POST whose reply was lost, and without retries and search only one authentication header is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agent.alert import parse_time
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.http import Http, Response, checked, retry_after, server_time
from sources.jira.config import JiraConfig

REASONS = ("ratelimit-reason", "x-authentication-denied-reason")  # the latter: a captcha after failed logins
REFUSED_LOGINS = frozenset({"AUTHENTICATED_FAILED", "AUTHENTICATION_DENIED"})


class JiraApi:
    """`cloud` and `me` are asked for once."""

    def __init__(self, config: JiraConfig) -> None:
        headers = {"Accept": "application/json"}
        auth = None
        if config.personal_access_token is not None:
            headers["Authorization"] = f"Bearer {config.personal_access_token.get_secret_value()}"
        elif config.api_token is not None:
            auth = (config.email, config.api_token.get_secret_value())
        verify = str(config.ca_file) if config.ca_file else True
        self._http = Http(base_url=config.url, headers=headers, auth=auth, verify=verify, wait=wait_seconds)
        self._deployment = config.deployment
        self._me = ""

    def cloud(self, deadline: Deadline) -> bool:
        """Whether this is Jira Cloud, by the configuration or else by what the server says of itself."""
        if self._deployment == "auto":
            path = "/rest/api/2/serverInfo"
            body = self.checked("GET", self._sent("GET", path, deadline=deadline)).json()
            if not isinstance(body, dict) or not (body.get("deploymentType") or body.get("version")):
                raise Transient("jira serverInfo: a 200 that does not say which Jira this is")
            self._deployment = "cloud" if body.get("deploymentType") == "Cloud" else "data_center"
        return self._deployment == "cloud"

    def me(self, deadline: Deadline) -> str:
        """Who writes our comments: account id on Cloud, user key on Data Center. Raises `Permanent` for nobody."""
        if not self._me:
            found = user_id(self.get("/myself", deadline=deadline).json())
            if not found:
                raise Transient("jira myself: a 200 without a user")
            self._me = found
        return self._me

    def get(self, path: str, params: Mapping[str, Any] | None = None, *, deadline: Deadline) -> Response:
        """A read that must succeed."""
        return self.checked("GET", self.send("GET", path, params=params, deadline=deadline))

    def send(
        self,
        method: str,
        path: str,
        *,
        deadline: Deadline,
        params: Mapping[str, Any] | None = None,
        payload: Any = None,
    ) -> Response:
        """One request below `/rest/api/N`. Any status is a `Response`; network faults are `Transient`."""
        root = "/rest/api/3" if self.cloud(deadline) else "/rest/api/2"
        return self._sent(method, root + path, deadline=deadline, params=params, payload=payload)

    def checked(self, method: str, response: Response) -> Response:
        """The response when it is a success. An error names the limit that was hit or why a login was denied."""
        reason = next((f" ({response.headers[name][:80]})" for name in REASONS if name in response.headers), "")
        try:
            return checked(method, response, wait=wait_seconds)
        except Transient as error:
            raise Transient(f"{error}{reason}", retry_after=error.retry_after) from error
        except Permanent as error:
            raise Permanent(f"{error}{reason}") from error

    def _sent(self, method: str, path: str, **options: Any) -> Response:
        response = self._http.request(method, path, **options)
        reason = response.headers.get("x-seraph-loginreason", "")
        if response.status < 300 and REFUSED_LOGINS & set(reason.replace(",", " ").split()):
            # Jira then answers as for a visitor: an empty list would look like "no alerts".
            raise Permanent(f"{method} {response.url}: Jira refused the credentials ({reason[:80]})")
        return response


def user_id(user: object) -> str:
    """What a user is known by: the account id on Cloud, the key (older: the name) on Data Center; "" for none."""
    if not isinstance(user, dict):
        return ""
    found = (user.get(name) for name in ("accountId", "key", "name"))
    return next((value for value in found if isinstance(value, str) and value), "")


def wait_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds until Jira takes requests again: `Retry-After`, else `X-RateLimit-Reset`, by the server's clock."""
    seconds = retry_after(headers)
    reset = parse_time(headers.get("x-ratelimit-reset"))
    if seconds is not None or reset is None:
        return seconds
    now = server_time(headers) or datetime.now(UTC)
    return max(0.0, (reset - now).total_seconds())
