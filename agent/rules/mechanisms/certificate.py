"""A TLS certificate has expired, so that clients refuse the connection."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.names import is_host
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.scene import Scene, target

AMPLE_SECONDS = 7 * 86_400

_EXPIRED = re.compile(
    r"certificate (?:has |is )?expired|certificate has expired or is not yet valid|CERT_HAS_EXPIRED"
    r"|CertificateExpired(?:Exception)?|alert certificate expired"
    r"|certificate verify failed: .{0,20}expired",
    re.IGNORECASE,
)


def _expired(observation: Observation, _match: Match, _scene: Scene) -> bool:
    left = observation.number("last")
    return observation.values.get("measure") == "certificate_seconds" and left is not None and left <= 0


def _ample(observation: Observation, _match: Match, _scene: Scene) -> bool:
    left = observation.number("min")
    return observation.values.get("measure") == "certificate_seconds" and left is not None and left > AMPLE_SECONDS


def _server(observation: Observation, _match: Match, scene: Scene) -> Thing:
    """Whose certificate it is: the host the client called, else the one that says so."""
    host, _ = target(observation.text)
    return scene.host(host) if host else scene.owner(observation.about)


def _probed(observation: Observation, _match: Match, scene: Scene) -> Thing:
    instance = observation.values.get("label_instance", "").partition("://")[2] or observation.values.get(
        "label_instance", ""
    )
    host = instance.partition("/")[0].partition(":")[0]
    return scene.host(host) if is_host(host) else NOTHING


def _tell(_hypothesis: Hypothesis, _scene: Scene) -> Account:
    return Account(did="is refused by its clients", because="its TLS certificate has expired", trigger="external")


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    name = hypothesis.component.name
    return [
        steps.look(
            "Read the dates of the served certificate",
            f"openssl s_client -connect {name}:443 -servername {name} </dev/null | openssl x509 -noout -dates",
        ),
        steps.look("See why it was not renewed", f"kubectl get certificates,certificaterequests{steps.flag(scene)}"),
        steps.change(
            "Renew the certificate and reload what serves it",
            "clients refuse it until then",
            risk="a reload may drop open connections",
            undo="put the former certificate back",
        ),
    ]


CERTIFICATE = Rule(
    name="certificate_expired",
    title="a TLS certificate has expired",
    depth=40,
    signs=(
        Sign(
            name="a client refused an expired certificate",
            weight="decisive",
            facts=(Fact.LOG, Fact.EVENT),
            pattern=_EXPIRED,
            component=_server,
        ),
        Sign(
            name="the probe sees an expired certificate",
            weight="decisive",
            facts=(Fact.SERIES,),
            holds=_expired,
            component=_probed,
        ),
        Sign(
            name="the certificate is valid for days yet",
            weight="contradicting",
            facts=(Fact.SERIES,),
            holds=_ample,
            component=_probed,
        ),
    ),
    looks=(looks.series("certificate_seconds"), looks.list_of("certificates"), looks.logs),
    tells=_tell,
    steps=_steps,
)
