"""Jira as a source of issues: poll, search, fetch, webhooks; and as a destination of reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.alert import Alert, parse_time
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.report import Report
from sources.jira import permissions, webhook
from sources.jira.client import JiraApi
from sources.jira.comments import Comments, issue_path
from sources.jira.config import JiraConfig
from sources.jira.context import changes_of, links_of
from sources.jira.issues import FIELDS, read
from sources.jira.jql import STABLE_ORDER, open_or_recent, split_order
from sources.jira.paging import PAGE, Walk
from sources.port import Broken, Delivery, Page, Receipt

DEEP_OVERLAP = timedelta(hours=24)  # once an hour: the search index was seen to lag by hours
DEEP = " deep"  # in a cursor: the next poll takes the long overlap
MAX_RELATED_CHARS = 8_000


class Jira:
    """Source and destination in one: reports are comments on the issue."""

    kind = "jira"

    def __init__(self, name: str, config: JiraConfig) -> None:
        self.name = name
        self._config = config
        self._api = JiraApi(config)
        self._comments = Comments(self._api, config)
        self._checked = False  # whether credentials and JQL were found good

    def poll(self, cursor: str, *, deadline: Deadline) -> Iterator[Page]:
        """Everything open, however old, and all states since `cursor` (the server's time of the last success).

        The index lags, so the window overlaps; an issue that is missed heals with the next poll.
        """
        self._check(deadline)
        walk = self._walk(deadline)
        for issues in walk.run(open_or_recent(self._config.selected, self._since(cursor))):
            yield self._page(issues)
        began = walk.server_time or walk.newest
        yield Page(alerts=(), cursor=_cursor(began, cursor) if began else cursor)

    def check(self, *, deadline: Deadline) -> str:
        """What the account may not do but must; "" when nothing is missing."""
        return permissions.missing(self._config, seconds=max(1.0, min(20.0, deadline.remaining)))

    def search(self, query: str, *, limit: int, deadline: Deadline) -> Iterator[Page]:
        """Issues by JQL, in its order; without a condition, those of this source that are not done."""
        try:
            condition, order = split_order(query)
        except ValueError as error:
            raise Permanent(f"jira query: {error}") from error
        condition = condition or f"{self._config.selected} AND statusCategory != Done"
        left = limit
        walk = self._walk(deadline, page=max(1, min(PAGE, limit)))
        for issues in walk.run(f"{condition} ORDER BY {order or STABLE_ORDER}"):
            yield self._page(issues[:left])
            left -= len(issues)
            if left <= 0:
                return

    def fetch(
        self,
        native_id: str,
        *,
        deadline: Deadline,
        known: Alert | None = None,  # noqa: ARG002  (an issue is found by its id)
    ) -> Alert | None:
        """The issue as it is now, by its numeric id or by a key as people type it."""
        params = {"fields": ",".join(self._fields())}
        response = self._api.send("GET", issue_path(native_id), params=params, deadline=deadline)
        if response.status == 404:
            return None
        alert = read(self.name, self._api.checked("GET", response).json(), self._config)
        if isinstance(alert, Broken):
            raise Transient(f"jira issue {native_id[:40]}: {alert.reason}")
        return alert

    def related(self, alert: Alert, *, deadline: Deadline) -> str:
        """What people and other tools commented, linked issues and the latest changes; ours are left out."""
        params = {"fields": "issuelinks,parent,subtasks", "expand": "changelog"}
        issue = self._api.get(issue_path(alert.id), params, deadline=deadline).json()
        if not isinstance(issue, dict):
            raise Transient("jira issue: a 200 that is no issue")
        comments = self._comments.of_others(alert.id, deadline)
        parts = [f"Comment of {at}, by {author}:\n{text}" for at, author, text in comments]
        for title, lines in (("Linked issues", links_of(issue)), ("Latest changes", changes_of(issue))):
            if listed := "\n".join(f"- {line}" for line in lines):
                parts.append(f"{title}:\n{listed}")
        text = "\n\n".join(parts)
        return text if len(text) <= MAX_RELATED_CHARS else f"{text[:MAX_RELATED_CHARS]}\n[cut]"

    def receive(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        """One signed event. What tells nothing new is ignored, with the reason."""
        secrets = [secret.get_secret_value() for secret in self._config.webhook_secrets]
        webhook.verify(secrets, headers.get("x-hub-signature", ""), body)
        event = webhook.read_event(body)
        delivery = headers.get("x-atlassian-webhook-identifier", "")
        if reason := webhook.ignored(event, self._config.projects):
            return Delivery(delivery_id=delivery, ignored=reason)
        alert = read(self.name, event.get("issue"), self._config)
        if isinstance(alert, Broken):
            return Delivery(delivery_id=delivery, broken=(alert,))
        return Delivery(delivery_id=delivery, alerts=(alert,))

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """Our own comment on the issue, by author and marker."""
        return self._comments.find(alert, deadline)

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """A comment, or the earlier one edited. Sent once; when the reply is lost, `find` tells whether it arrived."""
        return self._comments.publish(alert, report, previous, deadline)

    def _walk(self, deadline: Deadline, page: int = PAGE) -> Walk:
        return Walk(self._api, self._fields(), deadline, page)

    def _fields(self) -> tuple[str, ...]:
        return (*FIELDS, *dict.fromkeys(self._config.label_fields.values()))

    def _page(self, issues: list[object]) -> Page:
        items = [read(self.name, issue, self._config) for issue in issues]
        return Page(
            alerts=tuple(item for item in items if not isinstance(item, Broken)),
            broken=tuple(item for item in items if isinstance(item, Broken)),
        )

    def _since(self, cursor: str) -> str:
        """From when on changes are asked for. The first poll names an age, so that no clock of ours counts."""
        last = parse_time(cursor.removesuffix(DEEP))
        overlap = timedelta(seconds=self._config.overlap_seconds)
        if last is None:
            minutes = (timedelta(seconds=self._config.lookback_seconds) + overlap) // timedelta(minutes=1)
            return f"-{minutes + 1}m"
        if cursor.endswith(DEEP):
            overlap = max(overlap, DEEP_OVERLAP)
        return str(int((last - overlap).timestamp() * 1000))

    def _check(self, deadline: Deadline) -> None:
        """Once: the credentials are somebody's, and Jira takes the JQL. On Data Center the search itself says so."""
        if self._checked:
            return
        self._api.me(deadline)
        condition, _ = split_order(self._config.jql)
        if condition and self._api.cloud(deadline):
            self._parse(condition, deadline)
        self._checked = True

    def _parse(self, jql: str, deadline: Deadline) -> None:
        params = {"validation": "strict"}
        path = "/jql/parse"
        response = self._api.send("POST", path, params=params, payload={"queries": [jql]}, deadline=deadline)
        if response.status in (403, 404):  # a token without the scope for it; the search will say
            return
        body = self._api.checked("POST", response).json()
        queries: Any = body.get("queries") if isinstance(body, dict) else None
        if not isinstance(queries, list) or not queries or not isinstance(queries[0], dict):
            raise Transient("jira jql/parse: a 200 without a verdict")
        if errors := queries[0].get("errors"):
            raise Permanent(f"jira: the configured jql is refused: {'; '.join(map(str, errors))[:500]}")


def _cursor(began: datetime, last: str) -> str:
    """With the clock's next hour, the next poll goes deep."""
    before = parse_time(last.removesuffix(DEEP))
    text = began.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    hour = timedelta(hours=1)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return text + DEEP if before is not None and (began - epoch) // hour != (before - epoch) // hour else text
