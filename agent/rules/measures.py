"""The usual metric series: what each measures, how to ask for it, and when it is worth asking."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """`query` has the selector's labels in place of `$`; `metric` is the name that must exist for it to be asked.

    `seen` finds the measure in any query, also one that a language model wrote. `scope` says which labels select it:
    those of a pod, a node, a service, or none. `words` are what an alert says when this is its matter; without
    them it is always asked.
    """

    name: str
    metric: str
    query: str
    scope: str
    words: tuple[str, ...] = ()
    seen: str = ""

    def asked_in(self, query: str) -> bool:
        return re.search(self.seen or re.escape(self.metric), query) is not None


# The first whose `seen` is found in a query names it: ratios and rates stand before the bare series they are made of.
MEASURES: tuple[Measure, ...] = (
    Measure(
        name="memory_limit",
        metric="kube_pod_container_resource_limits",
        query='max by (namespace, pod, container) (kube_pod_container_resource_limits{resource="memory",$})',
        scope="pod",
        seen=r'kube_pod_container_resource_limits\{[^}]{0,300}resource="memory"',
    ),
    Measure(
        name="memory_used",
        metric="container_memory_working_set_bytes",
        query="max by (namespace, pod, container)"
        ' (container_memory_working_set_bytes{container!="",container!="POD",$})',
        scope="pod",
    ),
    Measure(
        name="restarts",
        metric="kube_pod_container_status_restarts_total",
        query="max by (namespace, pod, container) (kube_pod_container_status_restarts_total{$})",
        scope="pod",
    ),
    Measure(
        name="throttled",
        metric="container_cpu_cfs_throttled_periods_total",
        query="sum by (namespace, pod) (rate(container_cpu_cfs_throttled_periods_total{$}[5m]))"
        " / sum by (namespace, pod) (rate(container_cpu_cfs_periods_total{$}[5m]))",
        scope="pod",
        seen=r"throttled_periods_total[^/]{0,300}/",
    ),
    Measure(
        name="cpu_by_pod",
        metric="container_cpu_usage_seconds_total",
        query='sum by (namespace, pod, node) (rate(container_cpu_usage_seconds_total{container!="",$}[5m]))',
        scope="node",
        words=("cpu", "latency", "slow", "throttl", "saturat", "load", "p99", "p95", "duration", "timeout"),
    ),
    Measure(
        name="cpu_steal",
        metric="node_cpu_seconds_total",
        query='avg by (instance) (rate(node_cpu_seconds_total{mode="steal",$}[5m]))',
        scope="instance",
        words=("cpu", "latency", "slow", "steal", "load", "p99", "p95"),
        seen=r'node_cpu_seconds_total\{[^}]{0,200}mode="steal"',
    ),
    Measure(
        name="cpu_busy",
        metric="node_cpu_seconds_total",
        query='1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle",$}[5m]))',
        scope="instance",
        words=("cpu", "latency", "slow", "load", "saturat", "p99", "p95", "node"),
        seen=r'1 ?-.{0,60}node_cpu_seconds_total\{[^}]{0,200}mode="idle"',
    ),
    Measure(
        name="disk_free",
        metric="node_filesystem_avail_bytes",
        query='min by (instance, mountpoint) (node_filesystem_avail_bytes{fstype!~"tmpfs|overlay|squashfs",$}'
        ' / node_filesystem_size_bytes{fstype!~"tmpfs|overlay|squashfs",$})',
        scope="instance",
        words=("disk", "filesystem", "space", "volume", "storage", "inode", "full", "node", "write"),
        seen=r"node_filesystem_(?:avail|free)_bytes.{0,200}/.{0,40}node_filesystem_size_bytes",
    ),
    Measure(
        name="volume_free",
        metric="kubelet_volume_stats_available_bytes",
        query="min by (namespace, persistentvolumeclaim) (kubelet_volume_stats_available_bytes{$}"
        " / kubelet_volume_stats_capacity_bytes{$})",
        scope="namespace",
        words=("disk", "volume", "space", "storage", "pvc", "full", "database", "write", "persistent"),
        seen=r"kubelet_volume_stats_available_bytes.{0,200}/.{0,40}kubelet_volume_stats_capacity_bytes",
    ),
    Measure(
        name="certificate_seconds",
        metric="probe_ssl_earliest_cert_expiry",
        query="min by (instance) (probe_ssl_earliest_cert_expiry - time())",
        scope="none",
        words=("cert", "tls", "ssl", "https", "x509", "expir", "probe", "handshake"),
        seen=r"cert(?:ificate)?_(?:expiry|expiration|not_after)[a-z_]{0,30}(?:\{[^}]{0,300}\})?\)? ?- ?time\(\)",
    ),
    Measure(
        name="up",
        metric="up",
        query="min by (job, instance) (up{$})",
        scope="service",
        seen=r"(?<![a-z_:])up(?:\{|\)|$| )",
    ),
    Measure(
        name="pool_pending",
        metric="hikaricp_connections_pending",
        query="max by (namespace, pod, pool) (hikaricp_connections_pending{$})",
        scope="pod",
        seen=r"pool[a-z_]{0,30}(?:pending|waiting|wait_count)|connections_pending|(?:pending|waiting)_(?:connections|requests)",
    ),
    Measure(
        name="pool_max",
        metric="hikaricp_connections_max",
        query="max by (namespace, pod, pool) (hikaricp_connections_max{$})",
        scope="pod",
        seen=r"pool[a-z_]{0,30}max|connections_(?:max|limit)|max_(?:open_)?connections",
    ),
    Measure(
        name="pool_used",
        metric="hikaricp_connections_active",
        query="max by (namespace, pod, pool) (hikaricp_connections_active{$})",
        scope="pod",
        seen=r"pool[a-z_]{0,30}(?:active|in_?use|used|checked_?out)|connections_(?:active|in_?use|used)|(?:in_use|active)_connections",
    ),
    Measure(
        name="queue_lag",
        metric="kafka_consumergroup_lag",
        query="sum by (consumergroup, topic) (kafka_consumergroup_lag)",
        scope="none",
        words=("lag", "queue", "backlog", "consumer", "kafka", "message", "delay"),
        seen=r"[a-z_]{0,60}(?:_lag\b|lag_sum|messages_ready|queue_(?:length|depth|size|messages)|backlog)",
    ),
)

_GENERIC = re.compile(r"[a-z_:][a-z0-9_:]{2,120}")
_FAMILIES = ("pool_pending", "pool_max", "pool_used", "queue_lag")


def measure_of(query: str) -> str:
    """The name of what a query measures; empty where it is none of the usual."""
    return next((measure.name for measure in MEASURES if measure.asked_in(query)), "")


def known_metrics(text: str) -> Mapping[str, str]:
    """Measure to metric name, as a listing has it: also an application's own pool and queue gauges."""
    found: dict[str, str] = {}
    names = set(_GENERIC.findall(text[:200_000]))
    for measure in MEASURES:
        if measure.metric in names:
            found.setdefault(measure.name, measure.metric)
        elif measure.name in _FAMILIES:
            own = sorted(name for name in names if re.search(measure.seen, name) and measure_of(name) == measure.name)
            if own:
                found[measure.name] = own[0]
    return found
