"""A component fails because something it calls does not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign, Want
from agent.rules.names import is_address, is_object_name
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.scene import Scene, target

_UNREACHABLE = re.compile(
    r"connection refused|ECONNREFUSED|no route to host|EHOSTUNREACH|connect(?:ion)? timed? ?out|i/o timeout|ETIMEDOUT"
    r"|connection reset by peer|ECONNRESET|[Nn]o connection could be made|network is unreachable|502 Bad Gateway"
    r"|503 Service (?:Temporarily )?Unavailable|no healthy upstream|upstream connect error|code = Unavailable",
    re.IGNORECASE,
)


def _callee(observation: Observation, _match: Match, scene: Scene) -> Thing:
    """Who did not answer; a line that names nobody proves nothing of anybody."""
    host, _ = target(observation.text)
    callee = scene.host(host) if host else NOTHING
    return NOTHING if callee == scene.owner(observation.about) else callee


def _outside(observation: Observation, match: Match, scene: Scene) -> Thing:
    """A host that is none of the cluster's: what callers say of it is all that can be known."""
    callee = _callee(observation, match, scene)
    return callee if callee.kind == "host" and not is_address(callee.name) else NOTHING


def _none_ready(observation: Observation, _match: Match, scene: Scene) -> bool:
    """Pods that were never placed are no account of themselves: why they wait is what has to be found."""
    ready, desired = observation.number("ready"), observation.number("desired")
    pods = scene.pods_of(scene.owner(observation.about).name)
    waiting = any(pod.status == "Pending" and not pod.node for pod in pods)
    return observation.about.kind != "replicaset" and ready == 0 and bool(desired) and not waiting


def _all_ready(observation: Observation, _match: Match, scene: Scene) -> bool:
    """Only of something that is called: a ready workload says nothing against others."""
    ready, desired = observation.number("ready"), observation.number("desired")
    called = scene.owner(observation.about).name in scene.callers
    return observation.about.kind != "replicaset" and called and bool(desired) and ready == desired


def _down(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return observation.values.get("measure") == "up" and observation.number("last") == 0


def _scraped(observation: Observation, _match: Match, scene: Scene) -> Thing:
    job = observation.values.get("label_job", "")
    return Thing("workload", job) if is_object_name(job) else scene.owner(observation.about)


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    callers = ", ".join(sorted(scene.callers.get(hypothesis.component.name, ()))[:3])
    unready = any(finding.sign == UNREADY_SIGN for finding in hypothesis.findings)
    because = UNREADY_SIGN if unready else f"{callers} can't connect to it" if callers else "connections to it fail"
    return Account(did="does not answer", because=because, trigger="dependency")


def _look(hypothesis: Hypothesis, scene: Scene) -> Iterator[Want]:
    """The callee as an object of the cluster, and what its own logs say."""
    if hypothesis.component.kind == "workload":
        yield looks.get("services", scene)
        yield looks.get("endpoints", scene)
        yield from looks.describe("service", hypothesis.component.name, scene)
        yield from looks.logs(hypothesis, scene)


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    name, namespace = hypothesis.component.name, steps.flag(scene)
    return [
        steps.look("Check that it has endpoints", f"kubectl get endpoints {name}{namespace}"),
        steps.look("Read its logs", f"kubectl logs deployment/{name}{namespace} --tail=100"),
    ]


UNREADY_SIGN = "none of its pods is ready"

DEPENDENCY = Rule(
    name="dependency_down",
    title="a dependency does not answer",
    depth=8,
    signs=(
        Sign(
            name="callers can't connect to it",
            weight="supporting",
            facts=(Fact.LOG,),
            pattern=_UNREACHABLE,
            component=_callee,
        ),
        Sign(
            name="a service outside the cluster does not answer",
            weight="decisive",
            facts=(Fact.LOG,),
            pattern=_UNREACHABLE,
            component=_outside,
        ),
        Sign(name=UNREADY_SIGN, weight="decisive", facts=(Fact.WORKLOAD,), holds=_none_ready),
        Sign(
            name="monitoring can't reach it",
            weight="supporting",
            facts=(Fact.SERIES,),
            holds=_down,
            component=_scraped,
        ),
        Sign(name="all of its pods are ready", weight="contradicting", facts=(Fact.WORKLOAD,), holds=_all_ready),
    ),
    looks=(looks.describe_pods, _look, looks.describe_workload, looks.describe_revisions),
    tells=_tell,
    steps=_steps,
)
