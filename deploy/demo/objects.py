"""Kubernetes objects from the cluster model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deploy.demo.cluster import Claim, Document, Event, Node, Part, Quota, Workload
from deploy.demo.pod_objects import Object, labels_of, metadata, pod, pod_spec, quantity
from deploy.demo.scene import hexadecimal, rfc3339, uid


def everything(cluster: Part) -> list[Object]:
    """Every object the cluster has, each with apiVersion and kind."""
    found: list[Object] = [node(one) for one in cluster.nodes]
    for workload in cluster.workloads:
        found += _of_workload(workload)
    found += [document(one) for one in cluster.documents]
    found += [claim(one) for one in cluster.claims]
    found += [quota(one) for one in cluster.quotas]
    found += [event(one) for one in cluster.events]
    found += [dict(one) for one in cluster.objects]
    names = sorted({one["metadata"]["namespace"] for one in found if "namespace" in one["metadata"]})
    return [*found, *(namespace(name) for name in names)]


def namespace(name: str) -> Object:
    about = metadata("Namespace", name, "", 0.0, labels={"kubernetes.io/metadata.name": name})
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": about, "status": {"phase": "Active"}}


def _of_workload(workload: Workload) -> list[Object]:
    found = [pod(workload, one) for one in workload.alive]
    match workload.kind:
        case "Deployment":
            found += [deployment(workload), *replicasets(workload)]
        case "StatefulSet":
            found.append(statefulset(workload))
        case _:
            found.append(job(workload))
    if workload.service:
        found += [service(workload), endpoints(workload)]
    return found


def _template(workload: Workload, index: int) -> Object:
    revision = workload.revisions[index]
    labels = {**labels_of(workload), **revision.labels}
    return {"metadata": {"labels": labels}, "spec": pod_spec(workload, revision.container)}


def _rollout(workload: Workload, index: int) -> dict[str, str]:
    revision = workload.revisions[index]
    cause = {"kubernetes.io/change-cause": revision.cause} if revision.cause else {}
    return {"deployment.kubernetes.io/revision": str(revision.number), **cause}


def deployment(workload: Workload) -> Object:
    ready = sum(workload.endpoint_ready(one) for one in workload.alive)
    updated = sum(one.revision == workload.current.hash for one in workload.alive)
    available = "True" if ready * 4 >= workload.replicas * 3 else "False"
    rolled = all(workload.endpoint_ready(one) for one in workload.alive if one.revision == workload.current.hash)
    outcome = "has successfully progressed" if rolled else "has timed out progressing"
    since = rfc3339(workload.current.at)
    conditions = [
        {
            "type": "Available",
            "status": available,
            "lastTransitionTime": since,
            "reason": "MinimumReplicasAvailable" if available == "True" else "MinimumReplicasUnavailable",
        },
        {
            "type": "Progressing",
            "status": "True" if rolled else "False",
            "lastUpdateTime": since,
            "lastTransitionTime": since,
            "reason": "NewReplicaSetAvailable" if rolled else "ProgressDeadlineExceeded",
            "message": f'ReplicaSet "{workload.name}-{workload.current.hash}" {outcome}.',
        },
    ]
    about = metadata(
        "Deployment",
        workload.name,
        workload.namespace,
        workload.created,
        labels=labels_of(workload),
        annotations=_rollout(workload, -1),
        generation=workload.current.number,
    )
    spec = {
        "replicas": workload.replicas,
        "selector": {"matchLabels": {"app": workload.name}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "progressDeadlineSeconds": 600,
        "template": _template(workload, -1),
    }
    status = {
        "observedGeneration": workload.current.number,
        "replicas": len(workload.alive),
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, len(workload.alive) - ready),
        "conditions": conditions,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec, "status": status}


def replicasets(workload: Workload) -> list[Object]:
    return [_replicaset(workload, index) for index in range(len(workload.revisions))]


def _replicaset(workload: Workload, index: int) -> Object:
    revision = workload.revisions[index]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": workload.name,
        "controller": True,
        "uid": uid(f"Deployment/{workload.namespace}/{workload.name}"),
    }
    about = metadata(
        "ReplicaSet",
        f"{workload.name}-{revision.hash}",
        workload.namespace,
        revision.at,
        labels={**labels_of(workload), "pod-template-hash": revision.hash},
        annotations=_rollout(workload, index),
        ownerReferences=[owner],
    )
    mine = [one for one in workload.alive if one.revision == revision.hash]
    selector = {"matchLabels": {"app": workload.name, "pod-template-hash": revision.hash}}
    ready = sum(workload.endpoint_ready(one) for one in mine)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": about,
        "spec": {"replicas": len(mine), "selector": selector, "template": _template(workload, index)},
        "status": {"replicas": len(mine), "readyReplicas": ready, "availableReplicas": ready},
    }


def statefulset(workload: Workload) -> Object:
    ready = sum(workload.endpoint_ready(one) for one in workload.alive)
    about = metadata("StatefulSet", workload.name, workload.namespace, workload.created, labels=labels_of(workload))
    spec = {
        "replicas": workload.replicas,
        "serviceName": workload.name,
        "selector": {"matchLabels": {"app": workload.name}},
        "template": _template(workload, -1),
    }
    status = {"replicas": len(workload.alive), "readyReplicas": ready, "currentReplicas": len(workload.alive)}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": about, "spec": spec, "status": status}


def job(workload: Workload) -> Object:
    about = metadata("Job", workload.name, workload.namespace, workload.created, labels=labels_of(workload))
    spec = {"parallelism": workload.replicas, "completions": workload.replicas, "template": _template(workload, -1)}
    status = {"active": sum(one.running for one in workload.alive), "startTime": rfc3339(workload.created)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec, "status": status}


def service(workload: Workload) -> Object:
    port = workload.target_port or workload.current.container.port
    about = metadata("Service", workload.name, workload.namespace, workload.created, labels=labels_of(workload))
    ports = [{"name": "http", "port": workload.service_port, "targetPort": port, "protocol": "TCP"}]
    address = f"10.96.{int(hexadecimal(workload.name, 2), 16)}.{int(hexadecimal(workload.name + '/', 2), 16)}"
    spec = {"type": "ClusterIP", "clusterIP": address, "selector": {"app": workload.name}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec, "status": {"loadBalancer": {}}}


def endpoints(workload: Workload) -> Object:
    port = workload.target_port or workload.current.container.port
    about = metadata("Endpoints", workload.name, workload.namespace, workload.created, labels=labels_of(workload))
    groups: dict[str, list[Object]] = {"addresses": [], "notReadyAddresses": []}
    for one in workload.alive:
        reference = {"kind": "Pod", "namespace": workload.namespace, "name": workload.pod_name(one)}
        group = "addresses" if workload.endpoint_ready(one) else "notReadyAddresses"
        groups[group].append({"ip": one.ip, "nodeName": one.node, "targetRef": reference})
    subset = {name: members for name, members in groups.items() if members}
    subsets = [{**subset, "ports": [{"name": "http", "port": port, "protocol": "TCP"}]}] if subset else []
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": about, "subsets": subsets}


def node(one: Node) -> Object:
    about = metadata(
        "Node", one.name, "", one.created, labels={"kubernetes.io/hostname": one.name, "kubernetes.io/os": "linux"}
    )
    size = {
        "cpu": str(one.cores),
        "memory": quantity(one.memory),
        "ephemeral-storage": quantity(one.disk),
        "pods": "110",
    }
    calm = {
        "MemoryPressure": "KubeletHasSufficientMemory",
        "DiskPressure": "KubeletHasNoDiskPressure",
        "PIDPressure": "KubeletHasSufficientPID",
    }
    since = rfc3339(one.created)
    conditions = [
        {"type": kind, "status": "False", "reason": why, "lastTransitionTime": since} for kind, why in calm.items()
    ]
    conditions.append({"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": since})
    addresses = [{"type": "InternalIP", "address": one.ip}, {"type": "Hostname", "address": one.name}]
    info = {
        "kubeletVersion": "v1.34.2",
        "osImage": "Debian GNU/Linux 13 (trixie)",
        "containerRuntimeVersion": "containerd://2.1.5",
    }
    status = {"capacity": size, "allocatable": size, "conditions": conditions, "addresses": addresses, "nodeInfo": info}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "spec": {}, "status": status}


def document(one: Document) -> Object:
    about = metadata("ConfigMap", one.name, one.namespace, one.created)
    if one.changed is not None:
        manager = one.changed_by or "kubectl-edit"
        entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": rfc3339(one.changed)}
        about["managedFields"] = [{**entry, "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": dict(one.data)}


def claim(one: Claim) -> Object:
    about = metadata("PersistentVolumeClaim", one.name, one.namespace, one.created)
    size = {"storage": quantity(one.bytes)}
    volume = f"pvc-{uid(one.name)}"
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": size},
        "storageClassName": "standard",
        "volumeName": volume,
    }
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec, "status": status}


def quota(one: Quota) -> Object:
    about = metadata("ResourceQuota", one.name, one.namespace, one.created)
    status: Mapping[str, Any] = {"hard": dict(one.hard), "used": dict(one.used)}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": about,
        "spec": {"hard": dict(one.hard)},
        "status": status,
    }


_VERSIONS = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}


def event(one: Event) -> Object:
    name = f"{one.name}.{hexadecimal(f'{one.name}{one.reason}{one.message}{one.first}')}"
    about = metadata("Event", name, one.namespace, one.first)
    involved = {
        "kind": one.kind,
        "namespace": one.namespace,
        "name": one.name,
        "uid": uid(f"{one.kind}/{one.namespace}/{one.name}"),
        "apiVersion": _VERSIONS.get(one.kind, "v1"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": about,
        "involvedObject": involved,
        "reason": one.reason,
        "message": one.message,
        "source": {"component": one.component},
        "firstTimestamp": rfc3339(one.first),
        "lastTimestamp": rfc3339(one.last),
        "count": one.count,
        "type": one.type,
        "eventTime": None,
        "reportingComponent": one.component,
        "reportingInstance": "",
    }
