"""Plays the Kubernetes API, read side: discovery, lists and gets, logs, metrics.k8s.io."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from deploy.demo.cluster import Part, Pod, Workload
from deploy.demo.exchange import Reply, Request, whole
from deploy.demo.objects import everything
from deploy.demo.pod_objects import Object
from deploy.demo.podlogs import HISTORY_SECONDS, Line, Stream
from deploy.demo.scene import rfc3339
from deploy.demo.shapes import levels
from deploy.demo.tables import table

TOKEN = "demo-kubernetes-token"
WINDOW = "30s"
GROUPS: dict[str, tuple[str, ...]] = {  # group/version: kinds, "-" for cluster-wide ones
    "v1": (
        *("Pod", "Service", "Endpoints", "ConfigMap", "Secret", "Event", "PersistentVolumeClaim", "ResourceQuota"),
        *("ServiceAccount", "LimitRange", "ReplicationController", "-Node", "-Namespace", "-PersistentVolume"),
    ),
    "apps/v1": ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"),
    "batch/v1": ("Job", "CronJob"),
    "networking.k8s.io/v1": ("Ingress", "NetworkPolicy"),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "policy/v1": ("PodDisruptionBudget",),
    "storage.k8s.io/v1": ("-StorageClass",),
    "discovery.k8s.io/v1": ("EndpointSlice",),
    "cert-manager.io/v1": ("Certificate",),
    "metrics.k8s.io/v1beta1": ("PodMetrics", "-NodeMetrics"),
}
_PLURALS = {
    "PodMetrics": "pods",
    "NodeMetrics": "nodes",
    "Ingress": "ingresses",
    "NetworkPolicy": "networkpolicies",
    "Endpoints": "endpoints",
    "StorageClass": "storageclasses",
}


def plural(kind: str) -> str:
    return _PLURALS.get(kind) or f"{kind.lower()}s"


class Kubernetes:
    def __init__(self, cluster: Part, streams: Sequence[Stream], now: Callable[[], float]) -> None:
        self._cluster = cluster
        self._now = now
        self._streams = {(one.workload.namespace, one.labels["pod"]): one for one in streams}
        self._objects: dict[tuple[str, str], list[Object]] = {}
        for one in everything(cluster):
            self._objects.setdefault((one["apiVersion"], plural(one["kind"])), []).append(one)

    def handle(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _failure(401, "Unauthorized", "Unauthorized")
        if request.method != "GET":
            return _failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        match request.parts:
            case ["version"]:
                return Reply(payload={"major": "1", "minor": "34", "gitVersion": "v1.34.2", "platform": "linux/amd64"})
            case ["readyz" | "livez" | "healthz"]:
                return Reply(text="ok", content_type="text/plain")
            case ["api"]:
                return Reply(payload={"kind": "APIVersions", "versions": ["v1"]})
            case ["apis"]:
                return Reply(payload={"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups()})
            case ["api", "v1", *rest]:
                return self._resource("v1", rest, request)
            case ["apis", group, version, *rest] if f"{group}/{version}" in GROUPS:
                return self._resource(f"{group}/{version}", rest, request)
            case _:
                return _not_served()

    def _resource(self, version: str, rest: list[str], request: Request) -> Reply:
        if not rest:
            return Reply(payload={"kind": "APIResourceList", "groupVersion": version, "resources": _resources(version)})
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        kind = next((one.lstrip("-") for one in GROUPS[version] if plural(one.lstrip("-")) == rest[0]), None)
        if kind is None:
            return _not_served()
        if kind == "Secret":
            where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
            who = 'User "system:serviceaccount:rootcaused:reader"'
            return _failure(
                403, "Forbidden", f'secrets is forbidden: {who} cannot list resource "secrets" in API group ""{where}'
            )
        match rest:
            case [_]:
                return self._list(version, kind, namespace, request)
            case [plural_, name]:
                found = [one for one in self._all(version, plural_) if _is(one, namespace, name)]
                return Reply(payload=found[0]) if found else _missing(plural_, version, name)
            case ["pods", name, "log"]:
                return self._log(namespace, name, request)
            case _:
                return _not_served()

    def _all(self, version: str, plural_: str) -> list[Object]:
        if version.startswith("metrics"):
            return self._pod_metrics() if plural_ == "pods" else self._node_metrics()
        return self._objects.get((version, plural_), [])

    def _list(self, version: str, kind: str, namespace: str, request: Request) -> Reply:
        kept = [
            one for one in self._all(version, plural(kind)) if namespace in ("", one["metadata"].get("namespace", ""))
        ]
        for test in (*_label_tests(request.one("labelSelector")), *_field_tests(request.one("fieldSelector"))):
            kept = [one for one in kept if test(one)]
        limit, skip = whole(request.one("limit"), 0), _position(request.one("continue"))
        about: dict[str, Any] = {"resourceVersion": "1048576"}
        shown = kept[skip : skip + limit] if limit else kept[skip:]
        if left := len(kept) - skip - len(shown):
            about |= {
                "continue": base64.b64encode(str(skip + len(shown)).encode()).decode(),
                "remainingItemCount": left,
            }
        if "as=Table" in request.headers.get("accept", ""):
            return Reply(payload=table(kind, shown, about, self._now()))
        return Reply(payload={"kind": f"{kind}List", "apiVersion": version, "metadata": about, "items": shown})

    def _log(self, namespace: str, name: str, request: Request) -> Reply:
        stream = self._streams.get((namespace, name))
        pods = [one for one in self._all("v1", "pods") if _is(one, namespace, name)]
        if not pods:
            return _missing("pods", "v1", name)
        container = pods[0]["spec"]["containers"][0]["name"]
        asked = request.one("container", container)
        if asked != container:
            return _failure(400, "BadRequest", f"container {asked} is not valid for pod {name}")
        if stream is None:
            why = (
                pods[0]["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason", "ContainerCreating")
            )
            text = f'container "{container}" in pod "{name}" is waiting to start: {_why(why)}'
            return _failure(400, "BadRequest", text)
        back = 2 if request.one("previous") == "true" else 1
        instances = [one for one in stream.pod.instances if one.end is not None or back == 1]
        if request.one("previous") == "true" and stream.pod.instances[-1].end is None:
            back = 1
        if len(instances) < back:
            return _failure(400, "BadRequest", f'previous terminated container "{container}" in pod "{name}" not found')
        start = max(instances[-back].start, self._now() - HISTORY_SECONDS, _since(request, self._now()))
        return _log_text(stream.of(instances[-back], start, self._now()), request)

    def _pod_metrics(self) -> list[Object]:
        running = [(workload, pod) for workload in self._cluster.workloads for pod in workload.alive if pod.running]
        return [self._pod_usage(workload, pod) for workload, pod in running]

    def _pod_usage(self, workload: Workload, pod: Pod) -> Object:
        memory = pod.memory(self._now()) or 0.0
        usage = {"cpu": f"{round((levels(pod.cpu)(self._now()) or 0) * 1000)}m", "memory": f"{round(memory / 1024)}Ki"}
        about = {"name": workload.pod_name(pod), "namespace": workload.namespace, "labels": {"app": workload.name}}
        container = {"name": workload.revision(pod).container.name, "usage": usage}
        return {**self._metrics("PodMetrics", about), "containers": [container]}

    def _node_metrics(self) -> list[Object]:
        found = []
        for node in self._cluster.nodes:
            cores = node.cores * (levels(node.busy)(self._now()) or 0.0)
            usage = {"cpu": f"{round(cores * 1000)}m", "memory": f"{math.floor(node.memory * 0.45 / 1024)}Ki"}
            found.append({**self._metrics("NodeMetrics", {"name": node.name}), "usage": usage})
        return found

    def _metrics(self, kind: str, about: Object) -> Object:
        at = rfc3339(self._now())
        return {
            "kind": kind,
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": about,
            "timestamp": at,
            "window": WINDOW,
        }


def _groups() -> list[Object]:
    found = []
    for version in GROUPS:
        group, _, number = version.rpartition("/")
        if group:
            one = {"groupVersion": version, "version": number}
            found.append({"name": group, "versions": [one], "preferredVersion": one})
    return found


def _resources(version: str) -> list[Object]:
    kinds = [(one.lstrip("-"), not one.startswith("-")) for one in GROUPS[version]]
    return [
        {
            "name": plural(kind),
            "singularName": kind.lower(),
            "namespaced": namespaced,
            "kind": kind,
            "verbs": ["get", "list"],
        }
        for kind, namespaced in kinds
    ]


def _is(one: Object, namespace: str, name: str) -> bool:
    return bool(one["metadata"]["name"] == name and one["metadata"].get("namespace", "") == namespace)


def _label_tests(selector: str) -> list[Callable[[Object], bool]]:
    """`a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, separated by commas."""
    return [_label_test(term.strip()) for term in re.split(r",(?![^(]*\))", selector) if term.strip()]


def _label_test(term: str) -> Callable[[Object], bool]:
    def value(one: Object) -> str | None:
        found = one["metadata"].get("labels", {}).get(name)
        return None if found is None else str(found)

    if match := re.fullmatch(r"(\S+)\s+(in|notin)\s*\(([^)]*)\)", term):
        name, choices = match.group(1), {choice.strip() for choice in match.group(3).split(",")}
        inside = match.group(2) == "in"
        return lambda one: (value(one) in choices) == inside
    if match := re.fullmatch(r"([^=!\s]+)\s*(==|=|!=)\s*(\S*)", term):
        name, wanted = match.group(1), match.group(3)
        equal = match.group(2) != "!="
        return lambda one: (value(one) == wanted) == equal
    name = term.lstrip("!")
    return lambda one: (value(one) is None) == term.startswith("!")


def _field_tests(selector: str) -> list[Callable[[Object], bool]]:
    """`involvedObject.name=x`, `metadata.name!=y`, `spec.nodeName=z`, `status.phase=…`."""
    return [_field_test(term.strip()) for term in selector.split(",") if term.strip()]


def _field_test(term: str) -> Callable[[Object], bool]:
    match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term)
    path, equal, wanted = (match.group(1), match.group(2) != "!=", match.group(3)) if match else (term, True, "")

    def test(one: Object) -> bool:
        found: Any = one
        for step in path.split("."):
            found = found.get(step, "") if isinstance(found, dict) else ""
        return (str(found) == wanted) == equal

    return test


def _position(token: str) -> int:
    try:
        return int(base64.b64decode(token)) if token else 0
    except ValueError:
        return 0


def _since(request: Request, now: float) -> float:
    if seconds := whole(request.one("sinceSeconds"), 0):
        return now - seconds
    try:
        return datetime.fromisoformat(request.one("sinceTime")).timestamp()
    except ValueError:
        return 0.0


def _log_text(lines: list[Line], request: Request) -> Reply:
    if tail := request.one("tailLines"):
        lines = lines[-whole(tail, 10) :] if whole(tail, 10) else []
    stamped = request.one("timestamps") == "true"
    text = "".join(f"{rfc3339(at, fraction=9)} {line}\n" if stamped else f"{line}\n" for at, line in lines)
    if limit := whole(request.one("limitBytes"), 0):
        text = text[:limit]
    return Reply(text=text, content_type="text/plain")


def _why(reason: str) -> str:
    """In logs, the kubelet's message takes the place of the reason where a pull or a configuration failed."""
    return {"ImagePullBackOff": "trying and failing to pull image"}.get(reason, reason)


def _missing(plural_: str, version: str, name: str) -> Reply:
    group = version.rpartition("/")[0]
    resource = f"{plural_}.{group}" if group else plural_
    return _failure(404, "NotFound", f'{resource} "{name}" not found')


def _not_served() -> Reply:
    return _failure(404, "NotFound", "the server could not find the requested resource")


def _failure(status: int, reason: str, message: str) -> Reply:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
    return Reply(status=status, payload=body)
