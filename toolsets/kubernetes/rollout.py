"""What a workload's roll-outs changed, and when: from the replica sets or controller revisions it leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent.deadline import Deadline
from agent.errors import ToolError
from toolsets.kubernetes.api import HIDDEN, Cluster
from toolsets.kubernetes.fields import Object, annotation, at, created, name_of, namespace_of
from toolsets.kubernetes.kinds import well_known
from toolsets.kubernetes.manifest import SECRET_NAME

MAX_REVISIONS = 6
MAX_CHANGES = 30
MAX_VALUE_CHARS = 160
OWN_LABELS = ("pod-template-hash", "controller-revision-hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    number: int
    name: str
    created: str
    replicas: int | None
    template: Object
    cause: str = ""

    def __str__(self) -> str:
        images = ", ".join(str(one.get("image")) for one in at(self.template, "spec.containers", []))
        size = "" if self.replicas is None else f"  {self.replicas} replicas"
        return f"#{self.number}  {self.created}  {self.name}{size}  {images}" + (
            f"  ({' '.join(self.cause.split())})" if self.cause else ""
        )


def history(cluster: Cluster, workload: Object, selector: str, deadline: Deadline) -> list[str]:
    """Lines on the newest revisions, and each field that differs between the two newest; [] when there are none."""
    try:
        revisions = _revisions(cluster, workload, selector, deadline)
    except ToolError as error:
        return [f"rollout history: not available ({error})"]
    if not revisions:
        return []
    lines = ["rollout history (revision, first created, name, size, images):"]
    lines += [f"  {revision}" for revision in revisions[:MAX_REVISIONS]]
    if len(revisions) > 1:
        newest, before = revisions[:2]
        changes = differences(before.template, newest.template)
        lines.append(f"changed from #{before.number} to #{newest.number}:")
        lines += [f"  {change}" for change in changes[:MAX_CHANGES]] or ["  nothing in the pod template"]
        if len(changes) > MAX_CHANGES:
            lines.append(f"  PARTIAL: {MAX_CHANGES} of {len(changes)} changes")
    return lines


def _revisions(cluster: Cluster, workload: Object, selector: str, deadline: Deadline) -> list[Revision]:
    """Newest first. A roll-back gives an old replica set a new number, so it is the number that counts."""
    deployment = workload.get("kind") == "Deployment"
    kind = well_known("ReplicaSet" if deployment else "ControllerRevision")
    owned = [
        item
        for item in cluster.list(kind, namespace_of(workload), deadline, selector=selector).items
        if any(_owns(workload, owner) for owner in at(item, "metadata.ownerReferences", []))
    ]
    read = _from_replica_set if deployment else _from_controller_revision
    return sorted((read(item) for item in owned), key=lambda revision: -revision.number)


def _owns(workload: Object, owner: Object) -> bool:
    uid = at(workload, "metadata.uid")
    if uid and owner.get("uid"):
        return bool(owner["uid"] == uid)
    return owner.get("kind") == workload.get("kind") and owner.get("name") == name_of(workload)


def _from_replica_set(item: Object) -> Revision:
    number = annotation(item, "deployment.kubernetes.io/revision")
    return Revision(
        number=int(number) if number.isdigit() else 0,
        name=name_of(item),
        created=created(item),
        replicas=at(item, "status.replicas", at(item, "spec.replicas", 0)),
        template=at(item, "spec.template", {}),
        cause=annotation(item, "kubernetes.io/change-cause"),
    )


def _from_controller_revision(item: Object) -> Revision:
    return Revision(
        number=int(item.get("revision") or 0),
        name=name_of(item),
        created=created(item),
        replicas=None,
        template=at(item, "data.spec.template", {}),
        cause=annotation(item, "kubernetes.io/change-cause"),
    )


def differences(before: Any, after: Any) -> list[str]:
    """`containers[app].resources.limits.memory: 512Mi -> 128Mi`, one line a field."""
    old, new = dict(_leaves(before, "")), dict(_leaves(after, ""))
    lines = []
    for path in [*old, *(path for path in new if path not in old)]:
        if old.get(path) != new.get(path) and not path.endswith(OWN_LABELS):
            was, now = (_shown(path, side.get(path)) for side in (old, new))
            lines.append(f"{path.removeprefix('spec.')}: {was} -> {now}")
    return lines


def _leaves(thing: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every leaf with its path; items of a list go by their `name` where they have one, so order does not matter."""
    if isinstance(thing, dict) and thing:
        for key, value in thing.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(thing, list) and thing:
        for index, value in enumerate(thing):
            label = value.get("name", index) if isinstance(value, dict) else index
            yield from _leaves(value, f"{path}[{label}]")
    else:
        yield path, thing


def _shown(path: str, value: Any) -> str:
    if value is None:
        return "(none)"
    if path.endswith("].value") and SECRET_NAME.search(path):
        return HIDDEN
    line = " ".join(str(value).split())
    return line if len(line) <= MAX_VALUE_CHARS else f"{line[: MAX_VALUE_CHARS - 1]}…"
