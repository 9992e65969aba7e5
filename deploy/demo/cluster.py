"""The model of a cluster from which objects, events, metrics and logs are derived, so that they agree.

All times are epoch seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deploy.demo.shapes import Points, Shape, steady

MIB = 1024.0 * 1024.0
GIB = 1024.0 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """A line a container writes every so often, texts in turn. `$t` is the time, `$n` an id, `$port` the port."""

    texts: tuple[str, ...]
    every: float
    since: float = 0.0
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A line at a fixed number of seconds after each start (or, negative, before each end) of a container."""

    after: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One run of a container."""

    start: float
    end: float | None = None
    exit_code: int = 0
    reason: str = ""  # OOMKilled, Error, Completed


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What a pod template says of its only container."""

    name: str
    image: str
    port: int = 8080
    memory_limit: float = 512 * MIB
    memory_request: float = 256 * MIB
    cpu_limit: float | None = 1.0  # cores; None: no limit
    cpu_request: float = 0.25
    probe_path: str = "/healthz"
    probe_port: int | None = None  # None: the container's port
    env: Mapping[str, str] = field(default_factory=dict)
    env_from: str = ""  # a config map
    volume_claim: str = ""
    mount_path: str = "/data"
    mounts: Mapping[str, str] = field(default_factory=dict)  # mount path -> "configmap/NAME" or "secret/NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One pod template of a workload."""

    hash: str
    number: int
    at: float
    container: Container
    cause: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod; `suffix` completes its name. Without instances, its container never ran."""

    suffix: str
    revision: str  # a revision's hash
    node: str
    ip: str
    created: float
    instances: tuple[Instance, ...] = ()
    earlier_restarts: int = 0  # before the oldest instance listed
    waiting: str = ""  # CrashLoopBackOff, ImagePullBackOff, CreateContainerConfigError
    waiting_message: str = ""
    unready_since: float | None = None  # fails its readiness probe
    deleted: float | None = None
    memory: Shape = field(default_factory=lambda: steady(180 * MIB))
    cpu: Points = ((0.0, 0.08),)  # cores, as steps
    throttled: Points = ((0.0, 0.0),)  # share of CPU periods, as steps

    @property
    def running(self) -> bool:
        return self.deleted is None and bool(self.instances) and self.instances[-1].end is None

    @property
    def restarts(self) -> int:
        return self.earlier_restarts + max(0, len(self.instances) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """HTTP requests a service takes: per second by status code, and mean seconds a request, as steps."""

    by_code: Mapping[str, Points]
    mean_seconds: Points
    origin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Deployment, StatefulSet or Job with everything that belongs to it. Revisions in order, the last is current."""

    namespace: str
    name: str
    kind: str = "Deployment"
    replicas: int
    revisions: tuple[Revision, ...]
    pods: tuple[Pod, ...]
    created: float
    service: bool = True
    service_port: int = 80
    target_port: int | None = None  # None: the current container's port
    says: tuple[Saying, ...] = ()
    spoken: tuple[Spoken, ...] = ()
    traffic: Traffic | None = None

    @property
    def current(self) -> Revision:
        return self.revisions[-1]

    @property
    def alive(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if pod.deleted is None)

    def revision(self, pod: Pod) -> Revision:
        return next(revision for revision in self.revisions if revision.hash == pod.revision)

    def pod_name(self, pod: Pod) -> str:
        middle = f"-{pod.revision}" if self.kind == "Deployment" else ""
        return f"{self.name}{middle}-{pod.suffix}"

    def endpoint_ready(self, pod: Pod) -> bool:
        return pod.running and pod.unready_since is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A Kubernetes event; `kind`/`name` are what it is about."""

    namespace: str
    kind: str
    name: str
    reason: str
    message: str
    first: float
    last: float
    count: int = 1
    type: str = "Normal"
    component: str = "kubelet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A ConfigMap with its data, and who changed it when."""

    namespace: str
    name: str
    data: Mapping[str, str]
    created: float
    changed: float | None = None
    changed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim and how full it is."""

    namespace: str
    name: str
    bytes: float
    used: Shape
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine. `busy` is the share of its CPU in use, as steps."""

    name: str
    ip: str
    cores: int = 8
    memory: float = 32 * GIB
    disk: float = 100 * GIB
    disk_used: Shape = field(default_factory=lambda: steady(41 * GIB))
    busy: Points = ((0.0, 0.34),)
    created: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A series that a workload's own exporter gives, beside what is derived."""

    name: str
    labels: Mapping[str, str]
    value: Shape
    kind: str = "gauge"
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    namespace: str
    name: str
    hard: Mapping[str, str]
    used: Mapping[str, str]
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one incident adds to the cluster."""

    workloads: tuple[Workload, ...] = ()
    events: tuple[Event, ...] = ()
    documents: tuple[Document, ...] = ()
    claims: tuple[Claim, ...] = ()
    quotas: tuple[Quota, ...] = ()
    nodes: tuple[Node, ...] = ()
    gauges: tuple[Gauge, ...] = ()
    objects: tuple[Mapping[str, Any], ...] = ()  # anything else, as Kubernetes JSON


def merged(parts: tuple[Part, ...]) -> Part:
    """All parts as one cluster; a node that two parts name is taken from the later one."""
    nodes = {node.name: node for part in parts for node in part.nodes}
    return Part(
        workloads=tuple(one for part in parts for one in part.workloads),
        events=tuple(one for part in parts for one in part.events),
        documents=tuple(one for part in parts for one in part.documents),
        claims=tuple(one for part in parts for one in part.claims),
        quotas=tuple(one for part in parts for one in part.quotas),
        nodes=tuple(nodes.values()),
        gauges=tuple(one for part in parts for one in part.gauges),
        objects=tuple(one for part in parts for one in part.objects),
    )


def renewed(container: Container, **changes: Any) -> Container:
    """The container of the next revision."""
    return replace(container, **changes)
