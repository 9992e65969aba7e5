"""Payments: card charges fail."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import Container, Gauge, Part, Saying, Spoken, Workload
from deploy.demo.parts import REGISTRY, firing, healthy, pods, revision, rollout, traffic
from deploy.demo.scene import Clock, Incident, Rule
from deploy.demo.shapes import counted

NAME = "payment-api"
PROVIDER = "api.paywave.example"


def build(clock: Clock) -> Incident:
    down = clock.ago(minutes=21)
    workload = _workload(clock, down)
    harmless = Saying(
        texts=('level=error ts=$t msg="NullPointerException in optional enrichment, continuing without" id=$n',),
        every=20,
    )
    bystander = healthy(
        clock, "payments", "fraud-scorer", deployed=clock.ago(minutes=26), version="0.31.0", says=(harmless,)
    )
    return Incident(
        id="provider-outage",
        source="jira",
        title="payment-api: card charges fail",
        fired=clock.ago(minutes=16),
        service="payments",
        rule=Rule(
            name="ChargesFailing",
            expr=f"{firing(NAME, '5m')} > 0.1",
            hold_seconds=180,
            labels={"severity": "critical", "namespace": "payments", "service": NAME, "team": "payments"},
            annotations={"summary": "payment-api fails more than 10% of charges"},
        ),
        details={"namespace": "payments", "service": NAME},
        notes=("fraud-scorer went out ten minutes before. Anyone know what changed there?",),
        part=Part(workloads=(workload, bystander), gauges=tuple(_calls(clock, down)), events=rollout(bystander)),
    )


def _workload(clock: Clock, down: float) -> Workload:
    container = Container(name=NAME, image=f"{REGISTRY}/{NAME}:9.4.0", env={"PROVIDER_URL": f"https://{PROVIDER}/v1"})
    only = revision(NAME, 52, clock.ago(days=9), container)
    start = clock.ago(days=2)
    refused = f'level=error ts=$t msg="charge failed" err="POST https://{PROVIDER}/v1/charges: 503 Service Unavailable" attempt=3 charge=$n'
    return Workload(
        namespace="payments",
        name=NAME,
        replicas=3,
        revisions=(only,),
        pods=pods(NAME, only, 3),
        created=clock.ago(days=700),
        says=(
            Saying(
                texts=('level=info ts=$t msg="charge captured" charge=$n provider=paywave ms=312',), every=4, until=down
            ),
            Saying(texts=('level=info ts=$t msg="charge captured" charge=$n provider=banktransfer ms=95',), every=14),
            Saying(texts=(refused,), every=3, since=down),
            Saying(
                texts=('level=warn ts=$t msg="circuit breaker open" provider=paywave failures=50',),
                every=30,
                since=down + 45,
            ),
        ),
        spoken=(Spoken(after=3, text='level=info ts=$t msg="payment-api 9.4.0 listening" port=8080'),),
        traffic=traffic(
            clock,
            {"200": ((start, 18.0), (down, 4.1)), "502": ((start, 0.01), (down, 13.2))},
            ((start, 0.33), (down, 0.9)),
        ),
    )


def _calls(clock: Clock, down: float) -> list[Gauge]:
    start = clock.ago(days=2)
    base = {"namespace": "payments", "service": NAME, "job": NAME}
    table = (
        ("paywave", "200", ((start, 13.5), (down, 0.1))),
        ("paywave", "503", ((start, 0.0), (down, 13.2))),
        ("banktransfer", "200", ((start, 4.0),)),
    )
    return [
        Gauge(
            name="payment_provider_requests_total",
            labels={**base, "provider": provider, "code": status},
            value=counted(rates, start),
            kind="counter",
            help="Calls to payment providers by status.",
        )
        for provider, status, rates in table
    ]
