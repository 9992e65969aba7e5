"""A service leads nowhere though its pods run: wrong selector, wrong port, wrong protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from agent.report import NextStep, Weight
from agent.rules.changes import trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Finding, Hypothesis, Want, finding
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.scene import Scene
from agent.rules.services import Service, declared_ports, services

SAMPLES = 2


def _ready_pods(workload: str, scene: Scene) -> list[Observation]:
    return [pod.row for pod in scene.pods_of(workload) if pod.healthy and not pod.finished]


def _selects_none(service: Service, scene: Scene) -> Iterator[Finding]:
    """No endpoints, while pods of the workload that the service is named for are ready."""
    matches = _matches(service, scene)
    ready = _ready_pods(service.name, scene)
    if service.empty and service.backend_row is not None and ready and matches is not True:
        weight: Weight = "supporting" if matches is None else "decisive"
        yield finding("the service has no endpoints", service.backend_row, weight)
        beside: Weight = "context" if matches is None else "supporting"
        yield finding("pods of that name are ready", ready[0], beside)
        yield finding("what the service selects", service.row, beside, {"selector": service.selector})


def _matches(service: Service, scene: Scene) -> bool | None:
    """Whether the pods that bear the service's name have the labels it selects; None where no labels were seen."""
    wanted = set(filter(None, service.selector.split(",")))
    labels = {
        label
        for line in scene.of(Fact.CONDITION)
        if line.values.get("section", "").lower() == "labels"
        and line.about.kind == "pod"
        and scene.owner(line.about).name == service.name
        for label in line.values["value"].split(",")
    }
    return wanted <= labels if wanted and labels else None


def _wrong_target(service: Service, scene: Scene) -> Iterator[Finding]:
    """Endpoints with a port that no container behind it declares."""
    declared = declared_ports(service.name, scene)
    if (
        service.empty
        and service.backend_row is not None
        and _matches(service, scene)
        and _ready_pods(service.name, scene)
    ):
        target = _named_target(service.name, scene)
        parts = {"port": target.values["value"] if target else "by a name", "declared": " ".join(sorted(declared))}
        yield finding("it selects ready pods and has no endpoint", service.backend_row, "decisive", parts)
        yield finding("what the service selects", service.row, "supporting")
    strange = [port for port in service.backends or () if port not in declared]
    if declared and strange and service.backend_row is not None and len(strange) == len(service.backends or ()):
        parts = {"port": strange[0], "declared": " ".join(sorted(declared))}
        yield finding("its endpoints have a port that no container declares", service.backend_row, "decisive", parts)
        for told in scene.of(Fact.PORTS):
            if scene.owner(told.about).name == service.name:
                yield finding("the ports the container declares", told, "supporting")
                return


def _named_target(name: str, scene: Scene) -> Observation | None:
    lines = (line for line in scene.of(Fact.CONDITION) if line.about == Thing("service", name))
    return next((line for line in lines if line.values.get("section") == "TargetPort"), None)


def _wrong_protocol(service: Service, scene: Scene) -> Iterator[Finding]:
    """A service in UDP whose callers are refused a TCP connection."""
    if service.protocols and "TCP" not in service.protocols and service.name in scene.callers:
        protocol = service.protocols[0]
        yield finding(
            "the service speaks a protocol in which nobody calls it", service.row, "decisive", {"protocol": protocol}
        )


class ServiceRouting:
    """One variant of three: `selector`, `port` or `protocol`. Each compares two objects, so it is no list of signs."""

    depth = 14

    def __init__(
        self, name: str, title: str, compare: Callable[[Service, Scene], Iterator[Finding]], tell: Callable[..., str]
    ) -> None:
        self.name, self.title = name, title
        self._compare, self._tell = compare, tell

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        for service in services(scene).values():
            if findings := tuple(self._compare(service, scene)):
                refused = tuple(_refusals(service.name, scene))
                affects = frozenset(scene.callers.get(service.name, ()))
                component = Thing("workload", service.name)
                yield Hypothesis(mechanism=self, component=component, findings=findings + refused, affects=affects)

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        yield from looks.describe("service", hypothesis.component.name, scene)
        yield from looks.describe_pods(hypothesis, scene)

    def account(self, hypothesis: Hypothesis, scene: Scene) -> Account:
        began = trigger(hypothesis.component.name, scene, "config")
        return Account(did="can't be reached through its service", because=self._tell(hypothesis), trigger=began)

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        name, namespace = hypothesis.component.name, steps.flag(scene)
        return [
            steps.look("Compare the service with its pods", f"kubectl describe service {name}{namespace}"),
            steps.look("See the pods' labels and ports", f"kubectl get pods{namespace} --show-labels"),
            steps.change(
                "Correct the service",
                "callers are refused until it leads to the pods",
                risk="traffic moves at once",
                undo="put the former definition back",
            ),
        ]


def _refusals(name: str, scene: Scene) -> Iterator[Finding]:
    """What its callers say: the symptom."""
    told = (line for line in scene.of(Fact.LOG) if scene.callee(line) == name)
    for line, _ in zip(told, range(SAMPLES), strict=False):
        yield finding("callers can't connect to it", line, "supporting")


def _tell_selector(hypothesis: Hypothesis) -> str:
    selector = hypothesis.part("selector")
    return f"its selector {selector} matches none of its pods" if selector else "its selector matches none of its pods"


def _tell_port(hypothesis: Hypothesis) -> str:
    return f"it sends to port {hypothesis.part('port')}, but the container declares {hypothesis.part('declared')}"


def _tell_protocol(hypothesis: Hypothesis) -> str:
    return f"it is declared for {hypothesis.part('protocol')} alone"


SERVICE_SELECTOR = ServiceRouting("service_selector", "a service selects no pod", _selects_none, _tell_selector)
SERVICE_PORT = ServiceRouting("service_port", "a service sends to a wrong port", _wrong_target, _tell_port)
SERVICE_PROTOCOL = ServiceRouting(
    "service_protocol", "a service has the wrong protocol", _wrong_protocol, _tell_protocol
)
