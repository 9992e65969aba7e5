"""What the alert is about: namespace, workload, pod, node, service, taken from labels first and from its words last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agent.alert import parse_time
from agent.rules.names import is_host, is_label_value, is_object_name, workload_of_pod

MAX_EXPRESSION_CHARS = 1_000

_WORDS = {
    "namespace": re.compile(r"\bnamespace[ :=/\"'`]{1,3}([a-z0-9][-a-z0-9]{0,62})", re.IGNORECASE),
    "pod": re.compile(r"\bpod[ :=/\"'`]{1,3}([a-z0-9][-a-z0-9.]{0,200})", re.IGNORECASE),
    "deployment": re.compile(
        r"\b(?:deployment|deploy|workload)[ :=/\"'`]{1,3}([a-z0-9][-a-z0-9]{0,100})", re.IGNORECASE
    ),
    "service": re.compile(r"\b(?:service|svc|app)[ :=/\"'`]{1,3}([a-z0-9][-a-z0-9]{0,100})", re.IGNORECASE),
    "node": re.compile(r"\bnode[ :=/\"'`]{1,3}([a-z0-9][-a-z0-9.]{2,100})", re.IGNORECASE),
    "instance": re.compile(r"\binstance[ :=/\"'`]{1,3}([A-Za-z0-9][-A-Za-z0-9.:_]{0,200})", re.IGNORECASE),
}
# English that the grammar of names would take for one: "pod is crash looping", "service down".
_ENGLISH = frozenset(
    """
    is in has was are the a an of on for to and or not no with at by be been from that which name names status
    down up failing failed fails error errors high low slow degraded affected abnormal returns returned
    crash crashing restarting restarts restarted running pending ready not-ready unavailable unreachable
    latency availability unreachability disruption quality level responding mesh account pods
    memory cpu disk full filesystem
    """.split()  # noqa: SIM905  (as a list it fills a page)
)
_PAIR = re.compile(r"\b([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/([a-z0-9](?:[-a-z0-9]{0,100}[a-z0-9])?)\b")
_COMPARISON = re.compile(
    r"(?P<left>.*\S)\s*(?P<operator>>=|<=|==|!=|>|<)\s*(?:bool\s+)?(?P<limit>-?\d[\d.]{0,20}(?:e[-+]?\d{1,3})?)",
    re.DOTALL | re.IGNORECASE,
)

_LABELS = {
    "namespace": ("namespace", "kubernetes_namespace", "exported_namespace", "kube_namespace", "k8s.namespace.name"),
    "pod": ("pod", "pod_name", "exported_pod", "kubernetes_pod_name", "k8s.pod.name"),
    "deployment": (
        "deployment",
        "statefulset",
        "daemonset",
        "workload",
        "workload_name",
        "kube_deployment",
        "k8s.deployment.name",
    ),
    "service": (
        "service",
        "app",
        "service_name",
        "exported_service",
        "app_kubernetes_io_name",
        "component",
        "destination",
    ),
    "node": ("node", "nodename", "kubernetes_node", "host", "hostname", "k8s.node.name"),
    "instance": ("instance", "target", "url"),
    "container": ("container", "container_name"),
    "volume": ("persistentvolumeclaim", "volume"),
    "cluster": ("cluster", "kube_cluster_name"),
    "alertname": ("alertname", "alert_name", "rule"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`left operator limit`: the alert fires while it is true."""

    left: str
    operator: str
    limit: float

    def holds(self, value: float) -> bool:
        match self.operator:
            case ">":
                return value > self.limit
            case ">=":
                return value >= self.limit
            case "<":
                return value < self.limit
            case "<=":
                return value <= self.limit
            case "==":
                return value == self.limit
            case _:
                return value != self.limit


def comparison(expression: str) -> Comparison | None:
    """An alert's expression, taken apart at its last comparison with a number."""
    match = _COMPARISON.fullmatch(expression.strip()) if len(expression) <= MAX_EXPRESSION_CHARS else None
    if match is None or match["left"].count("(") != match["left"].count(")"):
        return None
    try:
        return Comparison(left=match["left"], operator=match["operator"], limit=float(match["limit"]))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Every name has passed the grammar; an unknown one is empty."""

    title: str = ""
    text: str = ""  # title, body and annotations, for words only
    namespace: str = ""
    pod: str = ""
    deployment: str = ""
    service: str = ""
    node: str = ""
    instance: str = ""
    container: str = ""
    volume: str = ""
    cluster: str = ""
    alertname: str = ""
    expression: str = ""
    starts_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def workload(self) -> str:
        """The name under which its pods are most likely found."""
        return self.deployment or (workload_of_pod(self.pod) if self.pod else "") or self.service

    def speaks_of(self, words: tuple[str, ...]) -> bool:
        return any(word in self.text for word in words)


def read_subject(alert: Mapping[str, Any]) -> Subject:
    """Labels first; what they lack is looked for in title, body and annotations."""
    labels = _strings(alert.get("labels"))
    annotations = _strings(alert.get("annotations"))
    title = str(alert.get("title") or "")
    words = "\n".join([title, str(alert.get("body") or "")[:8_000], *annotations.values()])
    found = {part: _from_labels(part, labels) or _from_words(part, words) for part in _LABELS}
    service = str(alert.get("service") or "")
    if not found["service"] and is_object_name(service):
        found["service"] = service
    if not found["namespace"] and (pair := _pair(words)):
        found["namespace"], found["service"] = pair[0], found["service"] or pair[1]
    return Subject(
        title=title[:300],
        text=f"{words}\n{' '.join(labels.values())}"[:12_000].lower(),
        expression=_expression(alert, labels, annotations),
        starts_at=parse_time(alert.get("starts_at")),
        labels=labels,
        **found,
    )


def _strings(value: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, Mapping) else {}


def _from_labels(part: str, labels: Mapping[str, str]) -> str:
    accepts = {"instance": is_label_value, "alertname": is_label_value, "cluster": is_label_value, "node": is_host}
    fits = accepts.get(part, is_object_name)
    return next((labels[key] for key in _LABELS[part] if fits(labels.get(key, ""))), "")


def _from_words(part: str, words: str) -> str:
    pattern = _WORDS.get(part)
    if pattern is None:
        return ""
    accepts = is_label_value if part == "instance" else is_object_name
    # `pod shop/cart-0` names the namespace first; a slash after the word says so.
    found = (match for match in pattern.finditer(words) if words[match.end(1) : match.end(1) + 1] != "/")
    names = (match[1].rstrip(".-") for match in found)
    return next((name for name in names if name.lower() not in _ENGLISH and accepts(name)), "")


def _pair(words: str) -> tuple[str, str] | None:
    """`shop/cart`: a namespace and a workload, unless a slash stands there for something else."""
    for match in _PAIR.finditer(words[:2_000]):
        before, after = words[max(0, match.start() - 1) : match.start()], words[match.end() : match.end() + 1]
        if before not in ("/", ":", ".", "=") and after not in ("/", ":") and not match[1].isdigit():
            return match[1], workload_of_pod(match[2])
    return None


def _expression(alert: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Where alerting systems put the rule's expression: a label, an annotation, or the link back to the graph."""
    for place in (annotations, labels):
        for key in ("expr", "expression", "query", "promql"):
            if place.get(key):
                return place[key][:MAX_EXPRESSION_CHARS]
    links = [str(alert.get("url") or ""), *annotations.values()]
    for link in links:
        if "g0.expr=" in link:
            return (parse_qs(urlsplit(link).query).get("g0.expr") or [""])[0][:MAX_EXPRESSION_CHARS]
    return ""
