"""The grammar of names: only what passes it may stand in a tool's argument, because alert and log text is hostile."""

from __future__ import annotations

import re

MAX_NAME_CHARS = 253

_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9.]{0,251}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.:/]{0,251}[A-Za-z0-9])?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")

# Kubernetes makes generated suffixes from letters that can't form words.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_GENERATED_POD = re.compile(rf"(?P<owner>.{{1,230}}?)-(?:{_SAFE}{{5,10}}-)?{_SAFE}{{5}}")
_REPLICASET = re.compile(rf"(?P<owner>.{{1,230}})-{_SAFE}{{5,10}}")
_ORDINAL = re.compile(r"(?P<owner>.{1,230})-\d{1,4}")


def is_object_name(text: str) -> bool:
    """Whether `text` is a DNS-1123 subdomain: what Kubernetes calls its objects and namespaces."""
    return len(text) <= MAX_NAME_CHARS and ".." not in text and _SUBDOMAIN.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """Whether `text` can be a host name or an IPv4 address."""
    return ".." not in text and _HOST.fullmatch(text) is not None


def is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Whether `text` may stand between the quotes of a label matcher: no quote, brace, backslash or space."""
    return _LABEL_VALUE.fullmatch(text) is not None


def workload_of_pod(pod: str) -> str:
    """The name of what made this pod, from the suffixes that controllers add; the pod's own name if there is none."""
    match = _GENERATED_POD.fullmatch(pod) or _ORDINAL.fullmatch(pod)
    return match["owner"] if match else pod


def workload_of_replicaset(name: str) -> str:
    match = _REPLICASET.fullmatch(name)
    return match["owner"] if match else name


def short_host(host: str) -> str:
    """`orders.shop.svc.cluster.local` is the service `orders`; an outside host and an address stay whole."""
    if is_address(host):
        return host
    parts = host.rstrip(".").split(".")
    in_cluster = len(parts) == 1 or "svc" in parts or parts[-1] in ("local", "cluster") or len(parts) == 2
    return parts[0] if in_cluster else host
