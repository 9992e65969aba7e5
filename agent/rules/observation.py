"""What was seen: one fact about one object, with the verbatim quote and the call it came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from agent.alert import parse_time
from agent.report import MAX_QUOTE_CHARS, EvidenceKind


class Fact(StrEnum):
    """What kind of statement it is. It follows from the tool that was asked, never from the text, so that a
    log line that looks like an event stays a log line."""

    POD = "pod"  # a row of the pod list
    WORKLOAD = "workload"  # a row of deployments, stateful sets, daemon sets or replica sets
    OBJECT = "object"  # a row of any other list
    CONTAINER = "container"  # a container's state, as `describe` tells it
    PROBE = "probe"  # a probe's settings, with the ports its container declares
    LIMIT = "limit"  # a memory or CPU limit of a container or a pod template
    IMAGE = "image"  # the image of a container or a pod template
    CONDITION = "condition"  # a condition or another line of `describe`
    CHANGE = "change"  # one field that the last roll-out changed
    EVENT = "event"
    USAGE = "usage"  # a row of `top`
    LOG = "log"
    SERIES = "series"  # statistics of one metric series
    RULE = "rule"  # an alerting rule's expression
    ABSENT = "absent"  # the object asked for does not exist
    SETTING = "setting"  # a value that a program is configured with: an environment variable, a key of a config map
    CLAIM = "claim"  # what a volume claim asks for
    PORTS = "ports"  # the ports that a workload's containers declare
    ROUTE = "route"  # where a gateway sends requests of a path
    ANOMALY = "anomaly"  # a deviation that monitoring reports, with its normal and its current value
    CALLS = "calls"  # who calls whom, as a mesh or tracing knows it
    UNIT = "unit"  # the state of a system service on a node


KIND_OF_EVIDENCE: Mapping[Fact, EvidenceKind] = {
    Fact.EVENT: "event",
    Fact.LOG: "log",
    Fact.SERIES: "metric",
    Fact.CHANGE: "change",
}


_ROWS = frozenset({Fact.POD, Fact.WORKLOAD, Fact.OBJECT, Fact.USAGE})


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """What a fact is about: `pod/cart-0`, `node/n1`, `service/db`, `workload/cart`; `namespace` may be unknown."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


NOTHING = Thing("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """`text` stands in the result as it is (white space apart); `values` holds the parts that rules compare."""

    fact: Fact
    about: Thing
    text: str
    ref: str
    at: datetime | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def began(self) -> datetime | None:
        """When it was first so, where that is told; a list's own row tells only when its object was created."""
        return parse_time(self.values.get("since")) or (None if self.fact in _ROWS else self.at)

    def number(self, key: str) -> float | None:
        try:
            return float(self.values[key])
        except (KeyError, ValueError):
            return None


def quote(text: str, start: int = 0, end: int = 0) -> str:
    """At most `MAX_QUOTE_CHARS` characters of `text`, cut so that the part from `start` to `end` is inside."""
    if len(text) <= MAX_QUOTE_CHARS:
        return text.strip()
    spare = max(0, MAX_QUOTE_CHARS - (end - start)) // 2
    begin = min(max(0, start - spare), len(text) - MAX_QUOTE_CHARS)
    return text[begin : begin + MAX_QUOTE_CHARS].strip()


_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)(m|k|Ki|Mi|Gi|Ti|K|M|G|T)?")
_FACTORS = {
    "": 1.0,
    "m": 0.001,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}


def quantity(text: str) -> float | None:
    """A Kubernetes quantity (`64Mi`, `500m`) as a number; None where it is not one."""
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * _FACTORS[match[2] or ""] if match else None


_AGE = re.compile(r"(\d{1,6})(y|d|h|m|s)")
_AGE_SECONDS = {"y": 31_536_000, "d": 86_400, "h": 3_600, "m": 60, "s": 1}


def age_seconds(text: str) -> float | None:
    """kubectl's `4d20h` in seconds; None where there is no age in `text`."""
    parts = _AGE.findall(text)
    return float(sum(int(count) * _AGE_SECONDS[unit] for count, unit in parts)) if parts else None
