"""HTTP to GitHub as us: reads are tried again, each write is sent once, and a move names the new place."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from agent.deadline import Clock, Deadline
from agent.errors import Permanent, RootcausedError
from agent.http import Params, Response
from sources.github.auth import Me, auth_of
from sources.github.config import REPOSITORY, GitHubConfig
from sources.github.limits import Gate
from sources.github.transport import GitHubHttp, Gone, Moved, Unaccepted

HEADERS = {
    "Accept": "application/vnd.github+json",
    "User-Agent": "rootcaused",
    "X-GitHub-Api-Version": "2022-11-28",  # taken by github.com and by every supported Enterprise Server
}
WRITE_SPACING_SECONDS = 1.0  # "wait at least one second between each request" that writes
MAX_PAGE_BYTES = 50_000_000  # a hundred issues or comments of 65,536 characters that JSON writes with six bytes each
_MOVED = re.compile(r"(/repositories/\d{1,20})(?:/issues/(\d{1,10}))?(?:/|$)")


class GitHubApi:
    """One credential's view of the API. Any thread may use it."""

    def __init__(
        self,
        config: GitHubConfig,
        *,
        clock: Clock = time.monotonic,
        wall: Callable[[], float] = time.time,  # only for the date in an App's signed request
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = GitHubHttp(
            base_url=config.url, headers=HEADERS, sleep=sleep, gate=Gate(clock), max_body_bytes=MAX_PAGE_BYTES
        )
        self._auth = auth_of(config, self._http, clock=clock, wall=wall)
        self._clock, self._sleep = clock, sleep
        self._writing = threading.Lock()
        self._next_write = 0.0
        self._me: Me | None = None

    def get(self, path: str, params: Params | None = None, *, deadline: Deadline) -> Response:
        """A read that must succeed. Raises `Transient` or `Permanent` by status; a move names the new place."""
        try:
            return self._as_us(deadline, lambda http: http.get(path, params=params, deadline=deadline))
        except Moved as moved:
            raise Permanent(f"{moved}{self._new_place(moved, deadline)}") from None

    def look(self, path: str, *, deadline: Deadline) -> Response | None:
        """A read of what may be gone: then None."""
        try:
            return self.get(path, deadline=deadline)
        except Gone:
            return None

    def write(self, method: str, path: str, payload: Mapping[str, Any], *, deadline: Deadline) -> Response:
        """One write, sent once, at least a second after the one before. Raises `Gone` on 404 and 410."""
        with self._writing:
            if (wait := self._next_write - self._clock()) > 0:
                self._sleep(min(wait, WRITE_SPACING_SECONDS))
            self._next_write = self._clock() + WRITE_SPACING_SECONDS
            return self._as_us(deadline, lambda http: http.request(method, path, payload=payload, deadline=deadline))

    def me(self, deadline: Deadline) -> Me:
        """Who writes our comments, asked for once."""
        if self._me is None:
            self._me = self._auth.me(deadline)
        return self._me

    def _as_us(self, deadline: Deadline, act: Callable[[GitHubHttp], Response]) -> Response:
        """With a refused credential nothing was done, so a fresh one may be tried, for a write too."""
        http = self._http.signed(self._auth.header(deadline))
        try:
            return act(http)
        except Unaccepted:
            if not self._auth.forget():
                raise
        return act(self._http.signed(self._auth.header(deadline)))

    def _new_place(self, moved: Moved, deadline: Deadline) -> str:
        """What a moved repository or a transferred issue is called now. GitHub redirects to a number."""
        found = _MOVED.match(str(moved.details["path"]))
        if not found:
            return ""
        try:
            body = self._as_us(deadline, lambda http: http.get(found[1], deadline=deadline)).json()
        except RootcausedError:
            return ""
        name = body.get("full_name") if isinstance(body, dict) else None
        if not isinstance(name, str) or not REPOSITORY.fullmatch(name):
            return ""
        return f" (it is {name}#{found[2]} now)" if found[2] else f" (it is {name} now: change `repositories`)"
