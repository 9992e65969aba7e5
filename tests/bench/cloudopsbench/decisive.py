"""What an expert would underline in the recorded outputs, by cause; `{o}` is the object at fault,
`{s}` its name without what all names share. For the benchmark only."""

from __future__ import annotations

import re

from tests.bench.cloudopsbench.cases import Answer

_PROBE = r"{kind}:\s+.*|{kind} probe failed|{kind}Probe:"
_UNIT = r"Active: (?:inactive|failed)|Stopped .*|{unit}.*Deactivated"
_UNBOUND = r"unbound immediate|{o}\S*\s+Pending|didn't match|not found|no persistent volumes|incompatible|cannot bind"

PATTERNS: dict[str, str] = {
    "missing_service_account": r"serviceaccount .*not found",
    "missing_secret_binding": r"secret .*not found|CreateContainerConfigError|references? non-existent secret",
    "namespace_cpu_quota_exceeded": r"exceeded quota|cpu\s+\S+\s+\S+",
    "namespace_memory_quota_exceeded": r"exceeded quota|memory\s+\S+\s+\S+",
    "namespace_pod_quota_exceeded": r"exceeded quota|pods\s+\d+\s+\d+",
    "namespace_service_quota_exceeded": r"exceeded quota|services\s+\d+\s+\d+",
    "namespace_storage_quota_exceeded": r"exceeded quota|storage\s+\S+\s+\S+",
    "containerd_unavailable": _UNIT.format(unit="containerd.service"),
    "kube_proxy_unavailable": _UNIT.format(unit="kube-proxy.service"),
    "kube_scheduler_unavailable": _UNIT.format(unit="kube-scheduler.service"),
    "kubelet_unavailable": _UNIT.format(unit="kubelet.service") + r"|NotReady",
    "liveness_probe_incorrect_port": _PROBE.format(kind="Liveness"),
    "liveness_probe_incorrect_protocol": _PROBE.format(kind="Liveness"),
    "liveness_probe_incorrect_timing": _PROBE.format(kind="Liveness"),
    "readiness_probe_incorrect_port": _PROBE.format(kind="Readiness"),
    "readiness_probe_incorrect_protocol": _PROBE.format(kind="Readiness"),
    "oom_killed": r"OOMKilled|Exit Code:\s+137|container init was OOM-killed|memory limit too low",
    "cpu_capacity_mismatch": r"Insufficient cpu",
    "memory_capacity_mismatch": r"Insufficient memory",
    "node_affinity_mismatch": r"didn't match Pod's node affinity|nodeAffinity",
    "node_selector_mismatch": r"didn't match Pod's node affinity|Node-Selectors:\s+(?!<none>)\S+|nodeSelector",
    "node_cordon_mismatch": r"unschedulable|SchedulingDisabled",
    "pod_anti_affinity_conflict": r"anti-affinity|podAntiAffinity",
    "taint_toleration_mismatch": r"untolerated taint",
    "pv_binding_occupied": _UNBOUND + r"|Bound\s+\S+/(?!{o})",
    "pvc_access_mode_mismatch": _UNBOUND,
    "pvc_capacity_mismatch": _UNBOUND,
    "pvc_selector_mismatch": _UNBOUND,
    "pvc_storage_class_mismatch": _UNBOUND,
    "service_env_var_address_mismatch": r"connection refused|no such host|UnknownHost|_ADDR\b|name resolution",
    "service_port_mapping_mismatch": r"targetPort: .*|{o}\s+<none>|connection refused",
    "service_protocol_mismatch": r"protocol: UDP|/UDP",
    "service_selector_mismatch": r"{o}\s+<none>|selector:",
    "gateway_misroute": r"id: {s}\s+uri: \S+|No static resource|Connection refused",
    "service_dns_resolution_failure": r"UnknownHost|name resolution|Failed to resolve|no such host",
    "image_registry_dns_failure": r"no such host|Failed to pull image|server misbehaving|i/o timeout",
    "incorrect_image_reference": r"Failed to pull image|not found|ImagePullBackOff|ErrImagePull",
    "missing_image_pull_secret": r"Failed to pull image|authorization failed|denied|unauthorized|ImagePullBackOff",
    "volume_mount_permission_denied": r"[Pp]ermission denied|Can't open|read-only",
    "db_connection_exhaustion": r"Too many connections",
    "db_read_only": r"read-only|super-read-only",
    "deployment_zero_replicas": r"{o}\s+(?:0/0|<none>)",
    "mysql_invalid_credentials": r"Access denied|invalid credentials",
    "mysql_invalid_port": r"Communications link failure|[Cc]onnection refused|Connect timed out",
    "service_sidecar_port_conflict": r"already in use|{o}\s+<none>|{o}\S*\s+1/2",
    "pod_cpu_overload": r"CPU",
    "pod_network_delay": r"LATENCY|latency|delay|timed? ?out",
    "node_network_delay": r"LATENCY|latency",
    "node_network_packet_loss": r"LATENCY|latency|ERROR|loss",
}


def pattern(answer: Answer) -> re.Pattern[str] | None:
    """None for a cause nobody has looked at yet."""
    words = PATTERNS.get(answer.cause)
    if words is None:
        return None
    name = answer.object.partition("/")[2]
    short = name.removeprefix("ts-").removesuffix("-service")
    return re.compile(words.replace("{o}", re.escape(name)).replace("{s}", re.escape(short)))
