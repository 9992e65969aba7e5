"""Shop: the cart service answers 5xx."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import MIB, Container, Event, Part, Pod, Revision, Saying, Spoken, Workload, renewed
from deploy.demo.parts import (
    REGISTRY,
    about_pod,
    climbing,
    firing,
    healthy,
    pod,
    replaced,
    revision,
    rollout,
    runs,
    started,
    suffix,
    traffic,
)
from deploy.demo.scene import Clock, Incident, Rule, uid

NAME = "cart-api"


def build(clock: Clock) -> Incident:
    workload = _workload(clock)
    bystander = healthy(
        clock,
        "shop",
        "recommendations-web",
        deployed=clock.ago(minutes=32),
        version="5.0.3",
        cause="weekly release 5.0.3",
    )
    events = [*rollout(workload), *rollout(bystander)]
    for one in workload.alive:
        events += _pod_events(clock, workload, one)
    return Incident(
        id="memory-limit",
        source="pagerduty",
        title="cart-api: more than 5% of requests fail",
        fired=clock.ago(minutes=25),
        service="cart-api",
        rule=Rule(
            name="HighErrorRate",
            expr=f"{firing(NAME, '5m')} > 0.05",
            hold_seconds=300,
            labels={"severity": "critical", "namespace": "shop", "service": NAME, "team": "shop"},
            annotations={"summary": "cart-api answers more than 5% of requests with 5xx"},
        ),
        details={"namespace": "shop", "service": NAME, "threshold": "5%", "dashboard": "HTTP overview"},
        notes=("Looking at it. Recommendations was released about the same time, maybe related?",),
        part=Part(workloads=(workload, bystander), events=tuple(events)),
    )


def _workload(clock: Clock) -> Workload:
    before = Container(
        name=NAME,
        image=f"{REGISTRY}/{NAME}:2.18.0",
        memory_limit=512 * MIB,
        memory_request=384 * MIB,
        env={"JAVA_TOOL_OPTIONS": "-XX:MaxRAMPercentage=75"},
    )
    old = revision(NAME, 41, clock.ago(days=5), before)
    after = renewed(before, image=f"{REGISTRY}/{NAME}:2.18.1", memory_limit=192 * MIB, memory_request=128 * MIB)
    new = revision(NAME, 42, clock.ago(minutes=38), after, "helm upgrade cart-api: right-size memory")
    start = clock.ago(days=2)
    broken = clock.ago(minutes=34)
    return Workload(
        namespace="shop",
        name=NAME,
        replicas=3,
        revisions=(old, new),
        pods=(*replaced(NAME, old, 3, clock.ago(minutes=37)), *(_pod(clock, index, new) for index in range(3))),
        created=clock.ago(days=310),
        says=(
            Saying(
                texts=(
                    'level=INFO ts=$t msg="cart loaded" cart=$n items=4',
                    'level=INFO ts=$t msg="cart stored" cart=$n',
                ),
                every=6,
            ),
            Saying(
                texts=("level=WARN ts=$t msg=\"property 'cart.legacy-cookie' is deprecated, use 'cart.cookie'\"",),
                every=45,
            ),
        ),
        spoken=(
            Spoken(after=2, text='level=INFO ts=$t msg="Starting CartApplication" version=2.18'),
            Spoken(after=8, text='level=INFO ts=$t msg="Started CartApplication in 6.214 seconds"'),
            Spoken(
                after=-14, text='level=WARN ts=$t msg="heap after collection 139M of 144M, collector runs back to back"'
            ),
        ),
        traffic=traffic(
            clock,
            {"200": ((start, 60.0), (broken, 43.0)), "503": ((start, 0.02), (broken, 16.0))},
            ((start, 0.05), (broken, 0.31)),
        ),
    )


def _pod(clock: Clock, index: int, new: Revision) -> Pod:
    """Each run gets to the limit after some four minutes; the pauses between runs double, as the kubelet's do."""
    created = clock.ago(minutes=38) + 3 * index
    lasted = 210 + 10 * index
    spans: list[tuple[float, float | None]] = []
    at = created + 4
    for pause in (10, 20, 40, 80, 160, 300, 0):
        spans.append((at, at + lasted))
        at += lasted + pause
    instances = runs(*spans, exit_code=137, reason="OOMKilled")
    memory = climbing(instances, 96 * MIB, 191.6 * MIB, lasted - 8)
    name = f"{NAME}-{new.hash}-{suffix(f'{NAME}-{new.hash}-{index}')}"
    message = f"back-off 5m0s restarting failed container={NAME} pod={name}_shop({uid(f'Pod/shop/{name}')})"
    return pod(
        NAME,
        new,
        index,
        created=created,
        instances=instances,
        waiting="CrashLoopBackOff",
        waiting_message=message,
        memory=memory,
        cpu=((0.0, 0.35),),
    )


def _pod_events(clock: Clock, workload: Workload, one: Pod) -> list[Event]:
    name = workload.pod_name(one)
    first_end, last_end = one.instances[0].end, one.instances[-1].end
    assert first_end is not None
    assert last_end is not None
    back_off = f"Back-off restarting failed container {NAME} in pod {name}"
    probe = f'Readiness probe failed: Get "http://{one.ip}:8080/healthz": dial tcp {one.ip}:8080: connect: connection refused'
    return [
        *started(workload, one),
        about_pod(workload, one, "BackOff", back_off, first_end + 2, clock.ago(seconds=20), count=31),
        about_pod(workload, one, "Unhealthy", probe, first_end + 1, last_end, count=14),
    ]
