"""What a pod's status says, in the words operators know from kubectl."""

from __future__ import annotations

from typing import Any

from toolsets.kubernetes.fields import Object, at, text
from toolsets.kubernetes.grammar import stamp


def statuses(pod: Object) -> list[Object]:
    """Status of every container: init, regular, ephemeral."""
    keys = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [status for key in keys for status in at(pod, f"status.{key}", [])]


def phase(pod: Object) -> str:
    """The STATUS column of `kubectl get pods`: the most telling reason there is."""
    reason = text(pod, "status.reason") or text(pod, "status.phase", "Unknown")
    for status in at(pod, "status.initContainerStatuses", []):
        if found := _unfinished(status):
            reason = f"Init:{found}"
            break
    else:
        for status in reversed(at(pod, "status.containerStatuses", [])):
            reason = _telling(status.get("state") or {}) or reason
    if at(pod, "metadata.deletionTimestamp"):
        return "Unknown" if reason == "NodeLost" else "Terminating"
    return reason


def _unfinished(status: Object) -> str:
    """Why an init container holds the pod back; "" when it does not."""
    state = status.get("state") or {}
    if (ended := state.get("terminated")) and ended.get("exitCode") == 0:
        return ""
    if status.get("started") and status.get("ready") is not False and state.get("running"):
        return ""  # a sidecar
    return _telling(state) or "Waiting"


def _telling(state: Object) -> str:
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if reason := waiting.get("reason") or ended.get("reason"):
        return str(reason)
    if not ended:
        return ""
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', '?')}"


def ready(pod: Object) -> str:
    """`1/2`."""
    found = at(pod, "status.containerStatuses", [])
    return f"{sum(bool(status.get('ready')) for status in found)}/{len(at(pod, 'spec.containers', []))}"


def is_ready(pod: Object) -> bool:
    """Serving, or finished as it should."""
    if text(pod, "status.phase") == "Succeeded":
        return True
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in at(pod, "status.conditions", [])
    )


def restarts(pod: Object) -> int:
    return sum(int(status.get("restartCount") or 0) for status in statuses(pod))


def last_end(pod: Object) -> str:
    """How and when a container last ended: `OOMKilled 137 2026-05-01T10:00:00Z`."""
    ended = [end for status in statuses(pod) if (end := at(status, "lastState.terminated"))]
    if not ended:
        return ""
    return ending(max(ended, key=lambda end: stamp(end.get("finishedAt"))))


def ending(terminated: dict[str, Any]) -> str:
    parts = [terminated.get("reason"), terminated.get("exitCode"), stamp(terminated.get("finishedAt"))]
    return " ".join(str(part) for part in parts if part not in (None, ""))
