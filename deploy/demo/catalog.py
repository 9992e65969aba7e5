"""Which incidents the demo world has, and the cluster they happen in."""

from __future__ import annotations

import random
from collections.abc import Callable

from deploy.demo.cluster import GIB, Event, Node, Part, Quota, merged
from deploy.demo.incidents import (
    busy_node,
    certificate,
    config_name,
    connection_pool,
    disk_full,
    image_tag,
    latency_blip,
    memory_limit,
    name_lookup,
    probe_port,
    provider_outage,
    tight_threshold,
)
from deploy.demo.parts import NODES, healthy
from deploy.demo.scene import Clock, Incident
from deploy.demo.shapes import steady

BUILDERS: tuple[Callable[[Clock], Incident], ...] = (
    memory_limit.build,
    disk_full.build,
    connection_pool.build,
    name_lookup.build,
    latency_blip.build,
    provider_outage.build,
    image_tag.build,
    certificate.build,
    busy_node.build,
    tight_threshold.build,
    config_name.build,
    probe_port.build,
)


MAX_SHIFT_SECONDS = 120.0


def incidents(clock: Clock, seed: int = 0) -> tuple[Incident, ...]:
    """With a seed, each incident happens a little earlier, so that they do not always come in the same order."""
    chance = random.Random(seed)
    shifts = [chance.uniform(0.0, MAX_SHIFT_SECONDS) if seed else 0.0 for _ in BUILDERS]
    return tuple(build(Clock(clock.start - round(shift))) for build, shift in zip(BUILDERS, shifts, strict=True))


def cluster(clock: Clock, scene: tuple[Incident, ...]) -> Part:
    """Everything there is: the parts of the incidents on a background where nothing is wrong."""
    return merged((_background(clock), *(incident.part for incident in scene)))


def _background(clock: Clock) -> Part:
    names = (*NODES, "node-b2")
    nodes = tuple(
        Node(
            name=name, ip=f"10.0.2.{index + 10}", created=clock.ago(days=150), disk_used=steady((38 + 3 * index) * GIB)
        )
        for index, name in enumerate(names)
    )
    restarted = Event(
        namespace="default",
        kind="Node",
        name="node-a2",
        reason="RegisteredNode",
        component="node-controller",
        message="Node node-a2 event: Registered Node node-a2 in Controller",
        first=clock.ago(minutes=53),
        last=clock.ago(minutes=53),
    )
    quota = Quota(
        namespace="batch",
        name="batch-quota",
        hard={"pods": "40", "limits.memory": "64Gi"},
        used={"pods": "1", "limits.memory": "8Gi"},
        created=clock.ago(days=300),
    )
    calm = (
        healthy(clock, "web", "storefront", count=3, per_second=90.0),
        healthy(clock, "monitoring", "grafana", count=1),
    )
    return Part(workloads=calm, nodes=nodes, events=(restarted,), quotas=(quota,))
