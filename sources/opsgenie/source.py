"""OpsGenie and JSM Operations as sources of alerts: poll, search, fetch, webhooks; notes are the reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.alert import Alert, parse_time
from agent.deadline import Clock, Deadline
from agent.errors import RootcausedError, Transient
from agent.report import Report
from sources.opsgenie import webhook
from sources.opsgenie.alerts import read, text_of
from sources.opsgenie.client import OpsApi
from sources.opsgenie.config import JsmOpsConfig, OpsGenieConfig
from sources.opsgenie.details import Details, Reading
from sources.opsgenie.dialect import Dialect
from sources.opsgenie.envelope import listed, single
from sources.opsgenie.jsm import JsmOpsDialect
from sources.opsgenie.notes import Notes, is_ours
from sources.opsgenie.paging import OPEN, Walk, both, grouped
from sources.opsgenie.v2 import OpsGenieDialect
from sources.port import Broken, Delivery, Page, Receipt

MAX_RELATED_CHARS = 8_000
MAX_WORD_CHARS = 80

Sleep = Callable[[float], None]


class OpsAlerts:
    """Source and destination in one, for either API: reports are notes on the alert."""

    def __init__(
        self,
        name: str,
        config: OpsGenieConfig | JsmOpsConfig,
        dialect: Dialect,
        *,
        tag: str,
        sleep: Sleep,
        clock: Clock,
    ) -> None:
        self.name = name
        self.kind = dialect.kind
        self._config = config
        self._dialect = dialect
        self._api = OpsApi(dialect)
        self._details = Details(self._api, dialect)
        self._notes = Notes(self._api, dialect, limit=config.max_note_chars, tag=tag, sleep=sleep, clock=clock)

    def poll(self, cursor: str, *, deadline: Deadline) -> Iterator[Page]:
        """First all states since `cursor` (a time of the server's), so that new alerts have their details read first;
        then everything open, however old.

        An alert that is missed heals with the next poll, and one that opens and closes between two polls is
        in the first list.
        """
        walk = Walk(self._api, self._dialect, deadline)
        reading = self._details.reading(deadline)
        last = parse_time(cursor)
        if last is None:
            walk.look(self._selection)
        since = self._since(last, walk.server_time)
        if since is not None:
            for items in walk.run(self._selection, since):
                yield self._page(items, reading)
        newest = walk.newest
        for items in walk.run(both(OPEN, self._selection)):
            yield self._page(items, reading)
        yield Page(alerts=(), cursor=_moved(last, newest if since else walk.newest, walk.server_time) or cursor)

    def search(self, query: str, *, limit: int, deadline: Deadline) -> Iterator[Page]:
        """Alerts by a query in the search language of OpsGenie, of all ages; open ones when it is blank."""
        left = limit
        reading = self._details.reading(deadline)
        wanted = both(grouped(query) or OPEN, self._selection)
        for items in Walk(self._api, self._dialect, deadline).run(wanted):
            page = self._page(items[:left], reading)
            left -= len(items)
            yield page
            if left <= 0:
                return

    def fetch(self, native_id: str, *, deadline: Deadline, known: Alert | None = None) -> Alert | None:
        """The alert as it is now, with description and details."""
        del known  # the id is enough here
        path = self._details.path(native_id)
        response = self._api.send("GET", path, params=self._dialect.by_id, deadline=deadline)
        if response.status == 404:
            return None
        item = single(self._api.checked("GET", response), f"{self.kind} alert")
        self._details.keep(native_id, item)
        alert = read(self.name, item, url=self._dialect.link(native_id))
        if isinstance(alert, Broken):
            raise Transient(f"{self.kind} alert {native_id[:40]}: {alert.reason}")
        return alert

    def related(self, alert: Alert, *, deadline: Deadline) -> str:
        """What people and other tools noted, and the alert's text where the poll had not read it; not our own notes."""
        parts = [
            f"Note of {at}, by {author}:\n{text}" for at, author, text in self._notes.of_others(alert.id, deadline)
        ]
        if not alert.body and (body := self._body(alert, deadline)):
            parts.append(f"The alert in full:\n{body}")
        text = "\n\n".join(parts)
        return text if len(text) <= MAX_RELATED_CHARS else f"{text[:MAX_RELATED_CHARS]}\n[cut]"

    def receive(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        """One action with the shared secret. Actions that tell nothing new are ignored, with the reason."""
        secret = self._config.webhook_token
        given = headers.get(self._config.webhook_header.lower(), "")
        webhook.verify(secret.get_secret_value() if secret else "", given)
        event = webhook.read_event(body)
        delivery = webhook.delivery_id(body)
        if reason := self._ignored(event):
            return Delivery(delivery_id=delivery, ignored=reason)
        item = webhook.as_item(event)
        native = text_of(item.get("id")) if isinstance(item, dict) else ""
        alert = read(self.name, item, url=self._dialect.link(native))
        if isinstance(alert, Broken):
            return Delivery(delivery_id=delivery, broken=(alert,))
        if alert.resolved and alert.ends_at is None:
            alert = alert.model_copy(update={"ends_at": alert.updated_at})
        return Delivery(delivery_id=delivery, alerts=(alert,))

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """Our own note on the alert, by author and marker."""
        return self._notes.find(alert, deadline)

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """A note, sent once; when the reply is lost, `find` tells whether it arrived."""
        return self._notes.publish(alert, report, previous, deadline)

    @property
    def notice(self) -> str:
        """What the operator must know at start-up; "" when nothing."""
        return self._config.notice

    def check(self, *, deadline: Deadline) -> str:
        """Why an empty poll need not mean that all is well; "" when alerts can be seen. Raises as `poll` does.

        Without visibility both APIs answer with empty lists instead of a refusal.
        """
        response = self._api.get(self._dialect.alerts, {self._dialect.size: "1"}, deadline=deadline)
        if listed(response, f"{self.kind} alerts").items:
            return ""
        return (
            "not a single alert is visible, open or closed; unless the account is new, the credentials lack access:"
            " the user (or the API key's team) must belong to the team that gets the alerts"
        )

    @property
    def _selection(self) -> str:
        return grouped(self._config.query)

    def _since(self, last: datetime | None, began: datetime | None) -> datetime | None:
        overlap = timedelta(seconds=self._config.overlap_seconds)
        if last is not None:
            return last - overlap
        return began - timedelta(seconds=self._config.lookback_seconds) - overlap if began else None

    def _page(self, items: list[object], reading: Reading) -> Page:
        alerts: list[Alert] = []
        broken: list[Broken] = []
        for item in items:
            whole, problem = reading.complete(item)
            native = text_of(item.get("id")) if isinstance(item, dict) else ""
            found = read(self.name, whole, url=self._dialect.link(native), problem=problem)
            if isinstance(found, Broken):
                broken.append(found)
            else:
                alerts.append(found)
        return Page(alerts=tuple(alerts), broken=tuple(broken))

    def _body(self, alert: Alert, deadline: Deadline) -> str:
        """It only enriches, so a failure costs nothing else."""
        try:
            whole = read(self.name, self._details.read(alert.id, deadline))
        except RootcausedError:
            return ""
        return whole.body if isinstance(whole, Alert) else ""

    def _ignored(self, event: Mapping[str, Any]) -> str:
        """Why there is nothing to admit; "" when there is."""
        action = webhook.action_of(event)
        alert = event.get("alert")
        if action == "addnote":
            note = alert.get("note") if isinstance(alert, dict) else None
            return "our own note" if is_ours(note) else "a note; notes are read when the alert is investigated"
        if action not in webhook.ADMITTED:
            return f"action {str(event['action'])[:MAX_WORD_CHARS]!r} tells of no new state"
        return ""


class OpsGenie(OpsAlerts):
    """OpsGenie by its REST API v2, which ends on 2027-04-05."""

    def __init__(
        self, name: str, config: OpsGenieConfig, *, sleep: Sleep = time.sleep, clock: Clock = time.monotonic
    ) -> None:
        super().__init__(name, config, OpsGenieDialect(config, sleep), tag=config.tag, sleep=sleep, clock=clock)


class JsmOps(OpsAlerts):
    """Jira Service Management Operations."""

    def __init__(
        self, name: str, config: JsmOpsConfig, *, sleep: Sleep = time.sleep, clock: Clock = time.monotonic
    ) -> None:
        super().__init__(name, config, JsmOpsDialect(config, sleep), tag="", sleep=sleep, clock=clock)


def _moved(last: datetime | None, newest: datetime | None, began: datetime | None) -> str:
    """Where the next poll starts: the newest alert met, by the server's clock when there was none on the first poll.

    Never later than the server's clock at our first request: what came after may have been passed over.
    """
    reached = max((at for at in (last, newest or (None if last else began)) if at is not None), default=None)
    if reached is None:
        return ""
    reached = min(reached, began) if began else reached
    return reached.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
