"""What is known at one point of the investigation: who owns a pod, where it runs, who calls whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, TypeVar

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
from agent.rules.pod import RECENT_SECONDS, Pod
from agent.rules.subject import Subject
from agent.rules.transcript import Reading

Made = TypeVar("Made")


_CONTROLLED = re.compile(r"Controlled By:\s+(?P<kind>[A-Za-z]{1,40})/(?P<name>[a-z0-9.-]{1,253})")
# The template and the pod; a digit in the one of two parts tells it from a longer name.
_SUFFIX = re.compile(r"(?=[a-z-]{0,20}\d)[a-z0-9]{5,10}-[a-z0-9]{4,5}|\d{1,3}")
_CURRENT = frozenset({Fact.POD, Fact.WORKLOAD, Fact.OBJECT, Fact.USAGE, Fact.SERIES, Fact.CONDITION})
# Events of the ordinary course of a pod; they tell of no trouble.
_ROUTINE = frozenset({"Pulled", "Pulling", "Created", "Started", "Scheduled", "SuccessfulCreate", "SuccessfulDelete"})
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
    {
        "the",
        "a",
        "server",
        "host",
        "database",
        "on",
        "to",
        "is",
        "upstream",
        "remote",
        "any",
        "localhost",
        "all",
        "backend",
        "peer",
    }
)


@lru_cache(maxsize=8_192)
def target(text: str) -> tuple[str, str]:
    """The host and port a line says it could not use; empty where it names none."""
    for pattern in _TARGETS:
        if (match := pattern.search(text, 0, 2_000)) and is_host(match["host"]):
            host = match["host"].rstrip(".")
            if host.lower() not in _ENGLISH and not host.startswith("127."):
                return host, match["port"] or ""
    return "", ""


class Scene:
    """Built once a turn from the observations; nothing in it changes afterwards."""

    def __init__(self, subject: Subject, observations: Sequence[Observation], readings: Sequence[Reading] = ()) -> None:
        self.subject = subject
        self.observations = tuple(observations)
        self.readings = tuple(readings)
        self._by_fact: dict[Fact, list[Observation]] = {}
        for observation in self.observations:
            self._by_fact.setdefault(observation.fact, []).append(observation)
        running = dict(_running(self.of(Fact.CONTAINER)))
        now = max((one.at for one in self.of(Fact.EVENT, Fact.LOG) if one.at is not None), default=None)
        self.pods = {
            row.about.name: Pod(row, subject.starts_at, running.get(row.about.name), now) for row in self.of(Fact.POD)
        }
        self._made: dict[str, Any] = {}
        self._owned: dict[Thing, Thing] = {}
        self._owners = {**dict(_owners(self.of(Fact.CONDITION))), **dict(_listed_owners(self.of(Fact.WORKLOAD)))}
        self._mark_superseded()
        self._addresses = dict(_addresses(self))
        self.callers = _callers(self)

    def of(self, *facts: Fact) -> Iterator[Observation]:
        for fact in facts:
            yield from self._by_fact.get(fact, ())

    def _mark_superseded(self) -> None:
        """Left-overs of a roll-out that went well are not what an alert is about."""
        for workload, pods in self._pods_by_workload.items():
            ready = [pod.created for pod in pods if pod.ready]
            if not ready or len(ready) < self._desired.get(workload, float("inf")) or None in ready:
                continue
            first = min(at for at in ready if at is not None)
            for pod in pods:
                if not pod.ready and pod.created is not None and pod.created < first:
                    self.pods[pod.name] = replace(pod, superseded=True)
        del self._pods_by_workload  # made anew from the marked ones

    def owner(self, thing: Thing) -> Thing:
        """What a person would call broken: the workload behind a pod, a replica set or a service."""
        if thing not in self._owned:
            self._owned[thing] = self._owner(thing)
        return self._owned[thing]

    def _owner(self, thing: Thing) -> Thing:
        if thing.kind == "pod":
            return Thing("workload", self._owners.get(thing.name) or self._made_by(thing.name))
        if thing.kind == "replicaset":
            return Thing("workload", self._owners.get(thing.name) or workload_of_replicaset(thing.name))
        return Thing("workload", thing.name) if thing.kind in _WORKLOAD_KINDS else thing

    def _made_by(self, pod: str) -> str:
        """The alert's workload, where the pod bears its name; else by the suffixes that controllers add."""
        told = self.subject.deployment or self.subject.service
        rest = pod.removeprefix(f"{told}-")
        if told and rest != pod and _SUFFIX.fullmatch(rest):
            return told
        return workload_of_pod(pod)

    def host(self, host: str) -> Thing:
        """What a host name or an address in an error stands for."""
        name = self._addresses.get(host, "") or short_host(host)
        if is_address(name) or not is_object_name(name) or "." in name:
            return Thing("host", host)
        return Thing("workload", name)

    def once(self, name: str, make: Callable[[Scene], Made]) -> Made:
        """What `make` makes of this scene, made once: many rules ask for the same comparison."""
        if name not in self._made:
            self._made[name] = make(self)
        made: Made = self._made[name]
        return made

    @cached_property
    def _pods_by_workload(self) -> Mapping[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            found.setdefault(self.owner(pod.row.about).name, []).append(pod)
        return found

    def pods_of(self, workload: str) -> list[Pod]:
        return self._pods_by_workload.get(workload, [])

    @cached_property
    def standing(self) -> Sequence[Observation]:
        """The events of this alert's time that tell of what is not overcome."""
        told = (event for event in self.of(Fact.EVENT) if event.values.get("reason") not in _ROUTINE)
        return [event for event in told if self.since(event) and not self.overcome(event)]

    @cached_property
    def focus(self) -> Thing:
        """The workload the alert is about, under the name its pods have: `api` may be deployed as `api-eu`."""
        name = self.subject.workload
        owners = {self.owner(pod.row.about).name for pod in self.pods.values()}
        if name and name not in owners:
            longer = sorted(owner for owner in owners if owner.startswith(f"{name}-"))
            name = longer[0] if len(longer) == 1 else name
        return Thing("workload", name) if name else NOTHING

    @cached_property
    def calls(self) -> Mapping[str, frozenset[str]]:
        """Caller to callees, as a mesh or tracing reports them."""
        found: dict[str, set[str]] = {}
        for call in self.of(Fact.CALLS):
            found.setdefault(call.values["caller"], set()).add(call.values["callee"])
        return {caller: frozenset(names) for caller, names in found.items()}

    def upstream(self, workload: str) -> set[str]:
        """Everything that calls it, directly or through others."""
        reached, edge = {workload}, {workload}
        while edge:
            edge = {caller for caller, callees in self.calls.items() if callees & edge} - reached
            reached |= edge
        return reached - {workload}

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
            told = {callee for callee, callers in self.callers.items() if callers & edge}
            edge = told.union(*(self.calls.get(caller, ()) for caller in edge)) - reached
            reached |= edge
        return reached - {workload}

    def since(self, observation: Observation) -> bool:
        """Whether it belongs to this alert. A list shows what is now, however old the objects in it are."""
        return observation.fact in _CURRENT or self.young(observation)

    def target(self, line: Observation) -> tuple[str, str]:
        """The host and port that a line says could not be used."""
        return target(line.text)

    def callee(self, line: Observation) -> str:
        """The workload a log line complains of; empty where it names none, or its own."""
        host, _ = target(line.text)
        name = self.host(host).name if host else ""
        return name if name != self.owner(line.about).name else ""

    def overcome(self, event: Observation) -> bool:
        """Whether an event tells of what is over: its pod is well or was replaced, its workload has all its pods."""
        if event.about.kind == "pod":
            pod = self.pods.get(event.about.name)
            return pod.healthy or pod.outlived(event) if pod else bool(self.pods_of(self.owner(event.about).name))
        if event.about.kind in ("replicaset", "deployment", "statefulset"):
            return self._complete(self.owner(event.about).name, event)
        return False

    def _complete(self, workload: str, event: Observation) -> bool:
        desired = self._desired.get(workload)
        if desired is not None:
            return len(self.pods_of(workload)) >= desired
        return any(pod.startswith(f"{event.about.name}-") for pod in self.pods)

    @cached_property
    def _desired(self) -> Mapping[str, float]:
        """How many pods each deployment wants."""
        rows = [row for row in self.of(Fact.WORKLOAD) if row.about.kind == "deployment"]
        wanted = ((row.about.name, row.number("desired")) for row in reversed(rows))
        return {name: desired for name, desired in wanted if desired is not None}

    def gone(self, observation: Observation) -> bool:
        """Whether it is about a pod that ended before the alert, or that its workload no longer lists."""
        ended, started = parse_time(observation.values.get("ends")), self.subject.starts_at
        if ended is not None and started is not None and ended < started:
            return True
        if observation.about.kind != "pod" or observation.about.name in self.pods:
            return False
        return bool(self.pods_of(self.owner(observation.about).name))

    def young(self, observation: Observation) -> bool:
        """Whether it began not long before the alert, or at an unknown time."""
        started = self.subject.starts_at
        if observation.at is not None and started is not None:
            return (started - observation.at).total_seconds() < RECENT_SECONDS
        age = observation.number("age")
        return age is None or age < RECENT_SECONDS


def _running(states: Iterable[Observation]) -> Iterator[tuple[str, datetime]]:
    found: dict[str, datetime] = {}
    for state in states:
        since = parse_time(state.values.get("running_since"))
        if since is not None:
            found[state.about.name] = max(since, found.get(state.about.name, since))
    yield from found.items()


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
