"""Edge: people can not sign in."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deploy.demo.cluster import Container, Event, Gauge, Part, Saying, Spoken, Workload
from deploy.demo.parts import REGISTRY, healthy, pods, revision, rollout, traffic
from deploy.demo.pod_objects import metadata
from deploy.demo.scene import Clock, Incident, Rule, rfc3339
from deploy.demo.shapes import levels, steady

NAME = "sso-gateway"
_ABOUT = Event(
    namespace="edge",
    kind="Certificate",
    name="sso-example-com",
    reason="",
    message="",
    first=0.0,
    last=0.0,
    component="cert-manager-certificates-issuing",
)
URL = "https://sso.example.com/login"


def build(clock: Clock) -> Incident:
    ended = clock.ago(minutes=31)
    bystander = healthy(clock, "edge", "rate-limiter", deployed=clock.ago(minutes=36), version="1.1.9")
    return Incident(
        id="certificate",
        source="alertmanager",
        title="Probe of sso.example.com fails",
        fired=clock.ago(minutes=26),
        rule=Rule(
            name="ProbeFailing",
            expr=f'probe_success{{instance="{URL}"}} == 0',
            hold_seconds=300,
            labels={"severity": "critical", "namespace": "edge", "service": NAME, "instance": URL, "job": "blackbox"},
            annotations={"summary": f"Probe of {URL} has failed for 5 minutes"},
        ),
        part=Part(
            workloads=(_workload(clock, ended), bystander),
            gauges=tuple(_probe(clock, ended)),
            objects=(_object(clock, ended),),
            events=(*_renewal(clock), *rollout(bystander)),
        ),
    )


def _workload(clock: Clock, ended: float) -> Workload:
    container = Container(
        name=NAME, image=f"{REGISTRY}/{NAME}:6.0.2", port=8443, mounts={"/etc/tls": "secret/sso-example-com-tls"}
    )
    only = revision(NAME, 24, clock.ago(days=30), container)
    start = clock.ago(days=2)
    refused = (
        'level=error ts=$t msg="http: TLS handshake error from 10.0.4.17:50122: remote error: tls: expired certificate"'
    )
    own = f'level=error ts=$t msg="self check failed" err="tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time $t is after {rfc3339(ended)}"'
    return Workload(
        namespace="edge",
        name=NAME,
        replicas=2,
        revisions=(only,),
        pods=pods(NAME, only, 2),
        created=clock.ago(days=380),
        service_port=443,
        says=(
            Saying(texts=('level=info ts=$t msg="signed in" session=$n',), every=5, until=ended),
            Saying(texts=(refused,), every=3, since=ended),
            Saying(texts=(own,), every=30, since=ended),
            Saying(texts=('level=warn ts=$t msg="session store slow" ms=140',), every=90),
        ),
        spoken=(
            Spoken(after=2, text='level=info ts=$t msg="sso-gateway 6.0.2 listening" port=8443 cert=/etc/tls/tls.crt'),
        ),
        traffic=traffic(clock, {"200": ((start, 25.0), (ended, 0.3))}, ((start, 0.05),)),
    )


def _probe(clock: Clock, ended: float) -> list[Gauge]:
    labels = {"instance": URL, "job": "blackbox"}
    up = levels(((clock.ago(days=2), 1.0), (ended, 0.0)))
    return [
        Gauge(name="probe_success", labels=labels, value=up, help="Whether the probe succeeded."),
        Gauge(
            name="probe_ssl_earliest_cert_expiry",
            labels=labels,
            value=steady(ended),
            help="When the certificate ends, epoch seconds.",
        ),
        Gauge(
            name="probe_http_status_code",
            labels=labels,
            value=levels(((clock.ago(days=2), 200.0), (ended, 0.0))),
            help="Status of the reply.",
        ),
    ]


def _renewal(clock: Clock) -> tuple[Event, ...]:
    waiting = 'Issuing certificate as Secret "sso-example-com-tls" is about to expire'
    failed = (
        'The certificate request has failed to complete and will be retried: Failed to wait for order resource "sso-example-com-7" '
        'to become ready: order is in "invalid" state: DNS problem: NXDOMAIN looking up TXT for _acme-challenge.sso.example.com'
    )
    first = clock.ago(minutes=58)
    about = replace(_ABOUT, first=first, last=first)
    return (
        replace(about, reason="Issuing", message=waiting),
        replace(
            about, reason="Failed", message=failed, first=first + 60, last=clock.ago(minutes=3), count=6, type="Warning"
        ),
    )


def _object(clock: Clock, ended: float) -> dict[str, Any]:
    about = metadata("Certificate", "sso-example-com", "edge", clock.ago(days=380))
    spec = {
        "secretName": "sso-example-com-tls",
        "dnsNames": ["sso.example.com"],
        "issuerRef": {"name": "letsencrypt-dns01", "kind": "ClusterIssuer"},
    }
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Expired",
        "message": f"Certificate expired on {rfc3339(ended)}",
        "lastTransitionTime": rfc3339(ended),
    }
    status = {
        "notAfter": rfc3339(ended),
        "notBefore": rfc3339(ended - 90 * 86_400),
        "failedIssuanceAttempts": 6,
        "conditions": [condition],
    }
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": about,
        "spec": spec,
        "status": status,
    }
