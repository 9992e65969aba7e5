"""Made-up incidents with static evidence: red herrings, missing data, two faults at once, or nothing wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.alert import Alert

HEALTHY = "healthy"

# Failure mode to the mechanisms that name it.
MECHANISMS: Mapping[str, frozenset[str]] = {
    "connection_exhaustion": frozenset({"connection_pool_exhausted"}),
    "cpu_saturation": frozenset({"cpu_overload", "cpu_throttling", "noisy_neighbour"}),
    "deployment_rollout_stuck": frozenset({"crash_loop", "probe_failure", "missing_reference", "image_pull"}),
    "dns_resolution_failure": frozenset({"dns_failure", "wrong_address"}),
    "image_pull_backoff": frozenset({"image_pull"}),
    "node_not_ready": frozenset({"node_not_ready", "node_component_down"}),
    "oom_killed": frozenset({"memory_limit"}),
    "pending_pod": frozenset({"unschedulable"}),
    "probe_failure": frozenset({"probe_failure"}),
    "resource_quota_exceeded": frozenset({"quota_exceeded"}),
    "storage_full": frozenset({"disk_full"}),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """`evidence` holds the recorded files by name, without `.json`."""

    name: str
    mode: str
    alert_text: Mapping[str, Any]
    evidence: Mapping[str, Any]

    def alert(self) -> Alert:
        told = self.alert_text
        return Alert(
            source="bench",
            id=self.name,
            title=str(told.get("title", "")),
            labels={key: str(value) for key, value in (told.get("commonLabels") or {}).items()},
            annotations={
                key: str(value)
                for key, value in (told.get("commonAnnotations") or {}).items()
                if key in ("summary", "description")  # the others give the answer away
            },
        )


def scenarios(data: Path) -> Iterator[Scenario]:
    for path in sorted(data.glob("**/synthetic/*/*/scenario.yml")):
        folder = path.parent
        files = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
        told = yaml.safe_load(path.read_text())
        alert = files.pop("alert", {})
        yield Scenario(f"{folder.parent.name}/{folder.name}", str(told.get("failure_mode", "")), alert, files)
