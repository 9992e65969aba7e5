"""A pod names a config map, secret, key or service account that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.report import NextStep
from agent.rules.changes import trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign, Want
from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene

_MISSING = re.compile(
    r"(?P<what>configmaps?|secrets?|serviceaccount|persistentvolumeclaim|priorityclass)"
    r" \\?[\"'](?P<missing>[A-Za-z0-9./-]{1,253}?)\\?[\"']"
    r" not found|references non-existent (?P<part>config|secret) key: (?P<absent>[^ ]{1,200})"
    r"|couldn't find key (?P<key>[^ ]{1,200}) in (?P<kind>ConfigMap|Secret) (?P<object>[a-z0-9./-]{1,253})",
    re.IGNORECASE,
)


def _stands(observation: Observation, _match: Match, scene: Scene) -> bool:
    """A reference that was missing for a moment, as when all is created at once, is overcome: the pod is there."""
    if observation.about.kind == "replicaset":
        return not any(pod.startswith(f"{observation.about.name}-") for pod in scene.pods)
    return not scene.overcome(observation)


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    if key := hypothesis.part("key"):
        because = f"{hypothesis.part('kind')} {hypothesis.part('object')} has no key {key}"
    elif absent := hypothesis.part("absent"):
        because = f"the {hypothesis.part('part')} it mounts has no key {absent}"
    elif missing := hypothesis.part("missing"):
        because = f"{hypothesis.part('what').lower().rstrip('s')} {missing} does not exist"
    else:
        because = "its configuration names something that does not exist"
    began = trigger(hypothesis.component.name, scene, "config")
    variant = (hypothesis.part("what") or hypothesis.part("kind") or hypothesis.part("part")).lower().rstrip("s")
    return Account(did="can't start", because=because, trigger=began, variant=variant)


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    what = hypothesis.part("what").lower().rstrip("s") or "configmap"
    return [
        steps.look("See what there is", f"kubectl get {what}s{steps.flag(scene)}"),
        steps.history(hypothesis, scene),
        *steps.roll_back(hypothesis, scene, "if the reference came with the last roll-out"),
        steps.change(
            "Create what is missing, or correct the reference",
            "the pod can't start without it",
            risk="starts the pods with the values you give",
            undo="delete the object again, or put the former reference back",
        ),
    ]


def _look_at_claims(hypothesis: Hypothesis, scene: Scene) -> Iterator[Want]:
    """A claim that is missing may have been refused."""
    if hypothesis.part("what").lower().startswith("persistentvolumeclaim"):
        yield looks.get("persistentvolumeclaims", scene)
        yield looks.get("resourcequotas", scene)
        name = hypothesis.component.name
        yield looks.yaml_of(looks.workload_kind(name, scene), name, scene)


CONFIG_REFERENCE = Rule(
    name="missing_reference",
    title="a config map, secret or service account is missing",
    depth=34,
    signs=(
        Sign(
            name="an object the pod names does not exist",
            weight="decisive",
            facts=(Fact.EVENT,),
            pattern=_MISSING,
            holds=_stands,
        ),
        Sign(
            name="a container can't be configured",
            weight="supporting",
            facts=(Fact.CONTAINER,),
            pattern=re.compile(r"(?:Reason:\s+|waiting )CreateContainerConfigError"),
        ),
        Sign(
            name="the pod list shows a configuration error",
            weight="supporting",
            facts=(Fact.POD,),
            pattern=re.compile(r"\b(?:Init:)?CreateContainerConfigError\b"),
        ),
    ),
    looks=(looks.describe_pods, _look_at_claims, looks.describe_revisions),
    tells=_tell,
    steps=_steps,
)
