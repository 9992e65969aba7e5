"""What monitoring, a mesh and the nodes report besides objects, logs and series."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.rules.names import is_object_name
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.transcript import Reading

MAX_LINES = 2_000

_SUBJECT = re.compile(
    r"\{(?P<kind>service|workload|pod|node|instance)=\"(?P<name>[^\"]{1,253})\"\} (?P<said>.{1,1500})"
)
_SHIFT = re.compile(
    r"(?:(?P<what>[A-Za-z0-9_-]{1,80}): )?(?:Normal|Baseline)=(?P<normal>\d[\d.]{0,20})[ ]?(?P<unit>[a-z%/]{0,8})"
    r" ?-> ?(?:Current|Cur)=(?P<current>\d[\d.]{0,20})",
    re.IGNORECASE,
)
_FAILED = re.compile(r"failed (?P<count>\d{1,9}) times: (?P<error>.{1,300})")
# The first whose words are found tells what the deviation is in.
_KINDS = (
    ("throttled", re.compile(r"cfs|throttl", re.IGNORECASE)),
    ("cpu", re.compile(r"cpu", re.IGNORECASE)),
    ("memory", re.compile(r"memory|working set", re.IGNORECASE)),
    ("retransmission", re.compile(r"retrans|packet loss", re.IGNORECASE)),
    ("latency", re.compile(r"latency|slow|duration|response time", re.IGNORECASE)),
    ("errors", re.compile(r"success rate|error", re.IGNORECASE)),
    ("traffic", re.compile(r"traffic|throughput|rps|network", re.IGNORECASE)),
)
_KIND_OF = {"service": "workload", "instance": "node"}


def read_anomalies(reading: Reading) -> Iterator[Observation]:
    """`{service="x"} LATENCY … Normal=4ms -> Current=90ms`; `{service="x"} POST /y failed 3 times: 503`."""
    for line in reading.body.split("\n")[:MAX_LINES]:
        match = _SUBJECT.fullmatch(line.strip())
        if match is None or not is_object_name(match["name"]):
            continue
        about = Thing(_KIND_OF.get(match["kind"], match["kind"]), match["name"])
        said, values = match["said"], {}
        if failed := _FAILED.search(said):
            values = {"kind": "requests", **failed.groupdict()}
        elif kind := next((name for name, words in _KINDS if words.search(said)), ""):
            values = {"kind": kind, **_shift(said)}
        if values:
            yield Observation(fact=Fact.ANOMALY, about=about, text=line.strip(), ref=reading.ref, values=values)


def _shift(said: str) -> dict[str, str]:
    """The largest relative rise of those told, and its two values."""
    best: tuple[float, dict[str, str]] = (-1.0, {})
    for match in _SHIFT.finditer(said):
        normal, current = float(match["normal"].rstrip(".")), float(match["current"].rstrip("."))
        rise = (current - normal) / max(normal, 0.01)
        if rise > best[0]:
            values = {"normal": str(normal), "current": str(current), "rise": str(rise)}
            best = (rise, values | {"unit": match["unit"].strip()})
    return best[1]


_NODE_OF_TREE = re.compile(r"(?P<lead>(?:[│| ]{1,4}\s*)*)(?:[├└|`+]?[─-]{1,3}\s*)(?P<name>[a-z0-9][a-z0-9.-]{0,252})")
_UPSTREAM = re.compile(r"\[?(?:Upstream|Callers?)[^:]{0,40}:\s*(?P<names>.{1,1000})", re.IGNORECASE)


def read_dependencies(reading: Reading, about: Thing) -> Iterator[Observation]:
    """A tree of calls, two or more characters a level; and a line of upstream names."""
    path: list[tuple[int, str]] = [(-1, about.name)]
    for line in reading.body.split("\n")[:MAX_LINES]:
        if upstream := _UPSTREAM.search(line):
            for name in re.findall(r"[a-z0-9][a-z0-9.-]{0,252}", upstream["names"]):
                yield _call(reading, name, about.name, line)
        elif match := _NODE_OF_TREE.fullmatch(line.rstrip()):
            depth = len(match["lead"])
            while path and path[-1][0] >= depth:
                path.pop()
            if path and is_object_name(match["name"]):
                yield _call(reading, path[-1][1], match["name"], line)
            path.append((depth, match["name"]))


def _call(reading: Reading, caller: str, callee: str, line: str) -> Observation:
    values = {"caller": caller, "callee": callee}
    return Observation(
        fact=Fact.CALLS, about=Thing("workload", caller), text=line.strip(), ref=reading.ref, values=values
    )


_ACTIVE = re.compile(r"Active: (?P<state>active|inactive|failed|activating|deactivating)[^\n]{0,200}")


def read_unit(reading: Reading) -> Iterator[Observation]:
    """`systemctl status` of one service of one node."""
    arguments = {key: str(value) for key, value in reading.arguments.items()}
    node = next((arguments[key] for key in ("node", "node_name", "host") if arguments.get(key)), "")
    unit = next((arguments[key] for key in ("service", "service_name", "unit") if arguments.get(key)), "")
    match = _ACTIVE.search(reading.body[:10_000])
    if match is not None and is_object_name(node):
        values = {"unit": unit.removesuffix(".service"), "state": match["state"]}
        yield Observation(fact=Fact.UNIT, about=Thing("node", node), text=match[0], ref=reading.ref, values=values)
