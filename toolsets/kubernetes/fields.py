"""Reads fields of API objects, any of which may be absent."""

from __future__ import annotations

from typing import Any

from agent.alert import parse_time
from toolsets.kubernetes.grammar import stamp

Object = dict[str, Any]


def at(thing: Any, path: str, default: Any = None) -> Any:
    """`at(pod, "spec.nodeName")`; `default` when a step is missing or null."""
    for step in path.split("."):
        if not isinstance(thing, dict):
            return default
        thing = thing.get(step)
    return default if thing is None else thing


def text(thing: Any, path: str, default: str = "") -> str:
    """The field as text on one line."""
    value = at(thing, path)
    return default if value is None else " ".join(str(value).split())


def name_of(thing: Object) -> str:
    return text(thing, "metadata.name")


def namespace_of(thing: Object) -> str:
    return text(thing, "metadata.namespace")


def created(thing: Object) -> str:
    return stamp(at(thing, "metadata.creationTimestamp"))


def annotation(thing: Object, name: str) -> str:
    """Annotation names hold dots, so `at` can't reach them."""
    return str(at(thing, "metadata.annotations", {}).get(name, ""))


def pairs(mapping: Any) -> str:
    """`a=1,b=2`."""
    return ",".join(f"{key}={value}" for key, value in (mapping or {}).items())


def conditions(thing: Object) -> list[Object]:
    found = at(thing, "status.conditions", [])
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def owner_of(thing: Object) -> Object | None:
    """The owner that controls it, else any owner."""
    owners = at(thing, "metadata.ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), owners[0] if owners else None)


def changes(thing: Object, limit: int = 4) -> list[str]:
    """Who changed the object's own part (not its status) and when, newest first, from its managed fields."""
    entries = [
        entry
        for entry in at(thing, "metadata.managedFields", [])
        if not entry.get("subresource") and parse_time(entry.get("time"))
    ]
    entries.sort(key=lambda entry: stamp(entry["time"]), reverse=True)
    return [
        f"{stamp(entry['time'])} {entry.get('operation', '?')} by {entry.get('manager', '?')}"
        for entry in entries[:limit]
    ]


def quantity(value: object) -> float:
    """A Kubernetes quantity as a number: `250m` is 0.25, `1Gi` is 1073741824. Unreadable ones are 0."""
    written = str(value or "0").strip()
    for suffix, factor in _SUFFIXES:
        if written.endswith(suffix):
            return _float(written[: -len(suffix)]) * factor
    return _float(written)


def cores(amount: float) -> str:
    return f"{amount * 1000:.0f}m"


def mebibytes(amount: float) -> str:
    return f"{amount / 2**20:.0f}Mi"


_SUFFIXES = (
    *(("Ki", 2.0**10), ("Mi", 2.0**20), ("Gi", 2.0**30), ("Ti", 2.0**40), ("Pi", 2.0**50), ("Ei", 2.0**60)),
    *(("n", 1e-9), ("u", 1e-6), ("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)),
)


def _float(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return 0.0
