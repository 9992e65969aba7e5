"""A name does not resolve: it does not exist, or the resolver fails."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign, Want
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.scene import Scene, target
from agent.rules.services import services
from agent.rules.toolbox import Act

_NO_NAME = re.compile(
    r"no such host|\bENOTFOUND\b|NXDOMAIN|UnknownHostException|Name or service not known|nodename nor servname"
    r"|could not translate host name|[Cc]ould not resolve host|getaddrinfo failed|server can't find",
)
_RESOLVER = re.compile(
    r"server misbehaving|\bEAI_AGAIN\b|[Tt]emporary failure in name resolution|SERVFAIL"
    r"|lookup [^ ]{1,200} on [^ ]{1,60}: (?:read|dial) (?:udp|tcp)[^:]{0,80}.{0,40}(?:timeout|refused)"
    r"|lookup [^ ]{1,200}: i/o timeout",
)


def _caller(observation: Observation, _match: Match, scene: Scene) -> Thing:
    """The workload that uses the name; what it named stands in the quote."""
    return scene.owner(observation.about)


def _unknown(observation: Observation, _match: Match, scene: Scene) -> bool:
    """A name that a service bears was missing for a moment, as when all start at once."""
    host, _ = target(observation.text)
    return not host or scene.host(host).name not in services(scene)


def _down(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return "dns" in observation.about.name and observation.values.get("ready") != observation.values.get("containers")


def _host(hypothesis: Hypothesis) -> str:
    return next((host for finding in hypothesis.findings if (host := target(finding.observation.text)[0])), "")


def _resolver_fails(hypothesis: Hypothesis) -> bool:
    return any(finding.sign == RESOLVER_SIGN for finding in hypothesis.findings)


def _tell(hypothesis: Hypothesis, _scene: Scene) -> Account:
    host = _host(hypothesis)
    did = f"can't resolve {host}" if host else "can't resolve a name"
    if _resolver_fails(hypothesis):
        return Account(did=did, because="the DNS resolver fails", trigger="dependency")
    return Account(did=did, because="DNS has no such name", trigger="config")


def _look_at_resolver(_hypothesis: Hypothesis, scene: Scene) -> list[Want]:
    asked = Want(act=Act.GET, arguments={"kind": "pods", "namespace": "kube-system"})
    return [looks.get("services", scene), asked]


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    host = _host(hypothesis) or "<name>"
    return [
        steps.look("Resolve the name from the pod", f"kubectl exec <pod>{steps.flag(scene)} -- nslookup {host}"),
        steps.look("Check that the service exists", f"kubectl get services{steps.flag(scene)}"),
        steps.look("Check the resolver", "kubectl logs -n kube-system -l k8s-app=kube-dns --tail=50"),
    ]


RESOLVER_SIGN = "the resolver does not answer"

DNS = Rule(
    name="dns_failure",
    title="a name does not resolve",
    depth=24,
    signs=(
        Sign(name=RESOLVER_SIGN, weight="decisive", facts=(Fact.LOG,), pattern=_RESOLVER, component=_caller),
        Sign(
            name="a name is unknown",
            weight="decisive",
            facts=(Fact.LOG,),
            pattern=_NO_NAME,
            holds=_unknown,
            component=_caller,
        ),
        Sign(name="the resolver's pods are not ready", weight="supporting", facts=(Fact.POD,), holds=_down),
    ),
    looks=(_look_at_resolver, looks.logs),
    tells=_tell,
    steps=_steps,
)
