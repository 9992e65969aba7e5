"""Pricing: price lookups are slow."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import GIB, MIB, Container, Event, Gauge, Node, Part, Saying, Spoken, Workload
from deploy.demo.parts import REGISTRY, pod, revision, started, traffic
from deploy.demo.scene import Clock, Incident, Rule
from deploy.demo.shapes import levels, steady

NAME, JOB, NODE = "pricing-api", "report-export-29410", "node-b2"


def build(clock: Clock) -> Incident:
    began = clock.ago(minutes=34)
    victim, batch = _victim(clock, began), _batch(began)
    node = Node(
        name=NODE, ip="10.0.2.12", busy=((clock.ago(days=2), 0.36), (began, 0.985)), created=clock.ago(days=150)
    )
    created = Event(
        namespace="batch",
        kind="Job",
        name=JOB,
        reason="SuccessfulCreate",
        first=began - 4,
        last=began - 4,
        message=f"Created pod: {batch.pod_name(batch.pods[0])}",
        component="job-controller",
    )
    return Incident(
        id="busy-node",
        source="jsm",
        title="pricing-api p99 latency above 1 s",
        fired=clock.ago(minutes=23),
        rule=Rule(
            name="LatencyHigh",
            expr=f'histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket{{service="{NAME}"}}[5m]))) > 1',
            hold_seconds=600,
            labels={"severity": "critical", "namespace": "pricing", "service": NAME, "team": "pricing"},
            annotations={"summary": "pricing-api p99 above 1 s for 10 minutes"},
        ),
        part=Part(
            workloads=(victim, batch),
            nodes=(node,),
            gauges=(_pressure(clock, began),),
            events=(created, *started(batch, batch.pods[0])),
        ),
    )


def _victim(clock: Clock, began: float) -> Workload:
    container = Container(name=NAME, image=f"{REGISTRY}/{NAME}:8.8.1", cpu_request=0.1, cpu_limit=2.0)
    only = revision(NAME, 64, clock.ago(days=3), container)
    starved = ((clock.ago(days=3), 0.55), (began, 0.21))
    start = clock.ago(days=2)
    return Workload(
        namespace="pricing",
        name=NAME,
        replicas=3,
        revisions=(only,),
        pods=(
            pod(NAME, only, 0, node=NODE, cpu=starved, throttled=((0.0, 0.01),)),
            pod(NAME, only, 1, node=NODE, cpu=starved, throttled=((0.0, 0.01),)),
            pod(NAME, only, 2, node="node-a1", cpu=((0.0, 0.56),), throttled=((0.0, 0.01),)),
        ),
        created=clock.ago(days=260),
        says=(
            Saying(texts=('level=info ts=$t msg="priced" basket=$n ms=41',), every=5),
            Saying(
                texts=('level=warn ts=$t msg="pricing took longer than budget" ms=2841 budget_ms=800 basket=$n',),
                every=6,
                since=began + 20,
            ),
            Saying(texts=('level=error ts=$t msg="currency XTS unknown, skipped"',), every=80),
        ),
        spoken=(Spoken(after=2, text='level=info ts=$t msg="pricing-api 8.8.1 listening" port=8080'),),
        traffic=traffic(
            clock, {"200": ((start, 37.0),), "504": ((start, 0.0), (began, 0.4))}, ((start, 0.045), (began, 0.64))
        ),
    )


def _batch(began: float) -> Workload:
    container = Container(
        name="export",
        image=f"{REGISTRY}/report-export:2.0.5",
        memory_limit=8 * GIB,
        memory_request=512 * MIB,
        cpu_limit=None,
        cpu_request=0.1,
        env={"WORKERS": "16", "REPORT": "quarter-end"},
    )
    only = revision(JOB, 1, began - 4, container)
    return Workload(
        namespace="batch",
        name=JOB,
        kind="Job",
        replicas=1,
        revisions=(only,),
        pods=(pod(JOB, only, 0, node=NODE, created=began - 4, cpu=((began, 6.9),), memory=steady(3.1 * GIB)),),
        created=began - 4,
        service=False,
        says=(
            Saying(texts=('level=info ts=$t msg="exported chunk" report=quarter-end workers=16 rows=50000',), every=15),
        ),
        spoken=(Spoken(after=1, text='level=info ts=$t msg="export started" report=quarter-end workers=16'),),
    )


def _pressure(clock: Clock, began: float) -> Gauge:
    load = levels(((clock.ago(days=2), 2.7), (began + 240, 23.5)))
    return Gauge(
        name="node_load5",
        labels={"instance": NODE, "job": "node-exporter"},
        value=load,
        help="Load average, 5 minutes.",
    )
