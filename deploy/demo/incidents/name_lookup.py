"""Treasury: exchange rates are not refreshed."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import MIB, Container, Document, Gauge, Part, Saying, Spoken, Workload
from deploy.demo.parts import REGISTRY, firing, healthy, pods, revision, rollout, traffic
from deploy.demo.scene import Clock, Incident, Rule
from deploy.demo.shapes import counted

NAME = "fx-rates-api"
COREFILE = """.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa
    forward . /etc/resolv.conf
    cache 30
    reload
}
partner.example:53 {
    errors
    cache 30
    forward . 10.40.0.99
}
"""


def build(clock: Clock) -> Incident:
    changed, failing = clock.ago(minutes=33), clock.ago(minutes=31)
    workload, resolver = _workload(clock, failing), _resolver(clock, changed, failing)
    bystander = healthy(clock, "treasury", "ledger-export", deployed=clock.ago(minutes=40), version="2.2.0")
    corefile = Document(
        namespace="kube-system",
        name="coredns",
        data={"Corefile": COREFILE},
        created=clock.ago(days=420),
        changed=changed,
        changed_by="kubectl-edit",
    )
    return Incident(
        id="name-lookup",
        source="jsm",
        title="fx-rates-api: rates are stale, refresh fails",
        fired=clock.ago(minutes=22),
        service="treasury",
        rule=Rule(
            name="RatesRefreshFailing",
            expr=f"{firing(NAME, '5m')} > 0.2",
            hold_seconds=300,
            labels={"severity": "critical", "namespace": "treasury", "service": NAME, "team": "treasury"},
            annotations={"summary": "fx-rates-api can't refresh rates from rates.partner.example"},
        ),
        details={"namespace": "treasury", "service": NAME, "upstream": "rates.partner.example"},
        part=Part(
            workloads=(workload, resolver, bystander),
            documents=(corefile,),
            gauges=tuple(_answers(clock, failing)),
            events=rollout(bystander),
        ),
    )


def _workload(clock: Clock, failing: float) -> Workload:
    container = Container(
        name=NAME, image=f"{REGISTRY}/{NAME}:3.1.4", env={"RATES_URL": "https://rates.partner.example/v2/latest"}
    )
    only = revision(NAME, 19, clock.ago(days=13), container)
    start = clock.ago(days=2)
    failed = 'level=error ts=$t msg="refresh failed" url=https://rates.partner.example/v2/latest err="dial tcp: lookup rates.partner.example on 10.96.0.10:53: server misbehaving"'
    return Workload(
        namespace="treasury",
        name=NAME,
        replicas=2,
        revisions=(only,),
        pods=pods(NAME, only, 2),
        created=clock.ago(days=120),
        says=(
            Saying(texts=('level=info ts=$t msg="rates refreshed" pairs=164',), every=30, until=failing),
            Saying(texts=(failed,), every=5, since=failing),
            Saying(texts=('level=warn ts=$t msg="clock skew to upstream 0.4s"',), every=120, until=failing),
        ),
        spoken=(Spoken(after=2, text='level=info ts=$t msg="fx-rates-api 3.1.4 listening" port=8080'),),
        traffic=traffic(
            clock, {"200": ((start, 9.0), (failing, 5.2)), "502": ((start, 0.0), (failing, 3.9))}, ((start, 0.05),)
        ),
    )


def _resolver(clock: Clock, changed: float, failing: float) -> Workload:
    container = Container(
        name="coredns",
        image="registry.k8s.io/coredns/coredns:v1.13.1",
        port=53,
        probe_path="/ready",
        probe_port=8181,
        memory_limit=170 * MIB,
        memory_request=70 * MIB,
        cpu_limit=None,
        cpu_request=0.1,
        mounts={"/etc/coredns": "configmap/coredns"},
    )
    only = revision("coredns", 4, clock.ago(days=45), container)
    return Workload(
        namespace="kube-system",
        name="coredns",
        replicas=2,
        revisions=(only,),
        pods=pods("coredns", only, 2),
        created=clock.ago(days=420),
        service_port=53,
        says=(
            Saying(
                texts=(
                    "[INFO] Reloading",
                    "[INFO] plugin/reload: Running configuration SHA512 = $n$n",
                    "[INFO] Reloading complete",
                ),
                every=20,
                since=changed + 40,
                until=changed + 100,
            ),
            Saying(
                texts=(
                    "[ERROR] plugin/errors: 2 rates.partner.example. A: read udp 10.244.3.7:41211->10.40.0.99:53: i/o timeout",
                    "[ERROR] plugin/errors: 2 rates.partner.example. AAAA: read udp 10.244.3.7:56480->10.40.0.99:53: i/o timeout",
                ),
                every=4,
                since=failing,
            ),
        ),
        spoken=(Spoken(after=1, text="CoreDNS-1.13.1 linux/amd64"),),
    )


def _answers(clock: Clock, failing: float) -> list[Gauge]:
    start = clock.ago(days=2)
    labels = {"server": "dns://:53", "job": "coredns", "namespace": "kube-system"}
    more = {"kind": "counter", "help": "DNS answers by code."}
    table = (
        (".", "NOERROR", ((start, 410.0),)),
        ("partner.example.", "NOERROR", ((start, 2.1), (failing, 0.0))),
        ("partner.example.", "SERVFAIL", ((start, 0.0), (failing, 3.4))),
    )
    return [
        Gauge(
            name="coredns_dns_responses_total",
            labels={**labels, "zone": zone, "rcode": rcode},
            value=counted(rates, start),
            **more,
        )
        for zone, rcode, rates in table
    ]
