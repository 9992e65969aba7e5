"""A file system is full: writes fail, and the node evicts pods."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.scene import Scene

FULL = 0.03  # share that is free
ROOMY = 0.15

# Words in which a client reports the error of the server it writes to.
_RELAYED = re.compile(
    r"\bpq: |psycopg|PG::|PSQLException|could not extend file|SQLSTATE|SQLException|ERROR \d{4} \(|OperationalError"
    r"|pymongo|MongoServerError|RedisError|MISCONF",
    re.IGNORECASE,
)
_MEASURES = ("disk_free", "volume_free")


def _full(observation: Observation, _match: Match, _scene: Scene) -> bool:
    left = observation.number("last")
    return observation.values.get("measure") in _MEASURES and left is not None and left <= FULL


def _roomy(observation: Observation, _match: Match, _scene: Scene) -> bool:
    left = observation.number("min")
    return observation.values.get("measure") in _MEASURES and left is not None and left >= ROOMY


def _place(observation: Observation, _match: Match, _scene: Scene) -> Thing:
    """A volume by its claim, a node by its instance."""
    values = observation.values
    if claim := values.get("label_persistentvolumeclaim"):
        return Thing("volume", claim)
    instance = values.get("label_instance") or values.get("label_node", "")
    return Thing("node", instance) if instance else NOTHING


def _writer(observation: Observation, _match: Match, scene: Scene) -> Thing:
    """Who ran out of space: a database's error comes to the log of its client, so a volume that is seen to be full
    tells more than who complains."""
    full = {_place(series, _match, scene) for series in scene.of(Fact.SERIES) if _full(series, _match, scene)}
    volumes = [place for place in full if place.kind == "volume"]
    relayed = _RELAYED.search(observation.text) is not None
    return volumes[0] if relayed and len(volumes) == 1 else scene.owner(observation.about)


def _node(observation: Observation, _match: Match, scene: Scene) -> Thing:
    """Evictions and pressure are the node's, wherever they are told."""
    if observation.about.kind == "node":
        return observation.about
    pod = scene.pods.get(observation.about.name)
    return Thing("node", pod.node) if pod and pod.node else scene.owner(observation.about)


def _where(hypothesis: Hypothesis) -> str:
    mount = hypothesis.part("label_mountpoint")
    return f"file system {mount}" if mount else "volume" if hypothesis.component.kind == "volume" else "disk"


def _tell(hypothesis: Hypothesis, _scene: Scene) -> Account:
    did = "can't write" if hypothesis.component.kind == "workload" else "has no space left"
    return Account(did=did, because=f"the {_where(hypothesis)} is full", trigger="capacity")


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    pods = looks.worst_pods(hypothesis.component, scene)[:1]
    return [
        *[steps.look("See what is full", f"kubectl exec {pod}{steps.flag(scene)} -- df -h") for pod in pods],
        steps.look("Find what grew", "du -xh --max-depth=2 <mount point> | sort -h | tail -20"),
        steps.change(
            "Grow the volume or remove what is no longer needed",
            "writes fail until there is space",
            risk="deleted data does not come back",
            undo="none for deleted data; a grown volume can't shrink",
        ),
    ]


DISK_FULL = Rule(
    name="disk_full",
    title="a disk is full",
    depth=40,
    signs=(
        Sign(
            name="a write failed for lack of space",
            weight="decisive",
            facts=(Fact.LOG,),
            pattern=re.compile(
                r"no space left on device|\bENOSPC\b|database or disk is full|disk (?:is )?full|not enough disk space"
                r"|could not extend file .{0,120}|disk quota exceeded|flood.stage disk watermark",
                re.IGNORECASE,
            ),
            component=_writer,
        ),
        Sign(
            name="the node is short of disk",
            weight="decisive",
            facts=(Fact.EVENT,),
            pattern=re.compile(
                r"NodeHasDiskPressure|EvictionThresholdMet.{0,80}(?:ephemeral-storage|nodefs|imagefs)"
                r"|low on resource: ephemeral-storage|[Nn]o space left on device|FreeDiskSpaceFailed"
            ),
            component=_node,
        ),
        Sign(
            name="the node is under disk pressure",
            weight="decisive",
            facts=(Fact.CONDITION,),
            pattern=re.compile(r"^(?:condition )?DiskPressure(?:\s+|=)True\b"),
        ),
        Sign(
            name="a file system has no free space",
            weight="decisive",
            facts=(Fact.SERIES,),
            holds=_full,
            component=_place,
            dated=False,
        ),
        Sign(
            name="there is room on the file system",
            weight="contradicting",
            facts=(Fact.SERIES,),
            holds=_roomy,
            component=_place,
        ),
    ),
    looks=(looks.series("disk_free", "volume_free"), looks.list_of("persistentvolumeclaims"), looks.logs),
    tells=_tell,
    steps=_steps,
)
