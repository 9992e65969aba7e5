"""Container logs of a pod, of a workload's pods, or of those a selector picks."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import datetime

from agent.alert import clean
from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets.grep import matching
from toolsets.kubernetes import containers, grammar, pods
from toolsets.kubernetes.api import ApiError, Cluster, kubectl
from toolsets.kubernetes.describe import selector_of
from toolsets.kubernetes.fields import Object, at, name_of, namespace_of, text
from toolsets.kubernetes.kinds import Kind, well_known

MAX_PODS = 8
MAX_STREAMS = 16
MAX_LINES = 2_000
SEARCHED_LINES = 10_000
MAX_STREAM_BYTES = 4_000_000
MAX_LINE_CHARS = 2_000
_KUBELET_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z ?")
_OWN_TIME = re.compile(r"(?:^\W{0,2}|\b(?:ts|time|timestamp)\"?\s?[=:]\s?\"?)\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d")
_OWN_TIME_WITHIN = 100  # characters from the line's beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read: of which pods, which run, how much."""

    namespace: str
    kind: Kind
    name: str = ""
    selector: str = ""
    container: str = ""
    previous: bool = False
    since: datetime | None = None
    tail: int = 100
    grep: str = ""

    def command(self, namespace: str) -> str:
        """The same for a person, in the namespace where it was found."""
        target = f"{self.kind.shown}/{self.name}" if self.name and self.kind.name != "Pod" else self.name
        return kubectl(
            "logs",
            target,
            *(("-l", self.selector) if self.selector else ()),
            "-n",
            namespace,
            *(("-c", self.container) if self.container else ("--all-containers",)),
            "--previous" if self.previous else "",
            f"--since-time={grammar.stamp(self.since)}" if self.since else "",
            f"--tail={SEARCHED_LINES if self.grep else self.tail}",
            "--timestamps",
        ) + (f" | grep -iP -e {shlex.quote(self.grep)}" if self.grep else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """`found` counts lines; `text` explains what is missing either way; `query` shows a person the same."""

    found: int
    text: str
    query: str = ""


def read(cluster: Cluster, wanted: Wanted, deadline: Deadline) -> Logs:
    """Raises `ToolError` when no pod is found or the first stream can't be read."""
    chosen, notes = _pods(cluster, wanted, deadline)
    streams = [(pod, name) for pod in chosen for name in _containers(pod, wanted)]
    if not streams:
        raise ToolError(_no_container(chosen, wanted))
    if len(streams) > MAX_STREAMS:
        notes.append(f"PARTIAL: {MAX_STREAMS} of {len(streams)} containers; give name or container")
        streams = streams[:MAX_STREAMS]
    parts = [_stream(cluster, wanted, pod, name, deadline) for pod, name in streams]
    hints = dict.fromkeys(f"note: {name_of(pod)} {hint}" for pod in chosen if (hint := containers.hint(pod)))
    notes += [] if wanted.previous else list(hints)
    return Logs(
        found=sum(part.found for part in parts),
        text="\n".join([*(part.text for part in parts), *notes]),
        query=wanted.command(namespace_of(chosen[0]) or wanted.namespace),
    )


def _pods(cluster: Cluster, wanted: Wanted, deadline: Deadline) -> tuple[list[Object], list[str]]:
    """The pods meant, those that are not well first, and what to say about the choice."""
    kind = well_known("Pod")
    notes: list[str] = []
    if not wanted.name:
        if not wanted.selector:
            raise ToolError("give name (of a pod, or of the workload with kind) or selector")
        found = cluster.list(kind, wanted.namespace, deadline, selector=wanted.selector).items
    elif wanted.kind.name == "Pod":
        found, notes = _named(cluster, wanted, deadline)
    else:
        workload = cluster.object(wanted.kind, wanted.namespace, wanted.name, deadline)
        if not (selector := selector_of(workload)):
            raise ToolError(f"{wanted.kind.name} {wanted.name} selects no pods; give a pod's name")
        found = cluster.list(kind, namespace_of(workload), deadline, selector=selector).items
    if not found:
        raise ToolError("no pod matches; list pods to see which there are")
    found = sorted(found, key=lambda pod: (pods.is_ready(pod), -pods.restarts(pod)))
    if len(found) > MAX_PODS:
        notes.append(f"PARTIAL: {MAX_PODS} of {len(found)} pods, those not ready first")
    return found[:MAX_PODS], notes


def _named(cluster: Cluster, wanted: Wanted, deadline: Deadline) -> tuple[list[Object], list[str]]:
    """The pod of that name; failing that, pods whose names begin with it, as models give a workload's name."""
    kind = well_known("Pod")
    try:
        return [cluster.object(kind, wanted.namespace, wanted.name, deadline)], []
    except ApiError as error:
        if error.status != 404:
            raise
        near = cluster.list(kind, wanted.namespace, deadline).items
        found = [pod for pod in near if name_of(pod).startswith(f"{wanted.name}-")]
        if not found:
            raise
        return found, [f"note: no pod is called {wanted.name}; these are the pods {wanted.name}-*"]


def _containers(pod: Object, wanted: Wanted) -> list[str]:
    keys = ("initContainers", "containers", "ephemeralContainers")
    names = [text(one, "name") for key in keys for one in at(pod, f"spec.{key}", [])]
    if wanted.container:
        return [name for name in names if name == wanted.container]
    regular = [text(one, "name") for one in at(pod, "spec.containers", [])]
    # Init containers that are done have little to say; those that hold the pod back have all of it.
    return regular if not pods.phase(pod).startswith("Init:") else names


def _no_container(chosen: list[Object], wanted: Wanted) -> str:
    there = sorted({text(one, "name") for pod in chosen for one in at(pod, "spec.containers", [])})
    return f"no container {wanted.container!r} there; containers are: {', '.join(there) or 'none'}"


def _stream(cluster: Cluster, wanted: Wanted, pod: Object, container: str, deadline: Deadline) -> Logs:
    """One container's log under a heading. A container that has no log to give says why."""
    title = f"== {name_of(pod)}/{container}{' (previous run)' if wanted.previous else ''}"
    path = f"{well_known('Pod').path(namespace_of(pod) or wanted.namespace, name_of(pod))}/log"
    params = {
        "container": container,
        "timestamps": "true",
        "tailLines": str(SEARCHED_LINES if wanted.grep else wanted.tail),
        "limitBytes": str(MAX_STREAM_BYTES),
    }
    if wanted.previous:
        params["previous"] = "true"
    if wanted.since:
        params["sinceTime"] = grammar.stamp(wanted.since)
    try:
        raw = cluster.text(path, deadline, params)
    except ApiError as error:
        if error.status != 400:
            raise
        return Logs(found=0, text=f"{title}: no log: {error}")  # not started yet, or never restarted
    return _shown(title, raw, wanted, deadline)


def _shown(title: str, raw: str, wanted: Wanted, deadline: Deadline) -> Logs:
    lines = [_line(line) for line in raw.split("\n") if line.strip()]
    read_lines = len(lines)
    if wanted.grep:
        lines = matching(lines, wanted.grep, deadline)
    shown = _folded(lines[-wanted.tail :])
    counted = f"{min(len(lines), wanted.tail)} of {len(lines)} matching, {read_lines} lines searched"
    heading = f"{title}: {counted if wanted.grep else f'{len(lines[-wanted.tail :])} lines'}"
    if len(raw) >= MAX_STREAM_BYTES:
        heading += f"; PARTIAL: the newest lines are cut after {MAX_STREAM_BYTES} bytes, give a later since"
    return Logs(found=len(shown), text="\n".join([heading, *shown]))


def _line(line: str) -> str:
    """With the time to the second, which is the kubelet's unless the line brings its own."""
    time = _KUBELET_TIME.match(line)
    said = clean(line[time.end() :] if time else line).replace("\t", " ").rstrip()
    if len(said) > MAX_LINE_CHARS:
        said = f"{said[:MAX_LINE_CHARS]}… [{len(said)} characters]"
    return said if time is None or _OWN_TIME.search(said, 0, _OWN_TIME_WITHIN) else f"{time[1]}Z {said}"


def _folded(lines: list[str]) -> list[str]:
    """A line that repeats at once is said once."""
    shown: list[str] = []
    repeated = 0
    for line in [*lines, None]:
        if shown and line is not None and _message(line) == _message(shown[-1]):
            repeated += 1
            continue
        if repeated:
            shown.append(f"  [the same {repeated} times more]")
            repeated = 0
        if line is not None:
            shown.append(line)
    return shown


def _message(line: str) -> str:
    time = _KUBELET_TIME.match(line)
    return line[time.end() :] if time else line
