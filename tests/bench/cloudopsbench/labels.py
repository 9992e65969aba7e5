"""From the analyst's mechanism to the label set of the data; the rules know nothing of this table."""

from __future__ import annotations

from tests.bench.cloudopsbench.cases import Answer

# Mechanism, or mechanism and variant, to taxonomy and cause; the longer key comes first.
LABELS: dict[str, tuple[str, str]] = {
    "missing_reference.serviceaccount": ("Admission_Fault", "missing_service_account"),
    "missing_reference": ("Startup_Fault", "missing_secret_binding"),
    "quota_exceeded.cpu": ("Admission_Fault", "namespace_cpu_quota_exceeded"),
    "quota_exceeded.memory": ("Admission_Fault", "namespace_memory_quota_exceeded"),
    "quota_exceeded.pods": ("Admission_Fault", "namespace_pod_quota_exceeded"),
    "quota_exceeded.services": ("Admission_Fault", "namespace_service_quota_exceeded"),
    "quota_exceeded.storage": ("Admission_Fault", "namespace_storage_quota_exceeded"),
    "node_component_down.containerd": ("Infrastructure_Fault", "containerd_unavailable"),
    "node_component_down.kube-proxy": ("Infrastructure_Fault", "kube_proxy_unavailable"),
    "node_component_down.kube-scheduler": ("Infrastructure_Fault", "kube_scheduler_unavailable"),
    "node_component_down.kubelet": ("Infrastructure_Fault", "kubelet_unavailable"),
    "node_not_ready": ("Infrastructure_Fault", "kubelet_unavailable"),
    "node_network.delay": ("Infrastructure_Fault", "node_network_delay"),
    "node_network.loss": ("Infrastructure_Fault", "node_network_packet_loss"),
    "cpu_overload": ("Performance_Fault", "pod_cpu_overload"),
    "cpu_throttling": ("Performance_Fault", "pod_cpu_overload"),
    "network_delay": ("Performance_Fault", "pod_network_delay"),
    "probe_failure.liveness_port": ("Runtime_Fault", "liveness_probe_incorrect_port"),
    "probe_failure.liveness_protocol": ("Runtime_Fault", "liveness_probe_incorrect_protocol"),
    "probe_failure.liveness_timing": ("Runtime_Fault", "liveness_probe_incorrect_timing"),
    "probe_failure.readiness_port": ("Runtime_Fault", "readiness_probe_incorrect_port"),
    "probe_failure.readiness_protocol": ("Runtime_Fault", "readiness_probe_incorrect_protocol"),
    "memory_limit": ("Runtime_Fault", "oom_killed"),
    "unschedulable.cpu": ("Scheduling_Fault", "cpu_capacity_mismatch"),
    "unschedulable.memory": ("Scheduling_Fault", "memory_capacity_mismatch"),
    "unschedulable.affinity": ("Scheduling_Fault", "node_affinity_mismatch"),
    "unschedulable.selector": ("Scheduling_Fault", "node_selector_mismatch"),
    "unschedulable.cordoned": ("Scheduling_Fault", "node_cordon_mismatch"),
    "unschedulable.anti_affinity": ("Scheduling_Fault", "pod_anti_affinity_conflict"),
    "unschedulable.taint": ("Scheduling_Fault", "taint_toleration_mismatch"),
    "volume_claim.occupied": ("Scheduling_Fault", "pv_binding_occupied"),
    "volume_claim.access_mode": ("Scheduling_Fault", "pvc_access_mode_mismatch"),
    "volume_claim.capacity": ("Scheduling_Fault", "pvc_capacity_mismatch"),
    "volume_claim.selector": ("Scheduling_Fault", "pvc_selector_mismatch"),
    "volume_claim.storage_class": ("Scheduling_Fault", "pvc_storage_class_mismatch"),
    "wrong_address.database": ("Runtime_Fault", "mysql_invalid_port"),
    "wrong_address": ("Service_Routing_Fault", "service_env_var_address_mismatch"),
    "service_port": ("Service_Routing_Fault", "service_port_mapping_mismatch"),
    "service_protocol": ("Service_Routing_Fault", "service_protocol_mismatch"),
    "service_selector": ("Service_Routing_Fault", "service_selector_mismatch"),
    "misroute": ("Service_Routing_Fault", "gateway_misroute"),
    "dns_failure": ("Service_Routing_Fault", "service_dns_resolution_failure"),
    "image_pull.registry_name": ("Startup_Fault", "image_registry_dns_failure"),
    "image_pull.credentials": ("Startup_Fault", "missing_image_pull_secret"),
    "image_pull": ("Startup_Fault", "incorrect_image_reference"),
    "permission_denied": ("Startup_Fault", "volume_mount_permission_denied"),
    "connection_pool_exhausted": ("Runtime_Fault", "db_connection_exhaustion"),
    "database_read_only": ("Runtime_Fault", "db_read_only"),
    "scaled_to_zero": ("Runtime_Fault", "deployment_zero_replicas"),
    "invalid_credentials": ("Runtime_Fault", "mysql_invalid_credentials"),
    "port_conflict": ("Runtime_Fault", "service_sidecar_port_conflict"),
}
KINDS = {"node": "node", "quota": "namespace"}  # by the first word of the mechanism; a workload's is `app`


def label(category: str, component: str) -> Answer:
    """The label of what was found; what the data has no word for keeps ours."""
    taxonomy, cause = LABELS.get(category) or LABELS.get(category.partition(".")[0]) or ("", category)
    kind = KINDS.get(category.partition("_")[0], "app")
    return Answer(taxonomy, f"{kind}/{component}", cause)
