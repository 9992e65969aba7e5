"""Building blocks of incidents: names, pods, healthy workloads, the events of a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deploy.demo.cluster import Container, Event, Instance, Pod, Revision, Saying, Spoken, Traffic, Workload
from deploy.demo.scene import Clock, code, hexadecimal
from deploy.demo.shapes import Points, Shape, steady

NODES = ("node-a1", "node-a2", "node-a3", "node-b1", "node-b3")  # node-b2 has a story of its own
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
REGISTRY = "registry.example.com"
ACCESS_LOG = 'level=info ts=$t msg="request done" method=GET status=200 request_id=$n'


def template_hash(workload: str, number: int) -> str:
    return code(f"{workload}#{number}", 10, _LETTERS)


def suffix(seed: str) -> str:
    return code(seed, 5, _LETTERS)


def address(seed: str) -> str:
    number = int(hexadecimal(seed, 4), 16)
    return f"10.244.{number // 256 % 8}.{number % 250 + 2}"


def revision(workload: str, number: int, at: float, container: Container, cause: str = "") -> Revision:
    return Revision(hash=template_hash(workload, number), number=number, at=at, container=container, cause=cause)


def pod(workload: str, of: Revision, index: int, **more: Any) -> Pod:
    """A pod that started 4 s after it was created, unless `more` says otherwise."""
    seed = f"{workload}-{of.hash}-{index}"
    created: float = more.pop("created", of.at + 3 * index)
    node = more.pop("node", NODES[int(hexadecimal(seed, 2), 16) % len(NODES)])
    instances = more.pop("instances", (Instance(start=created + 4),))
    name = more.pop("suffix", suffix(seed))
    more.setdefault("memory", steady(0.7 * of.container.memory_request))
    return Pod(suffix=name, revision=of.hash, node=node, ip=address(seed), created=created, instances=instances, **more)


def pods(workload: str, of: Revision, count: int, **more: Any) -> tuple[Pod, ...]:
    return tuple(pod(workload, of, index, **more) for index in range(count))


def replaced(workload: str, of: Revision, count: int, at: float) -> tuple[Pod, ...]:
    """The pods of an earlier revision, gone since `at`."""
    return pods(workload, of, count, deleted=at)


def traffic(clock: Clock, by_code: Mapping[str, Points], mean_seconds: Points) -> Traffic:
    return Traffic(by_code=by_code, mean_seconds=mean_seconds, origin=clock.ago(days=2))


def calm(clock: Clock, per_second: float, mean_seconds: float = 0.04) -> Traffic:
    """A service that does well: one request in two thousand fails."""
    start = clock.ago(days=2)
    by_code = {"200": ((start, per_second),), "500": ((start, per_second / 2000),)}
    return traffic(clock, by_code, ((start, mean_seconds),))


def healthy(
    clock: Clock,
    namespace: str,
    name: str,
    *,
    count: int = 2,
    deployed: float | None = None,
    version: str = "1.4.2",
    says: Sequence[Saying] = (),
    per_second: float = 12.0,
    cause: str = "",
) -> Workload:
    """A Deployment with nothing wrong. With `deployed`, a rollout went through at that time."""
    container = Container(name=name, image=f"{REGISTRY}/{name}:{version}")
    first = revision(name, 6, clock.ago(days=12), container)
    revisions: tuple[Revision, ...] = (first,)
    gone: tuple[Pod, ...] = ()
    if deployed is not None:
        before = Container(name=name, image=f"{REGISTRY}/{name}:{version}-previous")
        first = revision(name, 6, clock.ago(days=12), before)
        revisions = (first, revision(name, 7, deployed, container, cause))
        gone = replaced(name, first, count, deployed + 40)
    return Workload(
        namespace=namespace,
        name=name,
        replicas=count,
        revisions=revisions,
        pods=(*gone, *pods(name, revisions[-1], count)),
        created=clock.ago(days=200),
        says=(Saying(texts=(ACCESS_LOG,), every=11.0), *says),
        spoken=(Spoken(after=3, text=f'level=info ts=$t msg="{name} {version} listening" port=8080'),),
        traffic=calm(clock, per_second),
    )


def rollout(workload: Workload, up: int | None = None) -> tuple[Event, ...]:
    """What the deployment controller says when the current revision comes."""
    last = workload.current
    count = workload.replicas if up is None else up

    def scaled(direction: str, hash_: str, to: int, at: float) -> Event:
        message = f"Scaled {direction} replica set {workload.name}-{hash_} to {to}"
        return Event(
            namespace=workload.namespace,
            kind="Deployment",
            name=workload.name,
            reason="ScalingReplicaSet",
            message=message,
            first=at,
            last=at,
            component="deployment-controller",
        )

    found = [scaled("up", last.hash, count, last.at)]
    if len(workload.revisions) > 1:
        found.append(scaled("down", workload.revisions[-2].hash, workload.replicas - count, last.at + 42))
    return tuple(found)


def about_pod(
    workload: Workload, which: Pod, reason: str, message: str, first: float, last: float, **more: Any
) -> Event:
    """An event of the kubelet; a warning unless `type` says otherwise."""
    more.setdefault("type", "Warning")
    return Event(
        namespace=workload.namespace,
        kind="Pod",
        name=workload.pod_name(which),
        reason=reason,
        message=message,
        first=first,
        last=last,
        **more,
    )


def started(workload: Workload, which: Pod) -> tuple[Event, ...]:
    """Scheduled, pulled, created, started."""
    container = workload.revision(which).container
    name = f"{workload.namespace}/{workload.pod_name(which)}"
    steps = (
        ("Scheduled", f"Successfully assigned {name} to {which.node}", "default-scheduler"),
        ("Pulled", f'Container image "{container.image}" already present on machine', "kubelet"),
        ("Created", f"Created container: {container.name}", "kubelet"),
        ("Started", f"Started container {container.name}", "kubelet"),
    )
    return tuple(
        about_pod(workload, which, reason, text, which.created + i, which.created + i, type="Normal", component=by)
        for i, (reason, text, by) in enumerate(steps)
    )


def runs(*spans: tuple[float, float | None], exit_code: int, reason: str) -> tuple[Instance, ...]:
    """Runs of a container that each ended the same way; one without an end still goes on."""
    return tuple(
        Instance(start=start, end=end)
        if end is None
        else Instance(start=start, end=end, exit_code=exit_code, reason=reason)
        for start, end in spans
    )


def climbing(instances: Sequence[Instance], low: float, high: float, seconds: float) -> Shape:
    """Memory that grows from `low` to `high` within `seconds` of each start."""

    def value(t: float) -> float | None:
        current = next((one for one in reversed(instances) if one.start <= t), None)
        return None if current is None else min(high, low + (high - low) * (t - current.start) / seconds)

    return value


def firing(name: str, over: str) -> str:
    """The share of requests of a service that end in a 5xx, over a window."""
    service = f'http_requests_total{{service="{name}"'
    return f'sum(rate({service},code=~"5.."}}[{over}])) / sum(rate({service}}}[{over}]))'
