"""Billing: invoices are slow and time out."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import MIB, Container, Document, Gauge, Part, Saying, Spoken, Workload, renewed
from deploy.demo.parts import REGISTRY, firing, healthy, pods, replaced, revision, rollout, started, traffic
from deploy.demo.scene import Clock, Incident, Rule
from deploy.demo.shapes import levels, steady, through

NAME = "invoice-api"
POOL = 20.0


def build(clock: Clock) -> Incident:
    deployed, empty = clock.ago(minutes=55), clock.ago(minutes=30)
    workload = _workload(clock, deployed, empty)
    database = healthy(clock, "billing", "billing-ledger", count=2, version="4.0.0")
    limits = Document(
        namespace="billing",
        name="billing-ledger-flags",
        data={"dual_write": "false", "statement_format": "v2"},
        created=clock.ago(days=90),
        changed=clock.ago(minutes=44),
        changed_by="argocd-controller",
    )
    return Incident(
        id="connection-pool",
        source="opsgenie",
        title="invoice-api: p99 latency above 5 s and requests time out",
        fired=clock.ago(minutes=24),
        service="billing",
        rule=Rule(
            name="InvoiceErrors",
            expr=f"{firing(NAME, '5m')} > 0.05",
            hold_seconds=300,
            labels={"severity": "critical", "namespace": "billing", "service": NAME, "team": "billing"},
            annotations={"summary": "invoice-api fails more than 5% of requests"},
        ),
        details={"namespace": "billing", "service": NAME},
        part=Part(
            workloads=(workload, database),
            documents=(limits,),
            gauges=(*_pool(workload, deployed, empty), *_database_side(clock, deployed, empty)),
            events=(*rollout(workload), *(event for one in workload.alive for event in started(workload, one))),
        ),
    )


def _workload(clock: Clock, deployed: float, empty: float) -> Workload:
    before = Container(
        name=NAME,
        image=f"{REGISTRY}/{NAME}:1.62.0",
        memory_limit=1024 * MIB,
        env={"DB_POOL_MAX": "20", "DB_HOST": "billing-pg.internal"},
    )
    old = revision(NAME, 30, clock.ago(days=8), before)
    new = revision(
        NAME, 31, deployed, renewed(before, image=f"{REGISTRY}/{NAME}:1.63.0"), "release 1.63.0: streaming PDF export"
    )
    start = clock.ago(days=2)
    leak = 'ts=$t level=WARN logger=c.z.h.pool.ProxyLeakTask msg="Connection leak detection triggered for org.postgresql.jdbc.PgConnection@$n on thread http-nio-8080-exec-7, stack trace follows" at="com.example.invoice.export.PdfExport.open(PdfExport.java:88)"'
    timed_out = 'ts=$t level=ERROR logger=invoice.web msg="HikariPool-1 - Connection is not available, request timed out after 30000ms (total=20, active=20, idle=0, waiting=37)" request=$n'
    return Workload(
        namespace="billing",
        name=NAME,
        replicas=2,
        revisions=(old, new),
        pods=(*replaced(NAME, old, 2, deployed + 50), *pods(NAME, new, 2, memory=steady(540 * MIB))),
        created=clock.ago(days=500),
        says=(
            Saying(texts=('ts=$t level=INFO logger=invoice.web msg="invoice rendered" invoice=$n ms=118',), every=9),
            Saying(texts=(leak,), every=75, since=deployed + 60),
            Saying(texts=(timed_out,), every=5, since=empty),
        ),
        spoken=(
            Spoken(
                after=3,
                text='ts=$t level=INFO logger=c.z.h.HikariDataSource msg="HikariPool-1 - Start completed." maximumPoolSize=20',
            ),
        ),
        traffic=traffic(
            clock,
            {"200": ((start, 14.0), (empty, 6.5)), "500": ((start, 0.01), (empty, 5.5))},
            ((start, 0.12), (empty, 8.4)),
        ),
    )


def _pool(workload: Workload, deployed: float, empty: float) -> list[Gauge]:
    found = []
    for one in workload.alive:
        labels = {"namespace": "billing", "pod": workload.pod_name(one), "pool": "HikariPool-1", "job": NAME}
        active = through(((deployed + 10, 3.0), (empty, POOL)))
        pending = levels(((deployed, 0.0), (empty, 37.0)))
        found += [
            Gauge(name="hikaricp_connections_active", labels=labels, value=active, help="Connections in use."),
            Gauge(name="hikaricp_connections_max", labels=labels, value=steady(POOL), help="Size of the pool."),
            Gauge(
                name="hikaricp_connections_pending",
                labels=labels,
                value=pending,
                help="Threads that wait for a connection.",
            ),
        ]
    return found


def _database_side(clock: Clock, deployed: float, empty: float) -> list[Gauge]:
    labels = {
        "namespace": "billing",
        "datname": "invoices",
        "instance": "billing-pg.internal:9187",
        "job": "postgres-exporter",
    }
    idle = through(((clock.ago(days=1), 5.0), (deployed, 5.0), (empty, 38.0)))
    return [
        Gauge(
            name="pg_stat_activity_count",
            labels={**labels, "state": "idle in transaction"},
            value=idle,
            help="Sessions by state.",
        ),
        Gauge(
            name="pg_stat_activity_count",
            labels={**labels, "state": "active"},
            value=steady(3),
            help="Sessions by state.",
        ),
        Gauge(name="pg_settings_max_connections", labels=labels, value=steady(300), help="Limit of sessions."),
    ]
