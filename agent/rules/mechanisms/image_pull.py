"""A container can't start because its image can't be pulled."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.changes import trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Rule, Sign
from agent.rules.observation import Fact
from agent.rules.scene import Scene

# What the registry or the way to it said; the first that is found tells the story.
_REASONS = (
    (
        "registry_name",
        r"lookup [A-Za-z0-9.-]{1,200}(?: on [^ ]{1,60})?: ?server misbehaving|no such host|name resolution",
        "the registry's name does not resolve",
    ),
    (
        "credentials",
        r"unauthorized|authentication required|authorization failed|denied|403 Forbidden|\b401\b|no basic auth",
        "the registry refuses the credentials (or none are given)",
    ),
    ("rate_limit", r"toomanyrequests|429 Too Many|rate limit", "the registry limits the rate of pulls"),
    ("trust", r"x509:", "the registry's certificate is not trusted"),
    (
        "reference",
        r"not found|NotFound|manifest unknown|does not exist|invalid reference format|InvalidImageName",
        "there is no such image or tag",
    ),
    (
        "network",
        r"i/o timeout|connection refused|deadline exceeded|EOF|TLS handshake timeout|no route to host",
        "the registry can't be reached",
    ),
)
REASONS = tuple((name, re.compile(pattern, re.IGNORECASE), because) for name, pattern, because in _REASONS)

_FAILED = re.compile(
    r"(?:Failed to pull image|failed to pull and unpack image|Error response.{0,40}pulling)"
    r" [\"'](?P<image>[^\"' ]{1,250})[\"']"
)


def reason(text: str) -> tuple[str, str]:
    """A short name and a sentence for why the pull failed."""
    return next(((name, because) for name, pattern, because in REASONS if pattern.search(text)), ("", ""))


def _text(hypothesis: Hypothesis) -> str:
    texts = (finding.observation.text for finding in hypothesis.having("decisive"))
    return "\n".join(re.split(r"Failed to pull image|pulling image", text)[-1] for text in texts)


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    name, because = reason(_text(hypothesis))
    image = hypothesis.part("image")
    did = f"can't pull image {image}" if image else "can't pull its image"
    if name in ("registry_name", "network", "rate_limit", "trust"):
        return Account(did=did, because=because, trigger="dependency", variant=name)
    began = trigger(hypothesis.component.name, scene, "config")
    if not name and any(finding.sign == SECRET_SIGN for finding in hypothesis.findings):
        name, because = "credentials", "its pull secret does not exist"
    return Account(did=did, because=because or "the pull fails", trigger=began, variant=name)


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    namespace = steps.flag(scene)
    pods = looks.worst_pods(hypothesis.component, scene)[:1]
    return [
        *[steps.look("Read the registry's answer", f"kubectl describe pod {pod}{namespace}") for pod in pods],
        steps.history(hypothesis, scene),
        *steps.roll_back(hypothesis, scene, "the revision before ran with an image that can be pulled"),
        steps.change(
            "Correct the image reference or the pull secret",
            "new pods can't start until it is pulled",
            risk="starts a roll-out",
            undo="put the former value back",
        ),
    ]


SECRET_SIGN = "a pull secret could not be read"

IMAGE_PULL = Rule(
    name="image_pull",
    title="an image can't be pulled",
    depth=32,
    signs=(
        Sign(name="the kubelet could not pull the image", weight="decisive", facts=(Fact.EVENT,), pattern=_FAILED),
        Sign(
            name=SECRET_SIGN,
            weight="supporting",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"FailedToRetrieveImagePullSecret|Unable to retrieve some image pull secrets"),
        ),
        Sign(
            name="the container's state tells why the pull failed",
            weight="decisive",
            facts=(Fact.CONTAINER,),
            pattern=re.compile(
                r"waiting (?:ImagePullBackOff|ErrImagePull): .{0,60}pulling image"
                r" [\"'](?P<image>[^\"' ]{1,250})[\"']: .{3}"
            ),
        ),
        Sign(
            name="a container waits for its image",
            weight="supporting",
            facts=(Fact.CONTAINER,),
            pattern=re.compile(
                r"(?:Reason:\s+|waiting )(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull)"
            ),
        ),
        Sign(
            name="the pod list shows a failed pull",
            weight="supporting",
            facts=(Fact.POD,),
            pattern=re.compile(r"\b(?:Init:)?(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull)\b"),
        ),
        Sign(
            name="the event list shows a failed pull",
            weight="supporting",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"\b(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull)\b"),
        ),
    ),
    looks=(looks.describe_pods, looks.describe_revisions),
    tells=_tell,
    steps=_steps,
)
