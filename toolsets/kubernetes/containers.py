"""A pod's containers in a few lines each: how they are, how they last ended, what they may use, what they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolsets.kubernetes import pods
from toolsets.kubernetes.api import HIDDEN
from toolsets.kubernetes.fields import Object, at, pairs, text
from toolsets.kubernetes.grammar import stamp
from toolsets.kubernetes.manifest import SECRET_NAME

MAX_VALUE_CHARS = 200
MAX_ENV = 40
GROUPS = (("initContainers", "init container"), ("containers", "container"), ("ephemeralContainers", "debug container"))


def lines(spec: Object, statuses: list[Object] | None = None) -> Iterator[str]:
    """For a pod's spec with its statuses, or a pod template's spec without."""
    by_name = {status.get("name"): status for status in statuses or []}
    for key, title in GROUPS:
        for container in at(spec, key, []):
            yield f"{title} {text(container, 'name')}: {text(container, 'image')}"
            yield from (f"  {line}" for line in _status(by_name.get(container.get("name"))))
            yield from (f"  {line}" for line in _spec(container))


def _status(status: Object | None) -> Iterator[str]:
    if not status:
        return
    ready, restarts = bool(status.get("ready")), status.get("restartCount", 0)
    yield f"state: {state(status.get('state'))}; ready {ready}; restarts {restarts}"
    if last := status.get("lastState"):
        yield f"last state: {state(last)}"


def state(entry: Object | None) -> str:
    """`terminated OOMKilled, exit code 137, 10:00:00Z to 10:04:10Z: message`."""
    match entry:
        case {"running": dict(running)}:
            return f"running since {stamp(running.get('startedAt'))}"
        case {"waiting": dict(waiting)}:
            return f"waiting {text(waiting, 'reason')}" + _said(waiting)
        case {"terminated": dict(ended)}:
            signal = f", signal {ended['signal']}" if ended.get("signal") else ""
            period = f"{stamp(ended.get('startedAt'))} to {stamp(ended.get('finishedAt'))}"
            return f"terminated {text(ended, 'reason')}, exit code {ended.get('exitCode')}{signal}, {period}" + _said(
                ended
            )
    return "unknown"


def _said(entry: Object) -> str:
    return f": {_short(text(entry, 'message'))}" if entry.get("message") else ""


def _spec(container: Object) -> Iterator[str]:
    if command := [*at(container, "command", []), *at(container, "args", [])]:
        yield f"command: {_short(' '.join(map(str, command)))}"
    if ports := at(container, "ports", []):
        yield "ports: " + ", ".join(f"{port.get('containerPort')}/{port.get('protocol', 'TCP')}" for port in ports)
    requests, limits = pairs(at(container, "resources.requests")), pairs(at(container, "resources.limits"))
    yield f"requests: {requests or 'none'}; limits: {limits or 'none'}"
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            yield f"{name.removesuffix('Probe')}: {_probe(probe)}"
    if env := list(_env(container)):
        more = [f"… {len(env) - MAX_ENV} more"] if len(env) > MAX_ENV else []
        yield "env: " + ", ".join(env[:MAX_ENV] + more)
    if mounts := at(container, "volumeMounts", []):
        yield "mounts: " + ", ".join(f"{mount.get('mountPath')} from {mount.get('name')}" for mount in mounts)


def _probe(probe: Object) -> str:
    timing = (
        f"delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 1)}s "
        f"period={probe.get('periodSeconds', 10)}s failures={probe.get('failureThreshold', 3)}"
    )
    match probe:
        case {"httpGet": dict(get)}:
            return f"{text(get, 'scheme', 'HTTP')} GET :{get.get('port')}{text(get, 'path', '/')} {timing}"
        case {"tcpSocket": dict(tcp)}:
            return f"TCP :{tcp.get('port')} {timing}"
        case {"grpc": dict(grpc)}:
            return f"gRPC :{grpc.get('port')} {timing}"
        case {"exec": dict(program)}:
            return f"exec {_short(' '.join(map(str, program.get('command') or [])))} {timing}"
    return timing


def _env(container: Object) -> Iterator[str]:
    """Literal values, except those whose name says secret, and references by what they refer to."""
    for entry in at(container, "env", []):
        name = text(entry, "name")
        match entry.get("valueFrom"):
            case {"secretKeyRef": dict(ref)}:
                yield f"{name}=<secret {ref.get('name')} key {ref.get('key')}{_optional(ref)}>"
            case {"configMapKeyRef": dict(ref)}:
                yield f"{name}=<configmap {ref.get('name')} key {ref.get('key')}{_optional(ref)}>"
            case {"fieldRef": dict(ref)}:
                yield f"{name}=<field {ref.get('fieldPath')}>"
            case {"resourceFieldRef": dict(ref)}:
                yield f"{name}=<resource {ref.get('resource')}>"
            case _:
                yield f"{name}={HIDDEN if SECRET_NAME.search(name) else _short(text(entry, 'value'))}"
    for entry in at(container, "envFrom", []):
        for key, what in (("configMapRef", "configmap"), ("secretRef", "secret")):
            if ref := entry.get(key):
                yield f"{entry.get('prefix', '')}*=<all of {what} {ref.get('name')}{_optional(ref)}>"


def _optional(ref: Object) -> str:
    return ", optional" if ref.get("optional") else ""


def volumes(spec: Object) -> Iterator[str]:
    """`data: persistentvolumeclaim data-0`."""
    for volume in at(spec, "volumes", []):
        kind, source = next(((key, value) for key, value in volume.items() if key != "name"), ("emptyDir", {}))
        yield f"volume {text(volume, 'name')}: {kind} {_source(source)}".rstrip()


def _source(source: Any) -> str:
    if not isinstance(source, dict):
        return ""
    for key in ("claimName", "secretName", "name", "path", "driver"):
        if source.get(key):
            return f"{source[key]}{_optional(source)}"
    named = [text(part, f"{key}.name") for part in source.get("sources") or [] for key in ("configMap", "secret")]
    return ", ".join(filter(None, named)) or pairs({k: v for k, v in source.items() if isinstance(v, str)})


def hint(pod: Object) -> str:
    """What the log of the current run can't tell: "" when no container has ended before."""
    ended = pods.last_end(pod)
    return f"restarted {pods.restarts(pod)} times, last end {ended}: previous=true reads that run" if ended else ""


def _short(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= MAX_VALUE_CHARS else f"{line[: MAX_VALUE_CHARS - 1]}…"
