"""Nodes as their list shows them: which of them run the control plane, and which are closed to pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene

_CONTROL_PLANE = re.compile(r"master|control-plane")


def nodes(scene: Scene) -> Iterator[Observation]:
    return (row for row in scene.of(Fact.OBJECT) if row.about.kind == "node")


def control_plane(scene: Scene) -> list[str]:
    """By their role, or by the taint that goes with it."""
    told = ((row.about.name, f"{row.values.get('roles', '')} {row.values.get('taints', '')}") for row in nodes(scene))
    return [name for name, words in told if _CONTROL_PLANE.search(words)]


def closed(scene: Scene) -> list[str]:
    """Cordoned ones."""
    return [row.about.name for row in nodes(scene) if "SchedulingDisabled" in row.values.get("status", "")]
