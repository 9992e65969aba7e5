"""Services as far as lists and descriptions show them: their ports, what they select, and what stands behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene

_PORT = re.compile(r"(?P<port>\d{1,5})(?::\d{1,5})?(?:->(?P<target>[a-z0-9-]{1,15}))?/(?P<protocol>TCP|UDP|SCTP)")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}:(\d{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """`backends` is None where no list of endpoints was seen; without a ready pod the list is empty."""

    name: str
    row: Observation
    ports: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    selector: str = ""
    backends: tuple[str, ...] | None = None
    backend_row: Observation | None = None

    @property
    def empty(self) -> bool:
        return self.backends == ()


def services(scene: Scene) -> Mapping[str, Service]:
    """By name; empty where none were listed."""
    return scene.once("services", _services)


def _services(scene: Scene) -> Mapping[str, Service]:
    endpoints = {row.about.name: row for row in scene.of(Fact.OBJECT) if row.about.kind == "endpoint"}
    found = {}
    for row in scene.of(Fact.OBJECT):
        if row.about.kind == "service" and row.about.name:
            found[row.about.name] = _service(row, endpoints.get(row.about.name))
    return found


def _service(row: Observation, behind: Observation | None) -> Service:
    told = [_PORT.search(part) for part in row.values.get("port(s)", row.values.get("ports", "")).split(",")]
    ports = [match for match in told if match]
    backends = None
    if behind is not None and "more" not in behind.values.get("endpoints", ""):
        backends = tuple(dict.fromkeys(_ADDRESS.findall(behind.values.get("endpoints", ""))))
    return Service(
        name=row.about.name,
        row=row,
        ports=tuple(match["port"] for match in ports),
        protocols=tuple(match["protocol"] for match in ports),
        selector=row.values.get("selector", ""),
        backends=backends,
        backend_row=behind,
    )


def declared_ports(workload: str, scene: Scene) -> frozenset[str]:
    """The ports that the containers of a workload say they listen on."""
    told = (ports for ports in scene.of(Fact.PORTS) if scene.owner(ports.about).name == workload)
    return frozenset(port for ports in told for port in ports.values["ports"].split())
