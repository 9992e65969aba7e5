"""The list of mechanisms: `ALL` is what the analyst knows."""

from __future__ import annotations

from agent.rules.mechanisms.certificate import CERTIFICATE
from agent.rules.mechanisms.config_reference import CONFIG_REFERENCE
from agent.rules.mechanisms.connection_pool import CONNECTION_POOL
from agent.rules.mechanisms.cpu_throttling import CPU_LIMIT, NOISY_NEIGHBOUR
from agent.rules.mechanisms.crash_loop import CRASH_LOOP, CREDENTIALS, PERMISSIONS, PORT_CONFLICT, READ_ONLY
from agent.rules.mechanisms.dependency import DEPENDENCY
from agent.rules.mechanisms.deploy import DEPLOY
from agent.rules.mechanisms.disk_full import DISK_FULL
from agent.rules.mechanisms.dns import DNS
from agent.rules.mechanisms.image_pull import IMAGE_PULL
from agent.rules.mechanisms.node import NODE_DOWN
from agent.rules.mechanisms.oom import OOM
from agent.rules.mechanisms.port import Mechanism
from agent.rules.mechanisms.probes import PROBES
from agent.rules.mechanisms.queue_lag import QUEUE_LAG
from agent.rules.mechanisms.quota import QUOTA
from agent.rules.mechanisms.scaling import SCALED_TO_ZERO
from agent.rules.mechanisms.scheduling import SCHEDULING

ALL: tuple[Mechanism, ...] = (
    NODE_DOWN,
    DISK_FULL,
    CERTIFICATE,
    QUOTA,
    CONFIG_REFERENCE,
    SCALED_TO_ZERO,
    IMAGE_PULL,
    SCHEDULING,
    OOM,
    CREDENTIALS,
    PERMISSIONS,
    PORT_CONFLICT,
    READ_ONLY,
    CONNECTION_POOL,
    DNS,
    NOISY_NEIGHBOUR,
    CPU_LIMIT,
    PROBES,
    CRASH_LOOP,
    DEPENDENCY,
    QUEUE_LAG,
    DEPLOY,
)
