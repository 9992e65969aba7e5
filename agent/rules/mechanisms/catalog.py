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
from agent.rules.mechanisms.misroute import MISROUTE
from agent.rules.mechanisms.node import NODE_DOWN
from agent.rules.mechanisms.node_component import NODE_COMPONENT, SCHEDULER_SILENT
from agent.rules.mechanisms.oom import OOM
from agent.rules.mechanisms.port import Mechanism
from agent.rules.mechanisms.probes import PROBES
from agent.rules.mechanisms.queue_lag import QUEUE_LAG
from agent.rules.mechanisms.quota import QUOTA
from agent.rules.mechanisms.scaling import SCALED_TO_ZERO
from agent.rules.mechanisms.scheduling import SCHEDULING
from agent.rules.mechanisms.service_routing import SERVICE_PORT, SERVICE_PROTOCOL, SERVICE_SELECTOR
from agent.rules.mechanisms.slow_network import CPU_OVERLOAD, NETWORK_DELAY, NODE_DELAY, NODE_LOSS
from agent.rules.mechanisms.volume_claim import VOLUME_CLAIM
from agent.rules.mechanisms.wrong_address import WRONG_ADDRESS

ALL: tuple[Mechanism, ...] = (
    NODE_COMPONENT,
    NODE_DOWN,
    DISK_FULL,
    CERTIFICATE,
    QUOTA,
    CONFIG_REFERENCE,
    SCALED_TO_ZERO,
    IMAGE_PULL,
    VOLUME_CLAIM,
    SCHEDULING,
    SCHEDULER_SILENT,
    OOM,
    CREDENTIALS,
    PERMISSIONS,
    PORT_CONFLICT,
    READ_ONLY,
    CONNECTION_POOL,
    WRONG_ADDRESS,
    MISROUTE,
    DNS,
    NOISY_NEIGHBOUR,
    CPU_LIMIT,
    CPU_OVERLOAD,
    NODE_LOSS,
    NODE_DELAY,
    PROBES,
    SERVICE_SELECTOR,
    SERVICE_PORT,
    SERVICE_PROTOCOL,
    CRASH_LOOP,
    NETWORK_DELAY,
    DEPENDENCY,
    QUEUE_LAG,
    DEPLOY,
)
