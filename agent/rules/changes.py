"""What changed before the alert: roll-outs, and what differs between the revisions that were described."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from agent.report import Trigger
from agent.rules.mechanisms.looks import revisions
from agent.rules.observation import Fact, Observation, quantity
from agent.rules.scene import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One change of one workload, with the lines it was read from."""

    workload: str
    what: str
    at: datetime | None
    seen: tuple[Observation, ...]


def told(scene: Scene) -> Iterator[Changed]:
    """Fields that `describe` says the last roll-out changed."""
    for field in scene.of(Fact.CHANGE):
        if scene.since(field):
            path, old, new = (field.values[key] for key in ("path", "old", "new"))
            workload = scene.owner(field.about).name
            yield Changed(workload=workload, what=f"{path} changed from {old} to {new}", at=field.at, seen=(field,))


def _lowered(workload: str, resource: str, scene: Scene) -> Changed | None:
    for field in scene.of(Fact.CHANGE):
        if not field.values["path"].endswith(f"limits.{resource}") or scene.owner(field.about).name != workload:
            continue
        old, new = quantity(field.values["old"]), quantity(field.values["new"])
        if old is not None and new is not None and new < old:
            what = f"{resource} limit lowered from {field.values['old']} to {field.values['new']}"
            return Changed(workload=workload, what=what, at=field.at, seen=(field,))
    return None


def rollouts(scene: Scene) -> Iterator[Changed]:
    """Scale-ups of a replica set that another one made room for: new revisions, not mere scaling."""
    for event in scene.of(Fact.EVENT):
        reason, message = event.values.get("reason"), event.values.get("message", "")
        if reason != "ScalingReplicaSet" or "caled up" not in message or not scene.since(event):
            continue
        workload = scene.owner(event.about).name
        if len(revisions(workload, scene)) > 1 or workload in scene.once("scaled down", _scaled_down):
            yield Changed(workload=workload, what=f"roll-out: {message}", at=event.at, seen=(event,))


def _scaled_down(scene: Scene) -> frozenset[str]:
    return frozenset(
        scene.owner(event.about).name
        for event in scene.of(Fact.EVENT)
        if event.values.get("reason") == "ScalingReplicaSet" and "caled down" in event.values.get("message", "")
    )


def young_revision(workload: str, scene: Scene) -> Observation | None:
    """The row of the newest replica set, where it is young and stands beside an older one."""
    names = revisions(workload, scene)
    if len(names) < 2:
        return None
    rows = {row.about.name: row for row in scene.of(Fact.WORKLOAD)}
    return rows[names[0]] if scene.young(rows[names[0]]) and rows[names[0]].values.get("desired") != "0" else None


def limit_change(workload: str, resource: str, scene: Scene) -> Changed | None:
    """A lower limit in the newest revision than in the one before."""
    if (lowered := _lowered(workload, resource, scene)) is not None:
        return lowered
    both = _of_revisions(workload, scene, Fact.LIMIT, {"what": "limits", "resource": resource})
    if both is None:
        return None
    new, old = both
    less, more = quantity(new.values["quantity"]), quantity(old.values["quantity"])
    if less is None or more is None or less >= more:
        return None
    what = f"{resource} limit lowered from {old.values['quantity']} to {new.values['quantity']}"
    return Changed(workload=workload, what=what, at=_when(workload, scene), seen=(new, old))


def image_change(workload: str, scene: Scene) -> Changed | None:
    both = _of_revisions(workload, scene, Fact.IMAGE, {})
    if both is None or both[0].values["image"] == both[1].values["image"]:
        return None
    what = f"image changed from {both[1].values['image']} to {both[0].values['image']}"
    return Changed(workload=workload, what=what, at=_when(workload, scene), seen=both)


def _of_revisions(
    workload: str, scene: Scene, fact: Fact, having: dict[str, str]
) -> tuple[Observation, Observation] | None:
    """The same fact in the newest revision and in the one before it."""
    names = revisions(workload, scene)[:2]
    told = [
        next((o for o in scene.of(fact) if o.about.name == name and having.items() <= o.values.items()), None)
        for name in names
    ]
    return (told[0], told[1]) if len(told) == 2 and told[0] and told[1] else None


def _when(workload: str, scene: Scene) -> datetime | None:
    return max((change.at for change in rollouts(scene) if change.workload == workload and change.at), default=None)


def changes(scene: Scene) -> list[Changed]:
    """All of them, the precise before the general, one a workload and wording."""
    return scene.once("changes", _changes)


def _changes(scene: Scene) -> list[Changed]:
    workloads = dict.fromkeys(scene.owner(row.about).name for row in scene.of(Fact.LIMIT, Fact.IMAGE, Fact.CHANGE))
    found: dict[tuple[str, str], Changed] = {}
    limits: set[str] = set()  # workloads whose limit was told already
    for workload in workloads:
        for change in (limit_change(workload, "memory", scene), limit_change(workload, "cpu", scene)):
            if change:
                limits.add(workload)
                found.setdefault((workload, change.what), change)
        if image := image_change(workload, scene):
            found.setdefault((workload, image.what), image)
    for change in (*told(scene), *rollouts(scene)):
        if change.workload in limits and "limits." in change.what:
            continue
        found.setdefault((change.workload, change.what), change)
    return list(found.values())


def changed(workload: str, scene: Scene) -> Changed | None:
    """The change of this workload that is nearest to an explanation; a young revision is one too."""
    known = next((change for change in changes(scene) if change.workload == workload), None)
    if known is None and (row := young_revision(workload, scene)) is not None:
        return Changed(workload=workload, what=f"new replica set {row.about.name}", at=None, seen=(row,))
    return known


def trigger(workload: str, scene: Scene, otherwise: Trigger) -> Trigger:
    """A fault of a component that was just changed began with the change."""
    return "change" if changed(workload, scene) else otherwise
