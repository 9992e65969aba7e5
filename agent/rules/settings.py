"""Where programs are told to connect: addresses in their settings, and in what they complain of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.rules.names import is_object_name, short_host
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.scene import Scene

_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.:-]{0,30}://)?(?:[^@/\s]{1,60}@)?"
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,252}):(?P<port>\d{1,5})(?:[/?].{0,200})?"
)
_HOST_KEY = re.compile(r"(?P<stem>.{0,80}?)_?(?:HOST|HOSTNAME|ADDR|ADDRESS|SERVER|SVC)", re.IGNORECASE)
_PORT_KEY = re.compile(r"(?P<stem>.{0,80}?)_?PORT", re.IGNORECASE)
_FAILS = re.compile(
    r"connection refused|ECONNREFUSED|UnableToConnect|no such host|UnknownHost|Communications link failure"
    r"|could not connect|can't connect|connect(?:ion)? (?:failed|timed out)|i/o timeout|ETIMEDOUT"
    r"|failed to connect|getaddrinfo|Name or service not known|could not translate host",
    re.IGNORECASE,
)
DATABASE = re.compile(r"mysql|postgres|maria|mongo|oracle|mssql|jdbc|(?:^|[-_])db(?:$|[-_])|database", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a workload is told to connect. `seen` is the setting, or the line that complains."""

    host: str
    port: str
    seen: Observation

    @property
    def setting(self) -> bool:
        return self.seen.fact is Fact.SETTING


def fails_to_connect(line: Observation) -> re.Match[str] | None:
    return _FAILS.search(line.text)


def complaints(scene: Scene) -> Mapping[str, list[Observation]]:
    """By workload, the log lines that tell of a failed connection."""
    return scene.once("complaints", _complaints)


def _complaints(scene: Scene) -> Mapping[str, list[Observation]]:
    found: dict[str, list[Observation]] = {}
    for line in scene.of(Fact.LOG):
        if fails_to_connect(line):
            found.setdefault(scene.owner(line.about).name, []).append(line)
    return found


def targets(scene: Scene) -> Mapping[str, list[Target]]:
    """By workload. A config map's or secret's values are those of the workloads that name it."""
    return scene.once("targets", _targets)


def _targets(scene: Scene) -> Mapping[str, list[Target]]:
    found: dict[str, list[Target]] = {}
    for workload, settings in _by_workload(scene).items():
        found[workload] = [*_whole(settings), *_paired(settings)]
    for workload, lines in complaints(scene).items():
        for line in lines:
            host, port = scene.target(line)
            if host and port:
                found.setdefault(workload, []).append(Target(host, port, line))
    return found


def _by_workload(scene: Scene) -> Mapping[str, list[Observation]]:
    users: dict[str, set[str]] = {}
    for setting in scene.of(Fact.SETTING):
        if setting.values["name"].startswith("envFrom."):
            users.setdefault(setting.values["value"], set()).add(scene.owner(setting.about).name)
    grouped: dict[str, list[Observation]] = {}
    for setting in scene.of(Fact.SETTING):
        shared = setting.about.kind in ("configmap", "secret")
        holders = users.get(setting.about.name, set()) if shared else {scene.owner(setting.about).name}
        for workload in holders:
            grouped.setdefault(workload, []).append(setting)
    return grouped


def _whole(settings: list[Observation]) -> Iterator[Target]:
    for setting in settings:
        if match := _ADDRESS.fullmatch(setting.values["value"]):
            yield Target(match["host"], match["port"], setting)


def _paired(settings: list[Observation]) -> Iterator[Target]:
    """`X_HOST` and `X_PORT`: the port's line is what is cited."""
    hosts: dict[str, str] = {}
    for setting in settings:
        if match := _HOST_KEY.fullmatch(setting.values["name"]):
            hosts[match["stem"].upper()] = setting.values["value"]
    for setting in settings:
        match = _PORT_KEY.fullmatch(setting.values["name"])
        host = hosts.get(match["stem"].upper(), "") if match and match["stem"] else ""
        if host and setting.values["value"].isdigit() and ":" not in host:
            yield Target(host, setting.values["value"], setting)


def database_of(client: Thing, scene: Scene) -> Thing:
    """The one database that a client is configured with, by the workload that serves it; else the client itself."""
    told = targets(scene).get(client.name, ())
    hosts = {short_host(target.host) for target in told if DATABASE.search(target.host)}
    if len(hosts) != 1:
        return client
    host = hosts.pop()
    workloads = {scene.owner(pod.row.about).name for pod in scene.pods.values()}
    serving = [name for name in workloads if host == name or host.startswith(f"{name}-")]
    return Thing("workload", max(serving, key=len, default=host)) if is_object_name(host) else client
