"""Prometheus Alertmanager: alerts in by API v2 and webhook v4; it has no tickets, so reports go to a sink."""

from __future__ import annotations

import hmac
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from agent.alert import Alert, parse_time
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.http import Http, server_time
from sources.alertmanager.alerts import read
from sources.configs import AlertmanagerConfig
from sources.port import Broken, Delivery, Malformed, Page, Unauthorised

PAGE = 100
MAX_PLACES = 3  # queries for what fires beside an alert
MAX_MATCHER_CHARS = 2_000  # of one request
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")  # a label outside this can't be matched on by older versions
RESTART_GRACE = timedelta(minutes=3)  # Prometheus sends what is firing again within about a minute
SELECTED = [("active", "true"), ("silenced", "false"), ("inhibited", "false"), ("unprocessed", "true")]


class Alertmanager:
    """A cluster of Alertmanagers; any healthy member will do, and what they list is united."""

    kind = "alertmanager"

    def __init__(self, name: str, config: AlertmanagerConfig, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.name = name
        self._config = config
        self._members = [_client(url, config, sleep) for url in (config.url, *config.members)]

    def poll(self, cursor: str, *, deadline: Deadline) -> Iterator[Page]:
        """Everything that fires now and is neither silenced nor inhibited. There is no window: nothing else is kept."""
        yield from self._pages(self._config.matchers, deadline)
        yield Page(alerts=(), cursor=cursor or "all")  # every poll starts afresh; the cursor only says one succeeded

    def search(self, query: str, *, limit: int, deadline: Deadline) -> Iterator[Page]:
        """What fires now. `query` is matchers with commas between, such as `severity="critical",team=~"pay.*"`."""
        left = limit
        for page in self._pages((*self._config.matchers, *split_matchers(query)), deadline):
            yield Page(alerts=page.alerts[:left], broken=page.broken)
            left -= len(page.alerts)
            if left <= 0:
                return

    def fetch(self, native_id: str, *, deadline: Deadline, known: Alert | None = None) -> Alert | None:
        """The alert when it is still listed, silenced or not; None when it is resolved.

        Its labels narrow the list to it, which else is read whole: there is no look-up by fingerprint.
        Alerts are in memory only, so a list that lacks it soon after a restart proves nothing: `Transient`.
        """
        alerts, _ = self._united(_narrowed(known.labels) if known else [], deadline)
        if native_id in alerts:
            return alerts[native_id]
        if self._restarted(deadline):
            raise Transient(f"alertmanager {self.name}: restarted just now, its list is not complete", retry_after=60)
        return None

    def related(self, alert: Alert, *, deadline: Deadline) -> str:
        """Other alerts that fire now and share a label that says where: at most 20, one a line."""
        places = [name for name in _PLACES if name in alert.labels]
        alerts: dict[str, Alert] = {}
        for name in places[:MAX_PLACES]:
            alerts |= self._united([*SELECTED, *_narrowed({name: alert.labels[name]})], deadline)[0]
        lines = []
        for other in alerts.values():
            shared = [name for name in places if alert.labels[name] == other.labels.get(name)]
            if shared and other.key != alert.key:
                lines.append(
                    f"- {other.title[:200]} (same {', '.join(shared)}; {other.severity}; since {other.starts_at})"
                )
        return "\n".join(["Also firing now:", *lines[:20]]) if lines else ""

    def receive(self, headers: Mapping[str, str], body: bytes) -> Delivery:
        """One group. Each alert counts by its own status: a group fires as long as one member does."""
        self._authorise(headers.get("authorization", ""))
        group = _group(body)
        alerts: dict[str, Alert] = {}
        broken: list[Broken] = []
        for item in group["alerts"]:
            alert = read(self.name, item)
            if isinstance(alert, Broken):
                broken.append(alert)
            else:
                alerts[alert.id] = alert
        left_out = group.get("truncatedAlerts")
        if isinstance(left_out, int) and left_out > 0:
            reason = f"{left_out} alerts of this group were left out by max_alerts; the next poll reads them"
            broken.append(Broken(id="", reason=reason, raw=str(group.get("groupKey"))[:500]))
        ignored = "" if alerts or broken else "a group without alerts"
        return Delivery(alerts=tuple(alerts.values()), broken=tuple(broken), ignored=ignored)

    def _authorise(self, header: str) -> None:
        token = self._config.webhook_token
        if token is None:
            raise Unauthorised("no webhook_token is configured, so nothing is taken")
        expected = f"Bearer {token.get_secret_value()}".encode()
        if not hmac.compare_digest(expected, header.encode("utf-8", "replace")):
            raise Unauthorised("the bearer token is missing or wrong")

    def _pages(self, matchers: tuple[str, ...], deadline: Deadline) -> Iterator[Page]:
        params = [*SELECTED, *(("filter", matcher) for matcher in matchers)]
        if self._config.receiver:
            params.append(("receiver", self._config.receiver))
        alerts, broken = self._united(params, deadline)
        if broken:
            yield Page(alerts=(), broken=tuple(broken))
        found = list(alerts.values())
        for start in range(0, len(found), PAGE):
            yield Page(alerts=tuple(found[start : start + PAGE]))

    def _united(self, params: list[tuple[str, str]], deadline: Deadline) -> tuple[dict[str, Alert], list[Broken]]:
        """By id, the fresher of two members' views. Raises what the first member said when none answered."""
        alerts: dict[str, Alert] = {}
        broken: dict[str, Broken] = {}
        faults: list[RootcausedError] = []
        for member in self._members:
            try:
                listed = _listed(member, params, deadline)
            except RootcausedError as error:
                faults.append(error)
                continue
            for item in listed:
                alert = read(self.name, item)
                if isinstance(alert, Broken):
                    broken.setdefault(alert.raw, alert)
                elif alert.id not in alerts or _fresher(alert, alerts[alert.id]):
                    alerts[alert.id] = alert
        if len(faults) == len(self._members):
            raise next((fault for fault in faults if isinstance(fault, Transient)), faults[0])
        return alerts, list(broken.values())

    def _restarted(self, deadline: Deadline) -> bool:
        """Whether every member that answers started a moment ago, by its own clock."""
        ages = [age for member in self._members if (age := _age(member, deadline)) is not None]
        return bool(ages) and max(ages) < RESTART_GRACE


_PLACES = ("service", "instance", "node", "pod", "deployment", "app", "namespace", "job")  # the narrowest first


def _narrowed(labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """Matchers that select these labels: the shortest that fit a request line."""
    matchers = sorted((f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items()), key=len)
    kept, room = [], MAX_MATCHER_CHARS
    for matcher in matchers:
        room -= len(matcher)
        if room >= 0 and _NAME.fullmatch(matcher.partition("=")[0]):
            kept.append(("filter", matcher))
    return kept


def split_matchers(query: str) -> tuple[str, ...]:
    """Matchers with commas between, braces around them or not. Raises `Permanent` that says how they are written."""
    text = query.strip().removeprefix("{").removesuffix("}")
    parts: list[str] = []
    quoted = escaped = False
    start = 0
    for index, c in enumerate(text):
        if c == "," and not quoted:
            parts.append(text[start:index])
            start = index + 1
        quoted ^= c == '"' and not escaped
        escaped = c == "\\" and not escaped
    try:
        config = AlertmanagerConfig(url="http://localhost", matchers=tuple(filter(str.strip, [*parts, text[start:]])))
    except ValueError as error:
        raise Permanent(
            f'alertmanager query: {query[:80]!r} is not matchers like severity="critical",job=~"a.*"'
        ) from error
    return config.matchers


def _client(url: str, config: AlertmanagerConfig, sleep: Callable[[float], None]) -> Http:
    bearer, password = config.bearer_token, config.password
    cert = str(config.cert_file) if config.cert_file else None
    return Http(
        base_url=url,
        headers={"Authorization": f"Bearer {bearer.get_secret_value()}"} if bearer else {},
        auth=(config.username, password.get_secret_value()) if password else None,
        verify=str(config.ca_file) if config.ca_file else True,
        cert=(cert, str(config.key_file)) if cert and config.key_file else cert,
        sleep=sleep,
    )


def _listed(member: Http, params: list[tuple[str, str]], deadline: Deadline) -> list[object]:
    listed = member.get("/api/v2/alerts", params=params, deadline=deadline).json()
    if not isinstance(listed, list):
        raise Transient("alertmanager: a 200 that is not a list of alerts")
    return listed


def _age(member: Http, deadline: Deadline) -> timedelta | None:
    try:
        response = member.get("/api/v2/status", deadline=deadline)
        status = response.json()
    except RootcausedError:
        return None
    now = server_time(response.headers)
    started = parse_time(status.get("uptime")) if isinstance(status, dict) else None
    return now - started if now and started else None


def _fresher(one: Alert, other: Alert) -> bool:
    return one.updated_at is not None and (other.updated_at is None or one.updated_at > other.updated_at)


def _group(body: bytes) -> dict[str, Any]:
    """Raises `Malformed`."""
    try:
        group = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("the body is not JSON") from error
    if not isinstance(group, dict) or not isinstance(group.get("alerts"), list):
        raise Malformed("there is no list of alerts in the body")
    return group
