"""A program is configured with an address that leads nowhere: a host that does not exist, or a port nobody serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agent.report import NextStep
from agent.rules.changes import trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Finding, Hypothesis, Want, finding
from agent.rules.names import is_address, is_object_name, short_host
from agent.rules.observation import Fact, Thing, quote
from agent.rules.scene import Scene
from agent.rules.services import Service, services
from agent.rules.settings import DATABASE, Target, complaints, fails_to_connect, targets

MAX_ASKED = 2
MIN_SERVICES = 3  # a list as short as this says little about what does not exist


class WrongAddress:
    """Compares the addresses in a workload's settings and complaints with the services there are.

    A setting proves it where the workload complains of that address; a complaint alone may be relayed from another.
    """

    name = "wrong_address"
    title = "a program is configured with a wrong address"
    depth = 27

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        known = services(scene)
        if len(known) < MIN_SERVICES:
            return
        for workload, told in targets(scene).items():
            if findings := tuple(_wrong(workload, told, known, scene)):
                component = Thing("workload", workload)
                said = tuple(_said(workload, scene))
                yield Hypothesis(mechanism=self, component=component, findings=findings + said)

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        yield looks.get("services", scene)
        yield from settings_of(hypothesis.component.name, scene)

    def account(self, hypothesis: Hypothesis, scene: Scene) -> Account:
        host, port, serves = (hypothesis.part(key) for key in ("host", "port", "serves"))
        began = trigger(hypothesis.component.name, scene, "config")
        because = f"service {host} serves {serves}" if serves else f"there is no service {host}"
        variant = "database" if DATABASE.search(f"{host} {hypothesis.part('name')}") else ""
        return Account(did=f"can't connect to port {port} of {host}", because=because, trigger=began, variant=variant)

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        name, namespace = hypothesis.component.name, steps.flag(scene)
        return [
            steps.look("Read its settings", f"kubectl set env deployment/{name}{namespace} --list"),
            steps.look("Compare with the services there are", f"kubectl get services{namespace}"),
            steps.history(hypothesis, scene),
            steps.change(
                "Correct the address",
                "it can't reach what it needs",
                risk="starts a roll-out",
                undo="put the former value back",
            ),
        ]


def settings_of(workload: str, scene: Scene) -> Iterator[Want]:
    """The manifest: what it is deployed with."""
    if is_object_name(workload):
        yield looks.yaml_of(looks.workload_kind(workload, scene), workload, scene)


def look_at_settings(hypothesis: Hypothesis, scene: Scene) -> Iterator[Want]:
    """Of those whose logs tell of it: which server they mean stands there."""
    for name in sorted(hypothesis.affects)[:MAX_ASKED]:
        yield from settings_of(name, scene)


def _wrong(workload: str, told: list[Target], known: Mapping[str, Service], scene: Scene) -> Iterator[Finding]:
    for target in told:
        name = scene.host(target.host).name if is_address(target.host) else short_host(target.host)
        if _elsewhere(target.host, scene) or name == workload:
            continue
        sure = target.setting and _complains(workload, target, scene)
        service = known.get(name)
        parts = {"host": name, "port": target.port, "name": target.seen.values.get("name", "")}
        if service is not None and service.ports and target.port not in service.ports:
            parts["serves"] = f"port {' '.join(service.ports)}"
            if sure or not target.setting:
                sign = "it is told a port that the service does not have"
                yield finding(sign, target.seen, "decisive" if sure else "supporting", parts)
                yield finding("the ports of that service", service.row, "supporting")
        elif service is None and _strange(name, target, scene):
            sign = "it is told a host that does not exist"
            alike = next(
                (known[other] for other in known if name.startswith(f"{other}-") or other.startswith(name)), None
            )
            if sure or alike or not target.setting:
                yield finding(sign, target.seen, "decisive" if sure else "supporting", parts)
            if alike:
                yield finding("there is a service of nearly that name", alike.row, "supporting")


def _elsewhere(host: str, scene: Scene) -> bool:
    """`db.other.svc`: a service of another namespace, which no list of this one has."""
    parts = host.split(".")
    return len(parts) > 1 and "svc" in parts and parts[1] != scene.subject.namespace


def _complains(workload: str, target: Target, scene: Scene) -> bool:
    """Whether the workload complains of this host, or of one that it does not name, as database drivers do."""
    for line in complaints(scene).get(workload, ()):
        host, port = scene.target(line)
        named = scene.host(host).name if host else ""
        if not host or target.host in line.text or (named == short_host(target.host) and port == target.port):
            return True
    return False


def _strange(name: str, target: Target, scene: Scene) -> bool:
    """An in-cluster name that nothing bears. A workload without a service has another trouble."""
    if not is_object_name(name) or "." in name or is_address(target.host) or name == "localhost":
        return False
    borne = {scene.owner(row.about).name for row in scene.of(Fact.WORKLOAD, Fact.POD)} | set(scene.pods)
    return name not in borne


def _said(workload: str, scene: Scene) -> Iterator[Finding]:
    for line in complaints(scene).get(workload, ())[:1]:
        match = fails_to_connect(line)
        cut = quote(line.text, *match.span()) if match else quote(line.text)
        yield Finding(sign="it fails to connect", weight="supporting", observation=line, quote=cut)


WRONG_ADDRESS = WrongAddress()
