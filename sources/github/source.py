"""GitHub as a source of issues: poll, search, fetch, webhooks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from agent.alert import Alert, parse_time
from agent.deadline import Clock, Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.report import Report
from sources.github import webhook
from sources.github.client import GitHubApi
from sources.github.comments import Comments
from sources.github.config import GitHubConfig
from sources.github.issues import Ref, is_pull_request, no_repository, read, repository_of
from sources.github.paging import Walk, stamp
from sources.github.search import full_query, hits
from sources.github.timeline import labels, timeline
from sources.github.transport import Gone
from sources.port import Broken, Delivery, Page, Receipt

MAX_RELATED_CHARS = 8_000
MAX_COMMENT_SHOWN_CHARS = 2_000


class GitHub:
    """Source and destination in one: reports are comments on the issue."""

    kind = "github"

    def __init__(
        self,
        name: str,
        config: GitHubConfig,
        *,
        clock: Clock = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self._config = config
        self._api = GitHubApi(config, clock=clock, wall=wall, sleep=sleep)
        self._comments = Comments(self._api, config.max_comment_chars)

    def poll(self, cursor: str, *, deadline: Deadline) -> Iterator[Page]:
        """Of each repository everything open, then all states since its last update seen; then what `search` finds.

        A repository that fails keeps its place in the cursor and costs no other: what failed is raised at the end.
        """
        since = read_cursor(cursor)
        moved: dict[str, datetime] = {}
        faults: list[RootcausedError] = []
        for repository in self._config.repositories if self._config.labels else ():
            try:
                newest = yield from self._changes(repository, since.get(repository), deadline)
            except RootcausedError as error:
                faults.append(error)
                newest = since.get(repository)
            if newest is not None:
                moved[repository] = newest
        try:
            yield from self._searched(self._config.search, deadline) if self._config.search else ()
        except RootcausedError as error:
            faults.append(error)
        yield Page(alerts=(), cursor=write_cursor(moved))
        if faults:
            raise _united(faults)

    def search(self, query: str, *, limit: int, deadline: Deadline) -> Iterator[Page]:
        """Issues by GitHub's own search, newest first; open ones unless the query says otherwise."""
        left = limit
        for page in self._searched(query, deadline):
            yield Page(alerts=page.alerts[:left], broken=page.broken)
            left -= len(page.alerts)
            if left <= 0:
                return

    def fetch(self, native_id: str, *, deadline: Deadline, known: Alert | None = None) -> Alert | None:  # noqa: ARG002
        """The issue as it is now; None when it was deleted. A transferred one is `Permanent` and says where it is."""
        ref = self._ref(native_id)
        response = self._api.look(ref.path, deadline=deadline)
        if response is None:
            self._require(ref.repository, deadline)
            return None
        issue = response.json()
        if is_pull_request(issue):
            raise Permanent(f"github: {ref} is a pull request, not an issue")
        alert = read(self.name, ref.repository, issue, self._config)
        if isinstance(alert, Broken) or alert.id != str(ref):
            raise Transient(f"github: a 200 that is not issue {ref}")
        return alert

    def related(self, alert: Alert, *, deadline: Deadline) -> str:
        """The newest of what people and other tools wrote, what the labels mean, and what happened to the issue."""
        ref = self._ref(alert.id)
        parts = [_cut(text, MAX_COMMENT_SHOWN_CHARS) for text in self._comments.of_others(ref, deadline)]
        for heading, lines_of in (("Labels", labels), ("Timeline", timeline)):
            try:
                lines = lines_of(self._api, ref, deadline)
            except RootcausedError as error:  # they only enrich
                lines = [f"could not be read: {error}"]
            if lines:
                parts.append("\n".join([f"{heading}:", *lines]))
        text = "\n\n".join(parts)
        return text if len(text) <= MAX_RELATED_CHARS else f"[earlier ones cut]\n{text[-MAX_RELATED_CHARS:]}"

    def receive(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        """One signed event. What tells nothing new is ignored, with the reason."""
        secrets = [secret.get_secret_value() for secret in self._config.webhook_secrets]
        webhook.verify(secrets, headers.get("x-hub-signature-256", ""), body)
        payload = webhook.read_payload(body)
        event, delivery = headers.get("x-github-event", ""), headers.get("x-github-delivery", "")
        if reason := webhook.ignored(event, payload, self._config):
            return Delivery(delivery_id=delivery, ignored=reason)
        alert = read(self.name, webhook.repository_in(payload), payload.get("issue"), self._config)
        if isinstance(alert, Broken):
            return Delivery(delivery_id=delivery, broken=(alert,))
        return Delivery(delivery_id=delivery, alerts=(alert,))

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """Our own comment on the issue, by author and marker."""
        return self._comments.find(self._ref(alert.id), deadline)

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """A comment, or the earlier one edited. Sent once; when the reply is lost, `find` tells whether it arrived."""
        return self._comments.publish(self._ref(alert.id), report, previous, deadline)

    def _ref(self, native: str) -> Ref:
        """Raises `Permanent` for an issue of a repository that is not ours to read or write."""
        ref = Ref.parse(native)
        if ref.repository not in self._config.repositories:
            raise Permanent(f"github: {ref.repository} is not among repositories")
        return ref

    def _changes(
        self, repository: str, last: datetime | None, deadline: Deadline
    ) -> Generator[Page, None, datetime | None]:
        """The pages of one repository. Returns where its next poll may start: a time of the server's own."""
        walk = Walk(self._api, repository, deadline)
        labelled = {"labels": ",".join(self._config.labels)}
        for issues in walk.run({"state": "open", **labelled}, None):
            yield self._page(repository, issues)
        since = self._since(last, walk.server_time or walk.newest)
        if since is not None:
            for issues in walk.run({"state": "all", **labelled}, since):
                yield self._page(repository, issues)
        times = [at for at in (last, walk.newest) if at is not None]
        return max(times) if times else walk.server_time

    def _since(self, last: datetime | None, began: datetime | None) -> datetime | None:
        overlap = timedelta(seconds=self._config.overlap_seconds)
        if last is not None:
            return last - overlap
        return began - timedelta(seconds=self._config.lookback_seconds) - overlap if began else None

    def _searched(self, query: str, deadline: Deadline) -> Iterator[Page]:
        config = self._config
        for found in hits(self._api, full_query(query, config.repositories, config.labels), deadline):
            for repository in config.repositories:
                if issues := [issue for issue in found if repository_of(issue) == repository]:
                    yield self._page(repository, issues)
            if strays := tuple(no_repository(issue) for issue in found if not repository_of(issue)):
                yield Page(alerts=(), broken=strays)

    def _page(self, repository: str, issues: Iterable[object]) -> Page:
        items = [read(self.name, repository, issue, self._config) for issue in issues if not is_pull_request(issue)]
        return Page(
            alerts=tuple(item for item in items if isinstance(item, Alert)),
            broken=tuple(item for item in items if isinstance(item, Broken)),
        )

    def _require(self, repository: str, deadline: Deadline) -> None:
        """Raises `Permanent` when it is the repository that can't be read: GitHub says 404 for both."""
        try:
            body = self._api.get(f"/repos/{repository}", deadline=deadline).json()
        except Gone as error:
            raise Permanent(f"{error} ({repository} is gone, or the credentials may not read it)") from None
        if isinstance(body, dict) and body.get("has_issues") is False:
            raise Permanent(f"github: {repository} has its issues turned off")


def read_cursor(cursor: str) -> dict[str, datetime]:
    """The last update seen of each repository; what can't be read starts afresh."""
    try:
        times = json.loads(cursor)
    except ValueError:
        return {}
    found = {str(name): parse_time(at) for name, at in times.items()} if isinstance(times, dict) else {}
    return {name: at for name, at in found.items() if at is not None}


def write_cursor(times: Mapping[str, datetime]) -> str:
    return json.dumps({name: stamp(at) for name, at in times.items()}, sort_keys=True)


def _united(faults: list[RootcausedError]) -> RootcausedError:
    """One error for all: worth another try when one of them is."""
    if len(faults) == 1:
        return faults[0]
    message = "; ".join(map(str, faults))
    passing = [fault for fault in faults if isinstance(fault, Transient)]
    if not passing:
        return Permanent(message)
    waits = [fault.retry_after for fault in passing if fault.retry_after is not None]
    return Transient(message, retry_after=max(waits, default=None))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n[cut]"
