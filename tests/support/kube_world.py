"""A shop in trouble: `web` was rolled out with a quarter of its memory and is killed for it; `api` can't be placed."""

from __future__ import annotations

from typing import Any

from tests.support.kube_server import KubeServer, Object

CORE, APPS = "/api/v1", "/apis/apps/v1"


def meta(name: str, namespace: str = "shop", **more: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "creationTimestamp": "2026-05-01T09:00:00Z", "uid": f"uid-{name}", **more}


def owned(kind: str, name: str) -> list[Object]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]


def web_container(memory: str) -> Object:
    return {
        "name": "app",
        "image": "registry.example/web:1.4.2",
        "args": ["--port", "8080"],
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": memory}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "timeoutSeconds": 2},
        "env": [
            {"name": "MODE", "value": "production"},
            {"name": "DB_PASSWORD", "value": "hunter2-literal"},
            {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "web", "key": "api-key"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "web-config"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }


def web_pod(name: str, *, killed: bool = True, namespace: str = "shop") -> Object:
    status: Object = {"name": "app", "ready": not killed, "restartCount": 5 if killed else 0}
    if killed:
        status["state"] = {
            "waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container"}
        }
        status["lastState"] = {
            "terminated": {
                "reason": "OOMKilled",
                "exitCode": 137,
                "startedAt": "2026-05-01T10:03:00Z",
                "finishedAt": "2026-05-01T10:04:10Z",
            }
        }
    else:
        status["state"] = {"running": {"startedAt": "2026-05-01T09:00:05Z"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta(name, namespace, labels={"app": "web"}, ownerReferences=owned("ReplicaSet", "web-bbb")),
        "spec": {
            "nodeName": "node-1",
            "containers": [web_container("128Mi")],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}}],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "qosClass": "Burstable",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False" if killed else "True",
                    "reason": "ContainersNotReady" if killed else "",
                    "lastTransitionTime": "2026-05-01T10:04:11Z",
                }
            ],
            "containerStatuses": [status],
        },
    }


def pending_pod() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta("api-ccc-1", labels={"app": "api"}),
        "spec": {
            "containers": [{"name": "api", "image": "registry.example/api:2"}, {"name": "proxy", "image": "envoy:1"}],
            "initContainers": [{"name": "migrate", "image": "registry.example/migrate:2"}],
        },
        "status": {"phase": "Pending"},
    }


def deployment() -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(
            "web",
            labels={"app": "web"},
            annotations={"deployment.kubernetes.io/revision": "2"},
            managedFields=[
                {"manager": "helm", "operation": "Update", "time": "2026-05-01T10:00:00Z"},
                {
                    "manager": "kube-controller-manager",
                    "operation": "Update",
                    "time": "2026-05-01T10:05:00Z",
                    "subresource": "status",
                },
            ],
        ),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [web_container("128Mi")]}},
        },
        "status": {
            "replicas": 2,
            "readyReplicas": 1,
            "updatedReplicas": 2,
            "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}],
        },
    }


def replica_set(name: str, revision: int, memory: str, created: str, replicas: int) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": meta(
            name,
            labels={"app": "web", "pod-template-hash": name},
            annotations={"deployment.kubernetes.io/revision": str(revision)},
            ownerReferences=owned("Deployment", "web"),
        )
        | {"creationTimestamp": created},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": {"app": "web", "pod-template-hash": name}},
                "spec": {"containers": [web_container(memory)]},
            },
        },
        "status": {"replicas": replicas},
    }


def event(name: str, kind: str, about: str, reason: str, message: str, at: str, count: int = 1) -> Object:
    return {
        "kind": "Event",
        "metadata": meta(name),
        "involvedObject": {"kind": kind, "name": about, "namespace": "shop"},
        "type": "Warning" if reason in ("BackOff", "FailedScheduling") else "Normal",
        "reason": reason,
        "message": message,
        "firstTimestamp": "2026-05-01T09:59:00Z",
        "lastTimestamp": at,
        "count": count,
    }


def node() -> Object:
    return {
        "kind": "Node",
        "metadata": meta("node-1", ""),
        "spec": {"taints": [{"key": "dedicated", "value": "shop", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi"},
            "nodeInfo": {"kubeletVersion": "v1.34.1", "kernelVersion": "6.12", "osImage": "Debian 13"},
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "True"}],
        },
    }


def shop() -> KubeServer:
    kube = KubeServer(documents={"/version": {"gitVersion": "v1.34.1"}})
    kube.add(
        CORE,
        "namespaces",
        *({"kind": "Namespace", "metadata": meta(name, "")} for name in ("shop", "billing", "kube-system")),
    )
    kube.add(CORE, "pods", web_pod("web-bbb-2", killed=False), web_pod("web-bbb-1"), pending_pod())
    kube.add(CORE, "nodes", node())
    kube.add(
        CORE,
        "services",
        {
            "kind": "Service",
            "metadata": meta("web"),
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    )
    kube.add(CORE, "configmaps", {"kind": "ConfigMap", "metadata": meta("web-config"), "data": {"LOG_LEVEL": "info"}})
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"api-key":"c2VjcmV0LXZhbHVl"}}'}
    kube.add(
        CORE,
        "secrets",
        {
            "kind": "Secret",
            "metadata": meta("web", annotations=applied),
            "type": "Opaque",
            "data": {"api-key": "c2VjcmV0LXZhbHVl"},
        },
    )
    kube.add(APPS, "deployments", deployment())
    kube.add(
        APPS,
        "replicasets",
        replica_set("web-aaa", 1, "512Mi", "2026-04-20T08:00:00Z", 0),
        replica_set("web-bbb", 2, "128Mi", "2026-05-01T10:00:02Z", 2),
    )
    kube.add(
        CORE,
        "events",
        event(
            "e2", "Pod", "web-bbb-1", "BackOff", "Back-off restarting failed container app", "2026-05-01T10:08:00Z", 12
        ),
        event(
            "e1", "Deployment", "web", "ScalingReplicaSet", "Scaled up replica set web-bbb to 2", "2026-05-01T10:00:02Z"
        ),
        event(
            "e3",
            "Pod",
            "api-ccc-1",
            "FailedScheduling",
            "0/1 nodes are available:\n1 Insufficient cpu.",
            "2026-05-01T10:06:00Z",
        ),
    )
    kube.logs["shop/web-bbb-1/app"] = (
        "2026-05-01T10:07:01.123456789Z starting\n2026-05-01T10:07:02.2Z cache: loading 600 MB\n"
    )
    kube.logs["shop/web-bbb-1/app/previous"] = "2026-05-01T10:03:01.1Z ERROR cache full\n"
    kube.logs["shop/web-bbb-2/app"] = "2026-05-01T09:00:06.5Z starting\n"
    _discovery(kube)
    _metrics(kube)
    return kube


def _discovery(kube: KubeServer) -> None:
    root = "/apis/cert-manager.io/v1"
    kube.documents["/api/v1"] = {
        "resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get", "list"]}]
    }
    kube.documents["/apis"] = {
        "groups": [
            {"name": "broken.example", "preferredVersion": {"version": "v1"}},
            {"name": "cert-manager.io", "preferredVersion": {"version": "v1"}},
        ]
    }
    kube.refused["/apis/broken.example/v1"] = (503, "the server is currently unable to handle the request")
    kube.documents[root] = {
        "resources": [
            {
                "name": "certificates",
                "singularName": "certificate",
                "shortNames": ["cert"],
                "kind": "Certificate",
                "namespaced": True,
                "verbs": ["get", "list"],
            },
            {"name": "certificates/status", "kind": "Certificate", "namespaced": True, "verbs": ["get"]},
        ]
    }
    condition = {"type": "Ready", "status": "False", "reason": "Expired"}
    kube.add(
        root,
        "certificates",
        {
            "kind": "Certificate",
            "metadata": meta("web-tls"),
            "status": {"conditions": [condition]},
            "cells": {"Ready": "False"},
        },
    )


def _metrics(kube: KubeServer) -> None:
    root, time = "/apis/metrics.k8s.io/v1beta1", "2026-05-01T10:08:30Z"
    usage = [{"name": "app", "usage": {"cpu": "1500000n", "memory": "126Mi"}}]
    kube.add(root, "pods", {"metadata": meta("web-bbb-1"), "timestamp": time, "containers": usage})
    kube.add(root, "nodes", {"metadata": meta("node-1", ""), "timestamp": time, "usage": {"cpu": "2", "memory": "6Gi"}})
