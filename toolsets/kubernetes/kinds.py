"""The kinds of object a cluster has: the usual ones by heart, the rest by asking its discovery API."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from agent.deadline import Clock, Deadline
from agent.errors import ToolError

FRESH_SECONDS = 300.0
Get = Callable[[str, Deadline], Any]  # path -> JSON; raises ToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One resource type. `group` is "" for the core API."""

    name: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short: tuple[str, ...] = ()

    def path(self, namespace: str = "", name: str = "") -> str:
        """`/apis/apps/v1/namespaces/shop/deployments/web`; without namespace, the whole cluster."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        steps = ["namespaces", namespace] if namespace and self.namespaced else []
        steps += [self.plural, name] if name else [self.plural]
        return "/".join([root, *(quote(step, safe=":") for step in steps)])

    @property
    def shown(self) -> str:
        """What kubectl takes: `pods`, `certificates.cert-manager.io`."""
        return self.plural if self.group in BUILT_IN_GROUPS else f"{self.plural}.{self.group}"

    @property
    def familiar(self) -> str:
        """The name, if it is one we have words for; "" for another API's kind of the same name (Knative's Service)."""
        return self.name if self.group in BUILT_IN_GROUPS else ""

    def goes_by(self, text: str) -> bool:
        word, _, group = text.lower().partition(".")
        if group and group not in (self.group, f"{self.version}.{self.group}"):
            return False
        return word in (self.name.lower(), self.plural, *self.short)


def _kinds(group: str, version: str, *rows: str) -> list[Kind]:
    """Rows are `Name plural short…`; a leading "-" on the name marks a cluster-wide kind."""
    kinds = []
    for row in rows:
        name, plural, *short = row.split()
        kinds.append(
            Kind(
                name=name.lstrip("-"),
                plural=plural,
                group=group,
                version=version,
                namespaced=not name.startswith("-"),
                short=tuple(short),
            )
        )
    return kinds


WELL_KNOWN: tuple[Kind, ...] = (
    *_kinds(
        "",
        "v1",
        "Pod pods po",
        "Service services svc",
        "-Node nodes no",
        "-Namespace namespaces ns",
        "ConfigMap configmaps cm",
        "Secret secrets",
        "Event events ev",
        "PersistentVolumeClaim persistentvolumeclaims pvc",
        "-PersistentVolume persistentvolumes pv",
        "Endpoints endpoints ep",
        "ServiceAccount serviceaccounts sa",
        "ResourceQuota resourcequotas quota",
        "LimitRange limitranges limits",
        "ReplicationController replicationcontrollers rc",
    ),
    *_kinds(
        "apps",
        "v1",
        "Deployment deployments deploy",
        "ReplicaSet replicasets rs",
        "StatefulSet statefulsets sts",
        "DaemonSet daemonsets ds",
        "ControllerRevision controllerrevisions",
    ),
    *_kinds("batch", "v1", "Job jobs", "CronJob cronjobs cj"),
    *_kinds("autoscaling", "v2", "HorizontalPodAutoscaler horizontalpodautoscalers hpa"),
    *_kinds("networking.k8s.io", "v1", "Ingress ingresses ing", "NetworkPolicy networkpolicies netpol"),
    *_kinds("policy", "v1", "PodDisruptionBudget poddisruptionbudgets pdb"),
    *_kinds("storage.k8s.io", "v1", "-StorageClass storageclasses sc"),
    *_kinds("discovery.k8s.io", "v1", "EndpointSlice endpointslices"),
)
BUILT_IN_GROUPS = frozenset(kind.group for kind in WELL_KNOWN)


def well_known(name: str) -> Kind:
    """The kind called `name`, which must be one of ours."""
    return next(kind for kind in WELL_KNOWN if kind.name == name)


@dataclass(slots=True)
class Kinds:
    """Finds the kind a model means. Discovery answers are kept for five minutes."""

    get: Get
    clock: Clock
    _found: list[Kind] = field(default_factory=list)
    _fresh_until: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, text: str, deadline: Deadline) -> Kind:
        """Raises `ToolError` with near names when the cluster has no such kind."""
        if not text:
            raise ToolError("kind is required, such as pod or deployment")
        if kind := _first(WELL_KNOWN, text):
            return kind
        discovered = self._discovered(deadline)
        if kind := _first(discovered, text):
            return kind
        names = sorted({kind.shown for kind in (*WELL_KNOWN, *discovered)})
        alike = [name for name in names if text.lower() in name]
        near = alike or difflib.get_close_matches(text.lower(), names, n=5, cutoff=0.5)
        hint = f"near ones: {', '.join(near)}" if near else f"there are: {', '.join(names)}"
        raise ToolError(f"the cluster has no kind {text!r}; {hint}")

    def _discovered(self, deadline: Deadline) -> list[Kind]:
        with self._lock:
            if self.clock() >= self._fresh_until:
                self._found = self._ask(deadline)
                if not deadline.passed:  # else groups may be missing
                    self._fresh_until = self.clock() + FRESH_SECONDS
            return self._found

    def _ask(self, deadline: Deadline) -> list[Kind]:
        """Every group's preferred version. A group that does not answer (a broken aggregated API) is left out."""
        kinds = _listed(self.get("/api/v1", deadline), "", "v1")
        for group in self.get("/apis", deadline).get("groups") or []:
            version = (group.get("preferredVersion") or {}).get("version") or group["versions"][0]["version"]
            try:
                listing = self.get(f"/apis/{group['name']}/{version}", deadline)
            except ToolError:
                continue
            kinds += _listed(listing, group["name"], version)
        return kinds


def _first(kinds: Iterable[Kind], text: str) -> Kind | None:
    return next((kind for kind in kinds if kind.goes_by(text)), None)


def _listed(listing: Any, group: str, version: str) -> list[Kind]:
    return [
        Kind(
            name=entry["kind"],
            plural=entry["name"],
            group=group,
            version=version,
            namespaced=bool(entry.get("namespaced")),
            short=(entry.get("singularName") or "", *(entry.get("shortNames") or ())),
        )
        for entry in listing.get("resources") or []
        if "/" not in entry["name"] and "get" in (entry.get("verbs") or ["get"])
    ]
