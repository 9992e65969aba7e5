"""Who we are to GitHub: a token's user, or an App's installation whose token is renewed before it expires."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import SecretStr

from agent.alert import parse_time
from agent.deadline import Clock, Deadline
from agent.errors import Permanent, Transient
from agent.http import Response, checked, server_time
from sources.github.config import GitHubConfig
from sources.github.rs256 import Key, UnreadableKey, json_web_token, read_key
from sources.github.transport import GitHubHttp, Unaccepted

JWT_SECONDS = 540  # GitHub takes ten minutes at most
DRIFT_SECONDS = 60  # a token issued in the future is refused, so it is dated back
RENEW_SECONDS = 300.0  # before an installation token expires


@dataclass(frozen=True, slots=True)
class Me:
    """The user our comments come back under. An App's bot is known by its login, which nobody else can have."""

    login: str
    id: int | None = None

    def is_author(self, comment: dict[str, Any]) -> bool:
        user = comment.get("user")
        if not isinstance(user, dict):
            return False
        if self.id is not None:
            return user.get("id") == self.id
        return str(user.get("login")).lower() == self.login.lower()


class Auth(Protocol):
    """How requests are signed."""

    def header(self, deadline: Deadline) -> str:
        """The value of `Authorization`."""
        ...

    def forget(self) -> bool:
        """GitHub refused the credential; whether there may be a fresh one."""
        ...

    def me(self, deadline: Deadline) -> Me:
        """Raises `Transient`, or `Permanent` when GitHub does not say who we are."""
        ...


@dataclass(slots=True)
class TokenAuth:
    """A personal access token: what is written with it is its owner's."""

    http: GitHubHttp
    token: SecretStr

    def header(self, deadline: Deadline) -> str:  # noqa: ARG002  (the port's)
        return f"Bearer {self.token.get_secret_value()}"

    def forget(self) -> bool:
        return False

    def me(self, deadline: Deadline) -> Me:
        try:
            user = _object(self.http.signed(self.header(deadline)).get("/user", deadline=deadline))
        except Permanent as error:
            raise Permanent(f"{error} (whose token is it? a token of Actions is nobody's)") from None
        if not isinstance(user.get("id"), int) or not isinstance(user.get("login"), str):
            raise Transient("github: /user without id and login")
        return Me(user["login"], user["id"])


class AppAuth:
    """An App's installation."""

    def __init__(self, http: GitHubHttp, config: GitHubConfig, *, clock: Clock, wall: Callable[[], float]) -> None:
        self._http = http
        self._config = config
        self._clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._token = ""
        self._renew_at = 0.0
        self._ahead = 0.0  # of GitHub's clock before ours, once ours has been refused

    def header(self, deadline: Deadline) -> str:
        with self._lock:
            if not self._token or self._clock() >= self._renew_at:
                self._renew(deadline)
            return f"Bearer {self._token}"

    def forget(self) -> bool:
        self._token = ""
        return True

    def me(self, deadline: Deadline) -> Me:
        app = _object(self._http.signed(self._jwt()).get("/app", deadline=deadline))
        if not isinstance(app.get("slug"), str) or not app["slug"]:
            raise Transient("github: /app without a slug")
        return Me(f"{app['slug']}[bot]")

    def _renew(self, deadline: Deadline) -> None:
        began = self._clock()
        try:
            response = self._ask(deadline)
        except Unaccepted as error:
            at = error.details["at"]
            if at is None:
                raise
            self._ahead = at.timestamp() - self._wall()  # our clock may be wrong: once more by GitHub's
            response = self._ask(deadline)
        body = _object(checked("POST", response))
        token, expires = body.get("token"), parse_time(body.get("expires_at"))
        if not isinstance(token, str) or not token or expires is None:
            raise Transient("github: no installation token in the reply")
        now = server_time(response.headers) or expires  # without a date it is used once
        lifetime = (expires - now).total_seconds()
        self._token, self._renew_at = token, began + max(0.0, lifetime - RENEW_SECONDS)

    def _ask(self, deadline: Deadline) -> Response:
        path = f"/app/installations/{self._config.installation_id}/access_tokens"
        return self._http.signed(self._jwt()).request("POST", path, payload={}, deadline=deadline)

    def _jwt(self) -> str:
        now = int(self._wall() + self._ahead)
        claims = {"iat": now - DRIFT_SECONDS, "exp": now + JWT_SECONDS - DRIFT_SECONDS, "iss": self._config.app_id}
        try:
            return f"Bearer {json_web_token(claims, self._key())}"
        except UnreadableKey as error:
            raise Permanent(f"github: the App's private key: {error}") from None

    def _key(self) -> Key:
        if self._config.private_key is not None:
            return read_key(self._config.private_key.get_secret_value())
        assert self._config.private_key_file is not None
        return read_key(_text(self._config.private_key_file))


def auth_of(config: GitHubConfig, http: GitHubHttp, *, clock: Clock, wall: Callable[[], float]) -> Auth:
    """The credentials the configuration names."""
    if config.token is not None:
        return TokenAuth(http, config.token)
    return AppAuth(http, config, clock=clock, wall=wall)


def _object(response: Response) -> dict[str, Any]:
    body = response.json()
    if not isinstance(body, dict):
        raise Transient(f"github: a {response.status} that is not an object")
    return body


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeError) as error:
        raise Permanent(f"github: private_key_file can't be read: {type(error).__name__}") from None
