"""Pods and pod templates as Kubernetes objects, and what all objects have in common."""

from __future__ import annotations

from typing import Any

from deploy.demo.cluster import MIB, Container, Instance, Pod, Workload
from deploy.demo.scene import hexadecimal, rfc3339, uid

Object = dict[str, Any]


def metadata(kind: str, name: str, namespace: str, created: float, **more: Any) -> Object:
    identity = {"name": name, "uid": uid(f"{kind}/{namespace}/{name}"), "creationTimestamp": rfc3339(created)}
    version = {"resourceVersion": str(int(hexadecimal(f"{kind}{namespace}{name}", 6), 16))}
    return {**identity, **version, **({"namespace": namespace} if namespace else {}), **more}


def labels_of(workload: Workload) -> dict[str, str]:
    return {"app": workload.name, "app.kubernetes.io/name": workload.name}


def quantity(size: float) -> str:
    return f"{round(size / MIB)}Mi"


def cpu(cores: float) -> str:
    return f"{round(cores * 1000)}m"


def container(spec: Container) -> Object:
    limits = {"memory": quantity(spec.memory_limit)}
    if spec.cpu_limit is not None:
        limits["cpu"] = cpu(spec.cpu_limit)
    probe = {"httpGet": {"path": spec.probe_path, "port": spec.probe_port or spec.port}, "periodSeconds": 10}
    found: Object = {
        "name": spec.name,
        "image": spec.image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "http", "containerPort": spec.port, "protocol": "TCP"}],
        "resources": {
            "limits": limits,
            "requests": {"memory": quantity(spec.memory_request), "cpu": cpu(spec.cpu_request)},
        },
        "env": [{"name": name, "value": value} for name, value in spec.env.items()],
        "readinessProbe": {**probe, "timeoutSeconds": 1, "failureThreshold": 3},
    }
    if spec.env_from:
        found["envFrom"] = [{"configMapRef": {"name": spec.env_from}}]
    if spec.volume_claim or spec.mounts:
        found["volumeMounts"] = [{"name": name, "mountPath": path} for name, path, _ in _volumes(spec)]
    return found


def _volumes(spec: Container) -> list[tuple[str, str, Object]]:
    """(volume name, mount path, where it comes from)."""
    found: list[tuple[str, str, Object]] = []
    if spec.volume_claim:
        found.append(("data", spec.mount_path, {"persistentVolumeClaim": {"claimName": spec.volume_claim}}))
    for path, origin in spec.mounts.items():
        kind, _, name = origin.partition("/")
        source = {"secret": {"secretName": name}} if kind == "secret" else {"configMap": {"name": name}}
        found.append((name, path, source))
    return found


def pod_spec(workload: Workload, spec: Container) -> Object:
    found: Object = {
        "containers": [container(spec)],
        "restartPolicy": "Never" if workload.kind == "Job" else "Always",
        "serviceAccountName": "default",
    }
    if volumes := _volumes(spec):
        found["volumes"] = [{"name": name, **source} for name, _, source in volumes]
    return found


def pod(workload: Workload, one: Pod) -> Object:
    revision = workload.revision(one)
    name = workload.pod_name(one)
    owner_kind = "ReplicaSet" if workload.kind == "Deployment" else workload.kind
    owner = f"{workload.name}-{one.revision}" if workload.kind == "Deployment" else workload.name
    labels = {**labels_of(workload), **revision.labels, "pod-template-hash": one.revision}
    reference = {
        "apiVersion": "batch/v1" if owner_kind == "Job" else "apps/v1",
        "kind": owner_kind,
        "name": owner,
        "uid": uid(f"{owner_kind}/{workload.namespace}/{owner}"),
        "controller": True,
    }
    about = metadata("Pod", name, workload.namespace, one.created, labels=labels, ownerReferences=[reference])
    spec = {**pod_spec(workload, revision.container), "nodeName": one.node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec, "status": _pod_status(workload, one)}


def _pod_status(workload: Workload, one: Pod) -> Object:
    spec = workload.revision(one).container
    is_ready = workload.endpoint_ready(one)
    since = one.unready_since or (one.instances[-1].start if one.instances else one.created)
    blame: Object = (
        {}
        if is_ready
        else {"reason": "ContainersNotReady", "message": f"containers with unready status: [{spec.name}]"}
    )
    status = "True" if is_ready else "False"
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(one.created)},
        {"type": "Initialized", "status": "True", "lastTransitionTime": rfc3339(one.created)},
        {"type": "ContainersReady", "status": status, "lastTransitionTime": rfc3339(since), **blame},
        {"type": "Ready", "status": status, "lastTransitionTime": rfc3339(since), **blame},
    ]
    return {
        "phase": "Running" if one.instances else "Pending",
        "conditions": conditions,
        "hostIP": "",
        "podIP": one.ip,
        "startTime": rfc3339(one.created),
        "qosClass": "Burstable",
        "containerStatuses": [_container_status(spec, one, is_ready)],
    }


def _container_status(spec: Container, one: Pod, is_ready: bool) -> Object:
    ended = [instance for instance in one.instances if instance.end is not None]
    if one.waiting:
        state: Object = {"waiting": {"reason": one.waiting, "message": one.waiting_message}}
    elif one.running:
        state = {"running": {"startedAt": rfc3339(one.instances[-1].start)}}
    elif ended:
        state = {"terminated": _terminated(ended[-1])}
    else:
        state = {"waiting": {"reason": "ContainerCreating"}}
    last = {"terminated": _terminated(ended[-1])} if ended and "terminated" not in state else {}
    digest = f"{spec.image.partition(':')[0]}@sha256:{hexadecimal(spec.image, 64)}" if one.instances else ""
    return {
        "name": spec.name,
        "image": spec.image,
        "imageID": digest,
        "ready": is_ready,
        "started": one.running,
        "restartCount": one.restarts,
        "state": state,
        "lastState": last,
    }


def _terminated(instance: Instance) -> Object:
    assert instance.end is not None
    return {
        "exitCode": instance.exit_code,
        "reason": instance.reason,
        "startedAt": rfc3339(instance.start),
        "finishedAt": rfc3339(instance.end),
    }
