"""What is known at one point of the investigation: who owns a pod, where it runs, who calls whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from agent.alert import parse_time
from agent.rules.names import (
    is_address,
    is_host,
    is_object_name,
    short_host,
    workload_of_pod,
    workload_of_replicaset,
)
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.subject import Subject
from agent.rules.transcript import Reading

MIN_QUIET_SECONDS = 180.0
STEADY = 3.0  # times the mean time between its restarts
RECENT_SECONDS = 6 * 3_600  # a restart older than this is not part of this alert

_CONTROLLED = re.compile(r"Controlled By:\s+(?P<kind>[A-Za-z]{1,40})/(?P<name>[a-z0-9.-]{1,253})")
_CURRENT = frozenset({Fact.POD, Fact.WORKLOAD, Fact.OBJECT, Fact.USAGE, Fact.SERIES, Fact.CONDITION})
_WORKLOAD_KINDS = frozenset({"deployment", "statefulset", "daemonset", "workload", "service", "endpoint", "job"})

# The host a client names when it could not reach it, in the words of the common runtimes.
_HOST = r"(?P<host>[A-Za-z0-9][-A-Za-z0-9.]{1,200})"
_PORT = r"(?::(?P<port>\d{1,5}))?"
_TARGETS = (
    re.compile(
        r"lookup (?P<host>[A-Za-z0-9][-A-Za-z0-9.]{1,200}?)(?P<port>)(?: on [0-9a-f.:\[\]]{3,60})?:", re.IGNORECASE
    ),
    re.compile(r"dial (?:tcp|udp)[46]?:? (?P<host>[A-Za-z0-9][-A-Za-z0-9.]{0,200}?)" + _PORT + r"(?:[: ]|$)"),
    re.compile(
        r"(?:connection refused|connect|connecting|connection) (?:to|with) (?:server |host |database )?"
        r"(?:at |on )?[\"'`]?(?:[a-z]{1,12}://)?" + _HOST + r"(?:[:/](?P<port>\d{1,5}))?",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT) " + _HOST + _PORT),
    re.compile(r"host=[\"']?" + _HOST + r"[\"']?,? port=(?P<port>\d{1,5})"),
    re.compile(r"UnknownHostException: " + _HOST + r"(?P<port>)"),
    re.compile(
        r"(?:could not translate host name|getaddrinfo(?: failed)?(?: for)?|resolve host(?:name)?:?) [\"'`]?"
        + _HOST
        + r"(?P<port>)",
        re.IGNORECASE,
    ),
    re.compile(r"(?:https?|grpc|redis|postgres(?:ql)?|mysql|amqp|mongodb)://(?:[^@/\s\"']{1,60}@)?" + _HOST + _PORT),
    re.compile(r"(?<![\w.-])(?P<host>[A-Za-z][-A-Za-z0-9.]{1,200}|\d{1,3}(?:\.\d{1,3}){3}):(?P<port>\d{2,5})(?![\d:])"),
)
_ENGLISH = frozenset(
    {"the", "a", "server", "host", "database", "on", "to", "is", "upstream", "remote", "any", "localhost"}
)


def target(text: str) -> tuple[str, str]:
    """The host and port a line says it could not use; empty where it names none."""
    for pattern in _TARGETS:
        if (match := pattern.search(text, 0, 2_000)) and is_host(match["host"]):
            host = match["host"].rstrip(".")
            if host.lower() not in _ENGLISH and not host.startswith("127."):
                return host, match["port"] or ""
    return "", ""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod by the row that lists it."""

    row: Observation
    alerted_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.row.about.name

    @property
    def node(self) -> str:
        return self.row.values.get("node", "")

    @property
    def status(self) -> str:
        return self.row.values.get("status", "")

    @property
    def finished(self) -> bool:
        return self.status in ("Completed", "Succeeded")

    @property
    def ready(self) -> bool:
        values = self.row.values
        return values.get("ready") == values.get("containers") and self.status == "Running"

    @property
    def restarted(self) -> bool:
        """Whether it restarted lately; a restart of unknown time counts, one that it settled after does not."""
        return bool(self.row.number("restarts")) and not self._settled

    @property
    def _settled(self) -> bool:
        """Ready, and running for much longer than it used to between restarts: a start-up that took some attempts."""
        quiet, age = self._quiet_seconds, self._age_seconds
        if quiet is None:
            return False
        if quiet >= RECENT_SECONDS:
            return True
        between = (age - quiet) / (self.row.number("restarts") or 1.0) if age is not None else RECENT_SECONDS
        return self.ready and quiet >= max(MIN_QUIET_SECONDS, STEADY * between)

    @property
    def _quiet_seconds(self) -> float | None:
        ended = parse_time(self.row.values.get("last_end", "").rpartition(" ")[2])
        if ended is not None and self.alerted_at is not None:
            return (self.alerted_at - ended).total_seconds()
        return self.row.number("restarted")

    @property
    def _age_seconds(self) -> float | None:
        created = parse_time(self.row.values.get("created"))
        if created is not None and self.alerted_at is not None:
            return (self.alerted_at - created).total_seconds()
        return self.row.number("age")

    @property
    def healthy(self) -> bool:
        return self.finished or (self.ready and not self.restarted)


class Scene:
    """Built once a turn from the observations; nothing in it changes afterwards."""

    def __init__(self, subject: Subject, observations: Sequence[Observation], readings: Sequence[Reading] = ()) -> None:
        self.subject = subject
        self.observations = tuple(observations)
        self.readings = tuple(readings)
        self._by_fact: dict[Fact, list[Observation]] = {}
        for observation in self.observations:
            self._by_fact.setdefault(observation.fact, []).append(observation)
        self.pods = {row.about.name: Pod(row, subject.starts_at) for row in self.of(Fact.POD)}
        self._owners = {**dict(_owners(self.of(Fact.CONDITION))), **dict(_listed_owners(self.of(Fact.WORKLOAD)))}
        self._addresses = dict(_addresses(self))
        self.callers = _callers(self)

    def of(self, *facts: Fact) -> Iterator[Observation]:
        for fact in facts:
            yield from self._by_fact.get(fact, ())

    def owner(self, thing: Thing) -> Thing:
        """What a person would call broken: the workload behind a pod, a replica set or a service."""
        if thing.kind == "pod":
            return Thing("workload", self._owners.get(thing.name) or workload_of_pod(thing.name))
        if thing.kind == "replicaset":
            return Thing("workload", self._owners.get(thing.name) or workload_of_replicaset(thing.name))
        return Thing("workload", thing.name) if thing.kind in _WORKLOAD_KINDS else thing

    def host(self, host: str) -> Thing:
        """What a host name or an address in an error stands for."""
        name = self._addresses.get(host, "") or short_host(host)
        if is_address(name) or not is_object_name(name) or "." in name:
            return Thing("host", host)
        return Thing("workload", name)

    def pods_of(self, workload: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if self.owner(pod.row.about).name == workload]

    @cached_property
    def focus(self) -> Thing:
        """The workload the alert is about, under the name its pods have: `api` may be deployed as `api-eu`."""
        name = self.subject.workload
        owners = {self.owner(pod.row.about).name for pod in self.pods.values()}
        if name and name not in owners:
            longer = sorted(owner for owner in owners if owner.startswith(f"{name}-"))
            name = longer[0] if len(longer) == 1 else name
        return Thing("workload", name) if name else NOTHING

    def near(self, thing: Thing) -> int:
        """2 where the alert is about it, 1 where something the alert is about calls it or runs on it, else 0."""
        subject, focus = self.subject, self.focus.name
        if thing.name and thing.name in (focus, subject.pod, subject.service, subject.node, subject.volume):
            return 2
        if subject.instance and thing.name and subject.instance.startswith(thing.name):
            return 2
        if focus and thing.name in self.downstream(focus):
            return 1
        if any(pod.node == thing.name for pod in self.pods_of(focus)):
            return 1
        return 1 if thing.kind == "namespace" and thing.name == subject.namespace else 0

    def downstream(self, workload: str, hops: int = 3) -> set[str]:
        """The names that errors of this workload lead to, directly or through others."""
        reached, edge = {workload}, {workload}
        for _ in range(hops):
            edge = {callee for callee, callers in self.callers.items() if callers & edge} - reached
            reached |= edge
        return reached - {workload}

    def since(self, observation: Observation) -> bool:
        """Whether it belongs to this alert. A list shows what is now, however old the objects in it are."""
        return observation.fact in _CURRENT or self.young(observation)

    def young(self, observation: Observation) -> bool:
        """Whether it began not long before the alert, or at an unknown time."""
        started = self.subject.starts_at
        if observation.at is not None and started is not None:
            return (started - observation.at).total_seconds() < RECENT_SECONDS
        age = observation.number("age")
        return age is None or age < RECENT_SECONDS


def _owners(settings: Iterable[Observation]) -> Iterator[tuple[str, str]]:
    for line in settings:
        if line.values.get("section") == "owners":
            # Each is the owner of the one before, so the last that could be read is the workload.
            last = line.values["value"].split(", ")[-1].partition("/")[2].partition(" ")[0]
            if is_object_name(last):
                yield line.about.name, last
        elif line.values.get("section") == "Controlled By" and (match := _CONTROLLED.fullmatch(line.text)):
            made_by_deployment = match["kind"] == "ReplicaSet"
            yield line.about.name, workload_of_replicaset(match["name"]) if made_by_deployment else match["name"]


def _listed_owners(rows: Iterable[Observation]) -> Iterator[tuple[str, str]]:
    for row in rows:
        kind, _, name = row.values.get("owner", "").partition("/")
        if kind == "Deployment" and is_object_name(name):
            yield row.about.name, name


def _addresses(scene: Scene) -> Iterator[tuple[str, str]]:
    for row in scene.of(Fact.OBJECT):
        address = row.values.get("cluster-ip", "")
        if row.about.kind == "service" and is_address(address):
            yield address, row.about.name
    for pod in scene.pods.values():
        if pod.row.values.get("ip"):
            yield pod.row.values["ip"], scene.owner(pod.row.about).name


def _callers(scene: Scene) -> Mapping[str, frozenset[str]]:
    """Callee to callers, from the log lines in which a caller complains of a host."""
    callers: dict[str, set[str]] = {}
    for line in scene.of(Fact.LOG):
        host, _ = target(line.text)
        callee, caller = scene.host(host).name if host else "", scene.owner(line.about).name
        if callee and caller and callee != caller:
            callers.setdefault(callee, set()).add(caller)
    return {callee: frozenset(names) for callee, names in callers.items()}


def earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in times if at is not None), default=None)
