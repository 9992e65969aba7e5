"""PagerDuty as a source of incidents: poll, search, fetch, webhooks."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.alert import Alert, Status, parse_time
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.report import Report
from sources.configs import PagerDutyConfig
from sources.pagerduty import webhook
from sources.pagerduty.client import PagerDutyApi
from sources.pagerduty.incidents import Details, read, read_details
from sources.pagerduty.notes import Notes, is_ours
from sources.pagerduty.paging import Walk, stamp, window
from sources.pagerduty.query import parse_query
from sources.port import Broken, Delivery, Page, Receipt

OPEN = ["triggered", "acknowledged"]
MAX_DETAIL_READS = 50  # of one poll; an incident without its details is read in full before it is investigated
MAX_DETAILS_KEPT = 5_000
MAX_INNER_ALERTS = 25  # of one incident
MAX_RELATED_CHARS = 8_000


def _now() -> datetime:
    return datetime.now(UTC)


class PagerDuty:
    """Source and destination in one: reports are notes on the incident."""

    kind = "pagerduty"

    def __init__(self, name: str, config: PagerDutyConfig, *, now: Callable[[], datetime] = _now) -> None:
        self.name = name
        self._config = config
        self._now = now  # only for relative times that a person writes in a query
        self._api = PagerDutyApi(config)
        self._notes = Notes(self._api, config)
        self._details: dict[str, Details] = {}  # by incident, so that a poll reads each open incident's alerts once

    def poll(self, cursor: str, *, deadline: Deadline) -> Iterator[Page]:
        """First everything open, however old; then all states since `cursor` (the server's time of the last success).

        An incident that is missed heals with the next poll, and one that opens and closes between two polls is
        in the second list.
        """
        walk = Walk(self._api, deadline)
        reads = iter(range(MAX_DETAIL_READS))
        for incidents in walk.run({"statuses": OPEN, "date_range": "all", **self._filters()}):
            yield self._page(incidents, reads, deadline)
        began = walk.server_time or walk.newest
        since = self._since(cursor, began)
        if began is not None and since is not None:
            recent = window(since, max(began, since) + timedelta(hours=1))
            for incidents in walk.run({"statuses": [*OPEN, "resolved"], **recent, **self._filters()}):
                yield self._page(incidents, reads, deadline)
        yield Page(alerts=(), cursor=stamp(began) if began else cursor)

    def search(self, query: str, *, limit: int, deadline: Deadline) -> Iterator[Page]:
        """Incidents by `name=value` pairs, see `sources/pagerduty/query.py`; open ones of any age by default."""
        left = limit
        params = {**self._filters(), **parse_query(query, now=self._now())}
        for incidents in Walk(self._api, deadline).run(params):
            page = self._page(incidents[:left], iter(()), deadline)
            left -= len(incidents)
            yield page
            if left <= 0:
                return

    def fetch(
        self,
        native_id: str,
        *,
        deadline: Deadline,
        known: Alert | None = None,  # noqa: ARG002 - incidents have a look-up by id
    ) -> Alert | None:
        """The incident as it is now, with what its alerts say."""
        response = self._api.send("GET", _incident(native_id), deadline=deadline)
        if response.status == 404:
            return None
        body = self._api.checked("GET", response).json()
        incident = body.get("incident") if isinstance(body, dict) else None
        details = self._read_details(native_id, deadline)
        self._keep(native_id, details)
        alert = read(self.name, incident, details)
        if isinstance(alert, Broken):
            raise Transient(f"pagerduty incident {native_id[:40]}: {alert.reason}")
        return alert

    def related(self, alert: Alert, *, deadline: Deadline) -> str:
        """What people and other tools noted, and the alerts inside; our own notes are left out."""
        parts = [
            f"Note of {at}, by {author}:\n{text}" for at, author, text in self._notes.of_others(alert.id, deadline)
        ]
        if inside := self._read_details(alert.id, deadline).text:
            parts.append(f"Alerts inside the incident:\n{inside}")
        text = "\n\n".join(parts)
        return text if len(text) <= MAX_RELATED_CHARS else f"{text[:MAX_RELATED_CHARS]}\n[cut]"

    def receive(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        """One signed event. Types that tell nothing new are ignored, with the reason."""
        secrets = [secret.get_secret_value() for secret in self._config.webhook_secrets]
        webhook.verify(secrets, headers.get("x-pagerduty-signature", ""), body)
        event = webhook.read_event(body)
        delivery = headers.get("x-webhook-id") or str(event.get("id") or "")
        if reason := self._ignored(event):
            return Delivery(delivery_id=delivery, ignored=reason)
        alert = read(self.name, event.get("data"))
        if isinstance(alert, Broken):
            return Delivery(delivery_id=delivery, broken=(alert,))
        changes: dict[str, Any] = {"updated_at": parse_time(event.get("occurred_at")) or alert.updated_at}
        if event["event_type"] == "incident.resolved":
            changes |= {"status": Status.RESOLVED, "ends_at": alert.ends_at or changes["updated_at"]}
        return Delivery(delivery_id=delivery, alerts=(alert.model_copy(update=changes),))

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """Our own note on the incident, by author and marker."""
        return self._notes.find(alert, deadline)

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """A note, or the earlier one edited. Sent once; when the reply is lost, `find` tells whether it arrived."""
        return self._notes.publish(alert, report, previous, deadline)

    def _filters(self) -> dict[str, Any]:
        config = self._config
        chosen = {"service_ids": config.service_ids, "team_ids": config.team_ids, "urgencies": config.urgencies}
        return {name: list(values) for name, values in chosen.items() if values}

    def _since(self, cursor: str, began: datetime | None) -> datetime | None:
        overlap = timedelta(seconds=self._config.overlap_seconds)
        if last := parse_time(cursor):
            return last - overlap
        return began - timedelta(seconds=self._config.lookback_seconds) - overlap if began else None

    def _page(self, incidents: list[object], reads: Iterator[int], deadline: Deadline) -> Page:
        alerts: list[Alert] = []
        broken: list[Broken] = []
        for incident in incidents:
            item = read(self.name, incident, self._kept_details(incident, reads, deadline))
            if isinstance(item, Broken):
                broken.append(item)
            else:
                alerts.append(item)
        return Page(alerts=tuple(alerts), broken=tuple(broken))

    def _kept_details(self, incident: object, reads: Iterator[int], deadline: Deadline) -> Details | None:
        """The details of an open incident, read once; None when it has none to read or this poll has read enough."""
        if not isinstance(incident, dict) or incident.get("status") not in OPEN:
            return None
        native = incident.get("id")
        if not isinstance(native, str):
            return None
        if native in self._details:
            return self._details[native]
        if next(reads, None) is None:
            return None
        details = self._read_details(native, deadline)
        self._keep(native, details)
        return details

    def _keep(self, native: str, details: Details) -> None:
        if not details.problem:
            while len(self._details) >= MAX_DETAILS_KEPT:
                self._details.pop(next(iter(self._details)))
            self._details[native] = details

    def _read_details(self, native: str, deadline: Deadline) -> Details:
        """The alerts inside. They only enrich, so a failure is noted and costs nothing else."""
        try:
            params = {"limit": MAX_INNER_ALERTS}
            body = self._api.get(f"{_incident(native)}/alerts", params, deadline=deadline).json()
        except RootcausedError as error:
            return Details(problem=f"the alerts inside could not be read: {error}")
        alerts = body.get("alerts") if isinstance(body, dict) else None
        return read_details(alerts) if isinstance(alerts, list) else Details(problem="the alerts inside are unreadable")

    def _ignored(self, event: Mapping[str, Any]) -> str:
        """Why there is nothing to admit; "" when there is."""
        kind = event["event_type"]
        data = event.get("data")
        if kind == "incident.annotated":
            content = data.get("content") if isinstance(data, dict) else None
            return "our own note" if is_ours(content) else "a note; notes are read when the incident is investigated"
        if kind not in webhook.INCIDENT_EVENTS:
            return f"event type {kind[:80]!r} tells of no incident"
        return self._filtered(data) if isinstance(data, dict) else ""

    def _filtered(self, incident: dict[str, Any]) -> str:
        """The same selection as for the poll."""
        service = incident.get("service")
        service_id = service.get("id") if isinstance(service, dict) else None
        if self._config.service_ids and service_id not in self._config.service_ids:
            return "the service is not among service_ids"
        teams = [team.get("id") for team in incident.get("teams") or () if isinstance(team, dict)]
        if self._config.team_ids and not set(teams) & set(self._config.team_ids):
            return "no team is among team_ids"
        if self._config.urgencies and incident.get("urgency") not in self._config.urgencies:
            return "the urgency is not among urgencies"
        return ""


def _incident(native: str) -> str:
    """The incident's path. Raises `Permanent` for what is no id: `..` would lead elsewhere even when quoted."""
    if not native.strip("."):
        raise Permanent(f"pagerduty: {native[:20]!r} is not an incident id")
    return f"/incidents/{urllib.parse.quote(native, safe='')}"
