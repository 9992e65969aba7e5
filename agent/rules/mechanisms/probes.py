"""A probe fails though the program runs: it asks the wrong port, in the wrong protocol, or too soon."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.changes import trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene

_PROTOCOL = re.compile(
    r"malformed HTTP response|server gave HTTP response to HTTPS client|first record does not look like a TLS"
    r"|tls: first record|error reading server preface|rpc error.{0,80}(?:Unimplemented|unknown service grpc\.health)"
)
_FAILED = re.compile(r"(?P<probe>Liveness|Readiness|Startup) probe failed: (?P<said>.{0,300})")


def _wrong_port(observation: Observation, _match: Match, scene: Scene) -> bool:
    """A port that the container does not declare, while a probe of that kind can't get an answer there.

    Not declaring a port is no fault of itself: a sidecar may serve it.
    """
    port, declared = observation.values.get("port", ""), observation.values.get("ports", "").split()
    if not port.isdigit() or not declared or port in declared:
        return False
    kind, asked = observation.values["probe"], re.compile(rf":{port}\b")
    return any(
        failed["probe"].lower() == kind and asked.search(failed["said"])
        for failed, event in _failures(observation, scene)
        if _failing(event, failed, scene)
    )


def _too_early(observation: Observation, _match: Match, scene: Scene) -> bool:
    """A liveness probe on the right port that ends the container soon after its start, again and again, before the
    readiness probe ever passed: the program needs longer than it is given."""
    values, pod = observation.values, scene.pods.get(observation.about.name)
    if values.get("probe") != "liveness" or pod is None or pod.ready or not pod.row.number("restarts"):
        return False
    if values.get("port", "").isdigit() and values.get("ports") and values["port"] not in values["ports"].split():
        return False
    patience = _patience(observation.text)
    kinds = {failed["probe"] for failed, event in _failures(observation, scene) if _refused(failed, event, scene)}
    return (
        "Liveness" in kinds and patience is not None and patience <= SHORT_SECONDS and not _crashed(observation, scene)
    )


def _refused(failed: Match, event: Observation, scene: Scene) -> bool:
    """Nothing answers yet; a wrong answer is another fault."""
    return _failing(event, failed, scene) and _NO_ANSWER.search(failed["said"]) is not None


def _crashed(observation: Observation, scene: Scene) -> bool:
    """Ended by itself: killed containers end by a signal."""
    states = (state for state in scene.of(Fact.CONTAINER) if state.about == observation.about)
    return any(state.values.get("exit_code") in ("1", "2", "3") for state in states)


def _patience(text: str) -> float | None:
    """Seconds from a container's start to its end by this probe, from the settings that `describe` shows."""
    told = {match["name"].lower(): float(match["value"]) for match in _TIMING.finditer(text)}
    if not {"delay", "period"} <= told.keys():
        return None
    return told["delay"] + told["period"] * told.get("failure", told.get("failures", 3.0))


_TIMING = re.compile(r"#?(?P<name>delay|period|timeout|failures?)=(?P<value>\d{1,6})s?")
_NO_ANSWER = re.compile(r"connect|timeout|deadline|refused")
SHORT_SECONDS = 15.0


def _failures(observation: Observation, scene: Scene) -> list[tuple[Match, Observation]]:
    owner = scene.owner(observation.about)
    events = (event for event in scene.of(Fact.EVENT) if scene.owner(event.about) == owner)
    return [(match, event) for event in events if (match := _FAILED.search(event.text))]


def _ready(observation: Observation, _match: Match, scene: Scene) -> bool:
    pod = scene.pods.get(observation.about.name)
    return pod is not None and pod.healthy


def _failing(observation: Observation, match: Match, scene: Scene) -> bool:
    """A failure during start-up that was overcome is not one."""
    return not _ready(observation, match, scene)


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    kind = (hypothesis.part("probe") or "health").lower()
    port, declared = hypothesis.part("port"), hypothesis.part("ports")
    began = trigger(hypothesis.component.name, scene, "config")
    did = "is restarted" if kind == "liveness" else "is not ready"
    signs = {finding.sign for finding in hypothesis.findings}
    if PROTOCOL_SIGN in signs:
        because = f"its {kind} probe speaks another protocol than the port"
        return Account(did=did, because=because, trigger=began, variant=f"{kind}_protocol")
    if PORT_SIGN in signs:
        because = f"its {kind} probe asks port {port}, but the container declares {declared}"
        return Account(did=did, because=because, trigger=began, variant=f"{kind}_port")
    if EARLY_SIGN in signs:
        because = "its liveness probe gives up before the program has started"
        return Account(did="is restarted", because=because, trigger=began, variant="liveness_timing")
    return Account(did=did, because=f"its {kind} probe fails", trigger="unknown")


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    pods = looks.worst_pods(hypothesis.component, scene)[:1]
    return [
        *[steps.look("Compare probe and ports", f"kubectl describe pod {pod}{steps.flag(scene)}") for pod in pods],
        steps.history(hypothesis, scene),
        *steps.roll_back(hypothesis, scene, "if port or probe changed with the last roll-out"),
        steps.change(
            "Set the probe to the port the program listens on",
            "pods stay out of service until the probe passes",
            risk="starts a roll-out",
            undo="put the former probe back",
        ),
    ]


PORT_SIGN = "the probe asks a port the container does not declare"
EARLY_SIGN = "the liveness probe kills it before it answers"
PROTOCOL_SIGN = "the probe speaks another protocol than the port"

PROBES = Rule(
    name="probe_failure",
    title="a probe fails",
    depth=16,
    signs=(
        Sign(name=PORT_SIGN, weight="decisive", facts=(Fact.PROBE,), holds=_wrong_port),
        Sign(
            name=PROTOCOL_SIGN,
            weight="decisive",
            facts=(Fact.EVENT,),
            pattern=re.compile(rf"{_FAILED.pattern.replace('.{0,300}', '.{0,100}?')}(?:{_PROTOCOL.pattern})"),
            holds=_failing,
        ),
        Sign(name=EARLY_SIGN, weight="decisive", facts=(Fact.PROBE,), holds=_too_early),
        Sign(
            name="the kubelet restarts it because its probe fails",
            weight="decisive",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"Killing\b.{0,300}failed (?P<probe>liveness|startup) probe"),
            holds=_failing,
        ),
        Sign(name="a probe fails", weight="supporting", facts=(Fact.EVENT,), pattern=_FAILED, holds=_failing),
        Sign(
            name="the pod is ready again",
            weight="contradicting",
            facts=(Fact.EVENT,),
            pattern=_FAILED,
            holds=_ready,
        ),
    ),
    looks=(looks.describe_pods, looks.describe_revisions, looks.logs),
    tells=_tell,
    steps=_steps,
)
