"""A namespace's quota refuses new pods or objects."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import NOTHING, Fact, Observation, Thing, quantity
from agent.rules.scene import Scene

_EXCEEDED = re.compile(
    r"exceeded quota: (?P<quota>[a-z0-9.-]{1,253}), requested: (?P<requested>[^,]{1,100})"
    r"(?:,[^,]{1,100}){0,4}?, used: (?P<used>[^ ]{1,100}).{0,200}?limited: (?P<limited>[^ ]{1,100})"
)
_FULL = re.compile(
    r"(?<![a-z0-9./-])(?P<resource>[a-z][a-z0-9./-]{0,80}):? *(?P<used>\d[0-9.]{0,12}[A-Za-z]{0,2})(?:/|\s+)"
    r"(?P<hard>\d[0-9.]{0,12}[A-Za-z]{0,2})"
)


_RESOURCES = (
    ("storage", re.compile(r"storage|persistentvolumeclaims")),
    ("cpu", re.compile(r"cpu")),
    ("memory", re.compile(r"memory")),
    ("pods", re.compile(r"pods")),
    ("services", re.compile(r"services")),
)


def _namespace(observation: Observation, _match: Match, scene: Scene) -> Thing:
    name = scene.subject.namespace
    return Thing("namespace", name) if name else scene.owner(observation.about)


def _used_up(observation: Observation, _match: Match, _scene: Scene) -> bool:
    """A line of a quota whose use has reached the limit."""
    if observation.about.kind not in ("resourcequota", "namespace"):
        return False
    return any(m["used"] == m["hard"] != "0" for m in _FULL.finditer(observation.text))


def _lacking(observation: Observation, match: Match, scene: Scene) -> Thing:
    """A full quota, and something that is missing for want of it: services, claims, or pods."""
    if not _used_up(observation, match, scene) and not _too_large(observation, scene):
        return NOTHING
    full = {_resource(m["resource"]) for m in _FULL.finditer(observation.text) if m["used"] == m["hard"] != "0"}
    lacks = (
        ("services" in full and _without_service(scene))
        or (("storage" in full or _too_large(observation, scene)) and _without_claim(scene))
        or (bool(full & {"pods", "cpu", "memory"}) and _without_pods(scene))
    )
    return _namespace(observation, match, scene) if lacks else NOTHING


def _too_large(observation: Observation, scene: Scene) -> bool:
    """A claim, by its manifest, that asks for more than the quota has left."""
    rest = [
        hard - used
        for match in _FULL.finditer(observation.text)
        if _resource(match["resource"]) == "storage"
        and (hard := quantity(match["hard"])) is not None
        and (used := quantity(match["used"])) is not None
    ]
    asked = [quantity(claim.values.get("storage", "")) or 0.0 for claim in scene.of(Fact.CLAIM)]
    is_quota = observation.about.kind in ("resourcequota", "namespace")
    return is_quota and bool(rest and asked) and max(asked) > min(rest)


def _without_service(scene: Scene) -> bool:
    """One workload has no service of its name, as all but a few others do."""
    named = {row.about.name for row in scene.of(Fact.OBJECT) if row.about.kind == "service"}
    workloads = {row.about.name for row in scene.of(Fact.WORKLOAD) if row.about.kind == "deployment"}
    return bool(named) and 0 < len(workloads - named) <= len(workloads) // 3


def _without_claim(scene: Scene) -> bool:
    listed = any(
        reading.arguments.get("kind") in ("persistentvolumeclaims", "persistentvolumeclaim")
        for reading in scene.readings
    )
    pending = any(pod.status == "Pending" for pod in scene.pods.values())
    return listed and pending and not any(row.about.kind == "persistentvolumeclaim" for row in scene.of(Fact.OBJECT))


def _without_pods(scene: Scene) -> bool:
    """A deployment that wants more pods than it got."""
    rows = (row for row in scene.of(Fact.WORKLOAD) if row.about.kind == "deployment")
    return any(len(scene.pods_of(row.about.name)) < (row.number("desired") or 0.0) for row in rows)


def _refused(observation: Observation, match: Match, scene: Scene) -> Thing:
    return _namespace(observation, match, scene) if _used_up(observation, match, scene) else NOTHING


def _tell(hypothesis: Hypothesis, _scene: Scene) -> Account:
    quota, limited = hypothesis.part("quota"), hypothesis.part("limited")
    what = _resource(hypothesis.part("requested") or hypothesis.part("resource"))
    if not quota:
        full = f"{hypothesis.part('resource')} {hypothesis.part('used')} of {hypothesis.part('hard')}"
        return Account(
            did="refuses new objects", because=f"a quota is used up: {full}", trigger="capacity", variant=what
        )
    because = f"quota {quota} is used up ({limited})"
    return Account(did="refuses new pods", because=because, trigger="capacity", variant=what)


def _resource(text: str) -> str:
    """`requests.cpu=500m`, `limits.memory`, `count/services` in one word each."""
    return next((name for name, pattern in _RESOURCES if pattern.search(text)), "")


def _steps(_hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    return [
        steps.look("See what uses the quota", f"kubectl describe resourcequota{steps.flag(scene)}"),
        steps.change(
            "Raise the quota, or free what is not needed",
            "no new pod is admitted until there is room",
            risk="a higher quota can starve other namespaces of nodes",
            undo="set the former quota again",
        ),
    ]


QUOTA = Rule(
    name="quota_exceeded",
    title="a quota is used up",
    depth=36,
    signs=(
        Sign(
            name="a quota refused a new object",
            weight="decisive",
            facts=(Fact.EVENT, Fact.CONDITION),
            pattern=_EXCEEDED,
            component=_namespace,
        ),
        Sign(
            name="a quota is used up, and something is missing for it",
            weight="decisive",
            facts=(Fact.OBJECT, Fact.CONDITION),
            pattern=_FULL,
            component=_lacking,
        ),
        Sign(
            name="the quota is used up",
            weight="supporting",
            facts=(Fact.OBJECT, Fact.CONDITION),
            pattern=_FULL,
            component=_refused,
        ),
    ),
    looks=(looks.list_of("resourcequotas"),),
    tells=_tell,
    steps=_steps,
)
