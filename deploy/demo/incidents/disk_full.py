"""Orders: placing an order fails."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import GIB, Claim, Container, Part, Saying, Spoken, Workload
from deploy.demo.parts import REGISTRY, firing, healthy, pod, pods, revision, rollout, traffic
from deploy.demo.scene import Clock, Incident, Rule
from deploy.demo.shapes import through

API, DB = "orders-api", "orders-db"
CLAIM = f"data-{DB}-0"


def build(clock: Clock) -> Incident:
    full = clock.ago(minutes=19)
    used = ((clock.ago(days=2), 29.4 * GIB), (clock.ago(hours=6), 31.2 * GIB), (full, 49.97 * GIB))
    database, api = _database(clock, full), _api(clock, full)
    bystander = healthy(clock, "orders", "orders-admin", deployed=clock.ago(minutes=51), version="0.9.8", count=1)
    return Incident(
        id="disk-full",
        source="github",
        title="orders-api: orders can not be placed",
        fired=clock.ago(minutes=14),
        service="orders",
        rule=Rule(
            name="OrderWritesFailing",
            expr=f"{firing(API, '5m')} > 0.1",
            hold_seconds=180,
            labels={"severity": "critical", "namespace": "orders", "service": API, "team": "orders"},
            annotations={
                "summary": "orders-api fails more than 10% of requests",
                "runbook_url": "https://runbooks.example.com/orders",
            },
        ),
        details={"namespace": "orders", "service": API, "symptom": "POST /orders answers 500"},
        part=Part(
            workloads=(database, api, bystander),
            claims=(
                Claim(namespace="orders", name=CLAIM, bytes=50 * GIB, used=through(used), created=clock.ago(days=400)),
            ),
            events=rollout(bystander),
        ),
    )


def _database(clock: Clock, full: float) -> Workload:
    container = Container(
        name="postgres",
        image="docker.io/library/postgres:17.6",
        port=5432,
        memory_limit=4 * GIB,
        memory_request=4 * GIB,
        cpu_limit=4.0,
        cpu_request=2.0,
        volume_claim=CLAIM,
        mount_path="/var/lib/postgresql/data",
        env={"PGDATA": "/var/lib/postgresql/data/pgdata"},
    )
    only = revision(DB, 3, clock.ago(days=60), container)
    return Workload(
        namespace="orders",
        name=DB,
        kind="StatefulSet",
        replicas=1,
        revisions=(only,),
        pods=(pod(DB, only, 0, suffix="0", node="node-a3", created=clock.ago(days=21), cpu=((0.0, 0.9),)),),
        created=clock.ago(days=400),
        service_port=5432,
        says=_database_says(clock, full),
        spoken=(Spoken(after=2, text="$t [1] LOG:  database system is ready to accept connections"),),
    )


def _database_says(clock: Clock, full: float) -> tuple[Saying, ...]:
    return (
        Saying(
            texts=("$t [71] LOG:  checkpoint complete: wrote 4127 buffers (25.2%); 0 WAL file(s) added, 0 removed",),
            every=300,
            until=full,
        ),
        Saying(
            texts=(
                '$t [312] WARNING:  archiving write-ahead log file "0000000100000A2F000000C1" failed too many times, will try again later',
                "$t [312] LOG:  archive command failed with exit code 1",
            ),
            every=60,
            since=clock.ago(hours=6),
        ),
        Saying(
            texts=(
                '$t [4410] ERROR:  could not extend file "base/16401/24763": No space left on device',
                "$t [4410] HINT:  Check free disk space.",
                "$t [4410] STATEMENT:  INSERT INTO orders (id, customer_id, total) VALUES ($1, $2, $3)",
            ),
            every=4,
            since=full,
        ),
    )


def _api(clock: Clock, full: float) -> Workload:
    only = revision(
        API, 88, clock.ago(days=6), Container(name=API, image=f"{REGISTRY}/{API}:7.3.1", env={"DATABASE_HOST": DB})
    )
    start = clock.ago(days=2)
    return Workload(
        namespace="orders",
        name=API,
        replicas=3,
        revisions=(only,),
        pods=pods(API, only, 3),
        created=clock.ago(days=400),
        says=(
            Saying(texts=('{"level":"info","time":"$t","msg":"order placed","order":"$n"}',), every=5, until=full),
            Saying(
                texts=('{"level":"warn","time":"$t","msg":"slow query","ms":412,"query":"orders_by_customer"}',),
                every=70,
            ),
            Saying(
                texts=(
                    '{"level":"error","time":"$t","msg":"insert order failed","error":"pq: could not extend file \\"base/16401/24763\\": No space left on device","order":"$n"}',
                ),
                every=3,
                since=full,
            ),
        ),
        spoken=(Spoken(after=3, text='{"level":"info","time":"$t","msg":"orders-api 7.3.1 listening","port":8080}'),),
        traffic=traffic(
            clock, {"200": ((start, 22.0), (full, 14.5)), "500": ((start, 0.01), (full, 8.2))}, ((start, 0.06),)
        ),
    )
