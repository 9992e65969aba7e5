"""The tables that the Kubernetes API prints for `kubectl get`: asked for by `Accept: application/json;as=Table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]
Column = tuple[str, Callable[[Object], str]]


def table(kind: str, items: Sequence[Object], metadata: Object, now: float) -> dict[str, Any]:
    """Name, what matters of the kind, age; the objects themselves by metadata alone, as the API gives them."""
    columns: list[Column] = [
        ("Name", lambda one: str(one["metadata"]["name"])),
        *_COLUMNS.get(kind, ()),
        ("Age", lambda one: age(one, now)),
    ]
    rows = [
        {
            "cells": [cell(one) for _, cell in columns],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": one["metadata"]},
        }
        for one in items
    ]
    definitions = [
        {"name": name, "type": "string", "format": "", "description": "", "priority": 0} for name, _ in columns
    ]
    about = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {**about, "columnDefinitions": definitions, "rows": rows}


def age(one: Object, now: float) -> str:
    """`38m`, `12d`, in the largest whole unit."""
    seconds = now - datetime.fromisoformat(one["metadata"].get("creationTimestamp", "1970-01-01T00:00:00Z")).timestamp()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _at(path: str) -> Callable[[Object], str]:
    def cell(one: Object) -> str:
        found: Any = one
        for step in path.split("."):
            found = found.get(step, {}) if isinstance(found, Mapping) else {}
        return "" if found == {} else ",".join(map(str, found)) if isinstance(found, list) else str(found)

    return cell


def _addresses(one: Object) -> str:
    """Only those that are ready, as kubectl shows it."""
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in one.get("subsets", [])
        for address in subset.get("addresses", [])
        for port in subset["ports"]
    ]
    return ",".join(found) or "<none>"


def _used(one: Object) -> str:
    status = one["status"]
    return ", ".join(f"{name}: {status['used'].get(name, '0')}/{hard}" for name, hard in status["hard"].items())


def _ready_of(one: Object) -> str:
    return f"{one['status'].get('readyReplicas', 0)}/{one['spec']['replicas']}"


def _condition(one: Object) -> str:
    return next((c["status"] for c in one["status"].get("conditions", []) if c["type"] == "Ready"), "Unknown")


_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Endpoints": (("Endpoints", _addresses),),
    "ConfigMap": (("Data", lambda one: str(len(one.get("data", {})))),),
    "ResourceQuota": (("Request", _used),),
    "PersistentVolumeClaim": (
        ("Status", _at("status.phase")),
        ("Volume", _at("spec.volumeName")),
        ("Capacity", _at("status.capacity.storage")),
        ("StorageClass", _at("spec.storageClassName")),
    ),
    "StatefulSet": (("Ready", _ready_of),),
    "Deployment": (("Ready", _ready_of), ("Available", _at("status.availableReplicas"))),
    "ReplicaSet": (("Desired", _at("spec.replicas")), ("Ready", _at("status.readyReplicas"))),
    "Pod": (("Status", _at("status.phase")), ("Node", _at("spec.nodeName"))),
    "Job": (("Active", _at("status.active")),),
    "Service": (("Type", _at("spec.type")), ("Cluster-IP", _at("spec.clusterIP"))),
    "Namespace": (("Status", _at("status.phase")),),
    "Node": (("Version", _at("status.nodeInfo.kubeletVersion")),),
    "Certificate": (("Ready", _condition), ("Secret", _at("spec.secretName"))),
}
