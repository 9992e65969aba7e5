"""What becomes of a new alert: investigated, skipped, or left to the report of another one that it belongs to.

Every decision is a pure function of the alert, the settings and what the store says (`View`). The store then makes it
durable in one step, and refuses when its view has changed meanwhile: then it is decided afresh.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import to_jsonable_python

from agent.alert import Alert, Severity
from worker.matching import all_hold
from worker.settings import MaintenanceSettings, Settings

TRACKERS = ("jira", "github")  # people file there: two tickets of one component are not one incident
SYNONYMS = {
    "cluster": ("cluster", "cluster_name", "kube_cluster_name", "k8s_cluster_name", "k8s.cluster.name"),
    "namespace": ("namespace", "exported_namespace", "kubernetes_namespace", "kube_namespace", "k8s.namespace.name"),
}
STORM = "*"  # the scope of what joins a storm
PATIENCE_SECONDS = 300.0  # when a follower looks at its lead again, if nothing tells it to before
KEEP_SECONDS = 86_400  # how long the store remembers groups, by its own clock
MAX_LABEL_CHARS = 120
MAX_SCOPE_CHARS = 200
URGENCY = (Severity.INFO, Severity.UNKNOWN, Severity.WARNING, Severity.ERROR, Severity.CRITICAL)
NOTHING_CAME = ("skipped", "failed")
STILL_AT_WORK = ("queued", "investigating", "awaiting_approval")


def _list(value: object) -> object:
    return value or []  # an empty Lua table is an object in JSON


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Group(Part):
    """A lead and how long alerts have been joining it: times of firing in ms since 1970."""

    lead: str
    state: str
    first: int
    last: int
    size: int = 1
    critical: bool = False


class Kin(Part):
    """An earlier alert of the same fingerprint. `lead` is empty when it was investigated itself."""

    key: str
    at: int
    state: str
    lead: str = ""
    outcome: str = ""
    severity: str = ""


class View(Part):
    """What the store says. `state` is the alert's own ("" for a new one); groups and kin are newest first; `recent`
    and `today` count kin within the flapping window and since midnight, `started` what counts towards a storm."""

    version: str
    state: str = ""
    groups: Annotated[tuple[Group, ...], BeforeValidator(_list)] = ()
    storm: Annotated[tuple[Group, ...], BeforeValidator(_list)] = ()
    kin: Annotated[tuple[Kin, ...], BeforeValidator(_list)] = ()
    started: int = 0
    recent: int = 0
    today: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the store is asked and, once decided, told. Times are ms since 1970, spans ms unless they say otherwise.

    `lead` empty: investigate, after `hold`. `counts`: it would have been investigated but for a storm.
    `label` says in words what joined.
    """

    at: int
    scope: str
    recent_since: int
    midnight: int
    storm_since: int
    storm_cap: int
    version: str = ""
    keep: int = KEEP_SECONDS  # s
    skip: str = ""
    skip_until: int = 0
    lead: str = ""
    follows: str = ""
    reason: str = ""
    hold: int = 0
    patience: int = int(PATIENCE_SECONDS * 1000)
    counts: bool = False
    label: str = ""
    why: str = ""

    def as_json(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class Ruling:
    """One rule's answer and what it rested on."""

    rule: str
    applies: bool
    says: str
    inputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An alert as it is decided on. `at` is when it fired, `now` the wall clock; `kind` is the source's."""

    alert: Alert
    at: datetime
    now: datetime
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    plan: Plan
    rulings: tuple[Ruling, ...]


def sighting(alert: Alert, now: datetime, kind: str = "") -> Sighting:
    """Alerts count by when they fired, so that a late poll or an outage of the ticket system changes no decision."""
    fired = alert.starts_at
    return Sighting(alert=alert, at=fired if fired and fired <= now else now, now=now, kind=kind)


def question(seen: Sighting, settings: Settings) -> Plan:
    """The plan of an alert that nothing was decided on yet: what the store needs to know to answer with a `View`."""
    at = seen.at
    return Plan(
        at=_ms(at),
        scope=scope_of(seen, settings),
        recent_since=_ms(at) - int(settings.noise.flapping_seconds * 1000),
        midnight=_ms(at.replace(hour=0, minute=0, second=0, microsecond=0)),
        storm_since=_ms(at) - int(settings.storm.seconds * 1000),
        storm_cap=settings.storm.investigations,
        label=label_of(seen.alert),
    )


def scope_of(seen: Sighting, settings: Settings) -> str:
    """The place alerts are grouped by; empty where there is none, or none that means anything."""
    grouping = settings.grouping
    if not grouping.enabled or seen.kind in TRACKERS:
        return ""
    values = [_value(seen.alert, name) for name in grouping.labels]
    if not values[-1]:
        values[-1] = f"service {seen.alert.service}" if seen.alert.service else ""
    if not values[-1]:
        return ""
    place = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    return place if len(place) <= MAX_SCOPE_CHARS else hashlib.sha256(place.encode()).hexdigest()


def label_of(alert: Alert) -> str:
    """What the alert is, in words that alerts of a kind share."""
    place = _value(alert, "namespace") or alert.service
    return f"{alert.labels.get('alertname') or alert.title}{f' in {place}' if place else ''}"[:MAX_LABEL_CHARS]


def decide(seen: Sighting, settings: Settings, view: View, asked: Plan | None = None) -> Decided:
    """The first rule that applies decides; where none does, the alert is investigated. `asked` is the question that
    the view answers, where the caller has it already."""
    plan = replace(asked or question(seen, settings), version=view.version)
    rulings: list[Ruling] = []
    for ruling, change in _rules(seen, settings, view, plan):
        rulings.append(ruling)
        if ruling.applies:
            plan = replace(plan, **change)
            break
    else:
        rulings.append(Ruling("investigate", True, "nothing speaks against it", {"scope": plan.scope}))
        plan = replace(plan, counts=True, reason="investigate")
    return Decided(replace(plan, why=why(seen, rulings)), tuple(rulings))


def why(seen: Sighting, rulings: list[Ruling]) -> str:
    """The decision as it is kept with the record."""
    return json.dumps({"at": seen.at.isoformat(), "rulings": told(rulings)}, separators=(",", ":"))


def told(rulings: Iterable[Ruling]) -> list[dict[str, Any]]:
    """As JSON data."""
    return [
        {"rule": one.rule, "applies": one.applies, "says": one.says, "inputs": to_jsonable_python(one.inputs)}
        for one in rulings
    ]


Answer = tuple[Ruling, dict[str, Any]]


def _rules(seen: Sighting, settings: Settings, view: View, plan: Plan) -> Iterator[Answer]:
    yield _resolved(seen)
    yield _filtered(seen, settings)
    yield _under_maintenance(seen, settings)
    if view.state in ("", "skipped"):  # what a ticket system reopens has its own report, which is edited
        yield _flapping(settings, view)
        yield _cooling_down(seen, settings, view, plan)
        yield _grouped(seen, settings, view, plan)
        yield _storming(settings, view, plan)


def _resolved(seen: Sighting) -> Answer:
    inputs = {"status": seen.alert.status.value}
    return Ruling("resolved", seen.alert.resolved, f"it is {seen.alert.status.value}", inputs), {"skip": "resolved"}


def _filtered(seen: Sighting, settings: Settings) -> Answer:
    for number, rule in enumerate(settings.filters):
        if _of(rule.sources, seen) and all_hold(rule.matchers, seen.alert):
            reason = f"filtered: {rule.reason or ', '.join(rule.matchers)}"
            return Ruling("filter", True, reason, {"filter": number, "matchers": rule.matchers}), {"skip": reason}
    return Ruling("filter", False, "no filter matches", {"filters": len(settings.filters)}), {}


def _under_maintenance(seen: Sighting, settings: Settings) -> Answer:
    for name, window in settings.maintenance.items():
        if not (_of(window.sources, seen) and all_hold(window.matchers, seen.alert)):
            continue
        if until := _ends(window, seen.now):
            reason = f"maintenance {name} until {until:%Y-%m-%d %H:%M} UTC"
            inputs = {"window": name, "crontab": window.crontab, "minutes": window.minutes, "now": seen.now.isoformat()}
            return Ruling("maintenance", True, reason, inputs), {"skip": reason, "skip_until": _ms(until)}
    inputs = {"windows": len(settings.maintenance), "now": seen.now.isoformat()}
    return Ruling("maintenance", False, "no window matches now", inputs), {}


def _ends(window: MaintenanceSettings, now: datetime) -> datetime | None:
    """When the window that is open now ends. The last of those that overlap counts."""
    from worker.crontab import next_time  # imports Celery, which a configuration without crontabs does not need

    length, until = window.minutes * 60, None
    begins = next_time(window.crontab, now.timestamp() - length)
    if begins <= now.timestamp():
        until = datetime.fromtimestamp(begins + length, UTC)
    return until


def _flapping(settings: Settings, view: View) -> Answer:
    noise, count = settings.noise, view.recent + 1
    origin = _origin(view)
    inputs = {"times": count, "limit": noise.flapping_times, "seconds": noise.flapping_seconds, "origin": origin}
    if not (noise.flapping_times and count >= noise.flapping_times and origin):
        return Ruling("flapping", False, "it has not fired often enough to flap", inputs), {}
    says = f"flapping: {_nth(count)} time in {noise.flapping_seconds / 60:g} min, same as {origin.key}"
    return Ruling("flapping", True, says, inputs), {"lead": origin.key, "follows": says, "reason": says}


def _cooling_down(seen: Sighting, settings: Settings, view: View, plan: Plan) -> Answer:
    cooldown, origin = settings.noise.cooldown_seconds, _origin(view)
    inputs = {"cooldown_seconds": cooldown, "origin": origin, "today": view.today + 1}
    if not cooldown or origin is None or plan.at - origin.at > cooldown * 1000:
        return Ruling("cooldown", False, "no report on its kind within the cooldown", inputs), {}
    if changed := _changed(seen.alert, origin):
        return Ruling("cooldown", False, f"something changed: {changed}", inputs), {}
    says = f"same cause as {origin.key}, {_nth(view.today + 1)} time today"
    return Ruling("cooldown", True, says, inputs), {"lead": origin.key, "follows": says, "reason": says}


def _changed(alert: Alert, origin: Kin) -> str:
    before = Severity(origin.severity or Severity.UNKNOWN)
    if URGENCY.index(alert.severity) > URGENCY.index(before):
        return f"severity {before.value}, now {alert.severity.value}"
    return "the earlier report names no cause" if origin.outcome == "inconclusive" else ""


def _grouped(seen: Sighting, settings: Settings, view: View, plan: Plan) -> Answer:
    critical = seen.alert.severity is Severity.CRITICAL
    refused: dict[str, str] = {}
    for group in view.groups:
        if not (no := _not_joinable(group, settings, view, plan.at, critical)):
            says = f"same incident as {group.lead}"
            inputs = {"scope": plan.scope, "group": group, "refused": refused}
            return Ruling("group", True, says, inputs), {"lead": group.lead, "follows": says, "reason": says}
        refused[group.lead] = no
    inputs = {"scope": plan.scope, "refused": refused}
    return Ruling("group", False, "no open group in its place" if plan.scope else "it has no place", inputs), {}


def _not_joinable(group: Group, settings: Settings, view: View, at: int, critical: bool) -> str:
    """Why an alert does not belong to a group; empty when it does."""
    grouping = settings.grouping
    quiet, window = grouping.quiet_seconds * 1000, grouping.window_seconds * 1000
    if group.state in NOTHING_CAME:
        return f"its lead was {group.state}"
    if not group.first - quiet <= at <= group.last + quiet:
        return "it is over: nothing joined for too long"
    if at > group.first + window:
        return "it is over: its window has ended"
    if critical and not group.critical:
        return "a critical alert does not wait for a less urgent one"
    again = any(group.lead in (kin.key, kin.lead) for kin in view.kin)
    if again and group.state not in STILL_AT_WORK:
        return "this kind is in it already and fired again after the report"
    return ""


def _storming(settings: Settings, view: View, plan: Plan) -> Answer:
    storm = settings.storm
    inputs = {"started": view.started, "limit": storm.investigations, "seconds": storm.seconds}
    if not storm.enabled or view.started < storm.investigations:
        return Ruling("storm", False, "the rate of new investigations is below the limit", inputs), {}
    for group in view.storm:
        begun = group.first - storm.seconds * 1000 <= plan.at <= group.first + storm.window_seconds * 1000
        if begun and group.state not in NOTHING_CAME:
            says = f"part of the storm that {group.lead} stands for"
            change = {"lead": group.lead, "follows": says, "reason": says, "counts": True}
            return Ruling("storm", True, says, {**inputs, "group": group}), change
    says = "storm: it stands for the alerts that follow"
    change = {"scope": STORM, "hold": int(storm.hold_seconds * 1000), "reason": says, "counts": True}
    return Ruling("storm", True, says, inputs), change


def _origin(view: View) -> Kin | None:
    """The newest alert of the kind that was investigated itself."""
    return next((kin for kin in view.kin if not kin.lead and kin.state not in NOTHING_CAME), None)


def _of(sources: tuple[str, ...], seen: Sighting) -> bool:
    return not sources or seen.alert.source in sources


def _value(alert: Alert, name: str) -> str:
    return next((alert.labels[same] for same in SYNONYMS.get(name, (name,)) if alert.labels.get(same)), "")


def _nth(count: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{'th' if count % 100 in (11, 12, 13) else ending}"


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
