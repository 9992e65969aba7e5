"""A container ends again and again. What its last words say is often the cause itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.report import NextStep, Trigger
from agent.rules.changes import trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Looks, Match, Places, Rule, Sign, owner
from agent.rules.mechanisms.wrong_address import look_at_settings
from agent.rules.observation import NOTHING, Fact, Observation, Thing
from agent.rules.scene import Scene
from agent.rules.settings import database_of


def _crashed(observation: Observation, _match: Match, scene: Scene) -> bool:
    values = observation.values
    if _well(observation, scene) or values.get("state") != "Terminated":
        return False
    if values.get("reason") in (None, "Completed", "OOMKilled"):
        return False
    return values.get("exit_code") not in (None, "0")


def _well(observation: Observation, scene: Scene) -> bool:
    pod = scene.pods.get(observation.about.name)
    return pod is not None and pod.healthy


def _backs_off(observation: Observation, _match: Match, scene: Scene) -> bool:
    return not _well(observation, scene)


def _restarting(observation: Observation, _match: Match, scene: Scene) -> bool:
    return scene.pods[observation.about.name].restarted if observation.about.name in scene.pods else False


def _rising(observation: Observation, _match: Match, _scene: Scene) -> bool:
    first, last = observation.number("first"), observation.number("last")
    return observation.values.get("measure") == "restarts" and None not in (first, last) and (last or 0) > (first or 0)


def _flat(observation: Observation, _match: Match, _scene: Scene) -> bool:
    first, last = observation.number("first"), observation.number("last")
    return observation.values.get("measure") == "restarts" and first is not None and first == last


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    code = hypothesis.part("exit_code")
    because = f"its container exits with code {code}" if code else "its container keeps ending"
    began = trigger(hypothesis.component.name, scene, "unknown")
    return Account(did="is crash-looping", because=because, trigger=began)


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    namespace = steps.flag(scene)
    pods = looks.worst_pods(hypothesis.component, scene)[:1]
    return [
        *[steps.look("Read its last words", f"kubectl logs {pod}{namespace} --previous --tail=100") for pod in pods],
        steps.history(hypothesis, scene),
        *steps.roll_back(hypothesis, scene, "if it began with the last roll-out"),
    ]


CRASH_LOOP = Rule(
    name="crash_loop",
    title="a container keeps crashing",
    depth=12,
    signs=(
        Sign(
            name="the kubelet backs off restarting it",
            weight="decisive",
            facts=(Fact.CONTAINER,),
            pattern=re.compile(r"(?:Reason:\s+|waiting )CrashLoopBackOff"),
            holds=_backs_off,
        ),
        Sign(name="its container ended with an error", weight="supporting", facts=(Fact.CONTAINER,), holds=_crashed),
        Sign(
            name="the event list shows a back-off",
            weight="supporting",
            facts=(Fact.EVENT,),
            pattern=re.compile(r"Back-off restarting failed container"),
            holds=_backs_off,
        ),
        Sign(
            name="the pod list shows a crash loop",
            weight="supporting",
            facts=(Fact.POD,),
            pattern=re.compile(r"\b(?:Init:)?CrashLoopBackOff\b|\bInit:Error\b|\bError\b"),
            holds=_backs_off,
        ),
        Sign(name="it restarted lately", weight="supporting", facts=(Fact.POD,), holds=_restarting),
        Sign(name="its restarts are rising", weight="supporting", facts=(Fact.SERIES,), holds=_rising),
        Sign(name="its restarts are not rising", weight="contradicting", facts=(Fact.SERIES,), holds=_flat),
    ),
    looks=(looks.describe_pods, looks.previous_logs, looks.logs, looks.describe_revisions),
    tells=_tell,
    steps=_steps,
)


@dataclass(frozen=True, slots=True)
class _LastWords:
    """A cause that a program states itself when it fails."""

    name: str
    title: str
    did: str
    because: str
    trigger: Trigger
    pattern: re.Pattern[str]
    sign: str
    component: Places = owner
    looks: tuple[Looks, ...] = ()

    def rule(self) -> Rule:
        def tell(hypothesis: Hypothesis, scene: Scene) -> Account:
            began = trigger(hypothesis.component.name, scene, self.trigger)
            because = self.because.format(**{key: hypothesis.part(key) for key in ("port", "user", "path")})
            because = " ".join(because.split()).removesuffix(" on")  # where the message names no path
            return Account(did=self.did, because=because, trigger=began)

        return Rule(
            name=self.name,
            title=self.title,
            depth=28,
            signs=(
                Sign(
                    name=self.sign,
                    weight="decisive",
                    facts=(Fact.LOG,),
                    pattern=self.pattern,
                    component=self.component,
                ),
            ),
            looks=(*self.looks, looks.previous_logs, looks.logs, looks.describe_revisions),
            tells=tell,
            steps=_steps,
        )


_FROM = re.compile(r"'@'(?P<address>\d{1,3}(?:\.\d{1,3}){3})'|\bhost=(?P<host>\d{1,3}(?:\.\d{1,3}){3})")


def _who_logs_in(observation: Observation, _match: Match, scene: Scene) -> Thing:
    """A server's own log names the client by its address; a pod that is gone is nobody."""
    found = _FROM.search(observation.text)
    address = (found["address"] or found["host"]) if found else ""
    client = scene.host(address) if address else NOTHING
    writer = scene.owner(observation.about)
    return writer if not address or client == writer else client if client.kind == "workload" else NOTHING


CREDENTIALS = _LastWords(
    name="invalid_credentials",
    title="a login is refused",
    did="can't log in to a service it needs",
    because="its credentials are refused",
    trigger="config",
    pattern=re.compile(
        r"password authentication failed for user|Access denied for user|Authentication failed|WRONGPASS|NOAUTH "
        r"|invalid username-password pair|Login failed for user|ACCESS_REFUSED|SASL authentication failed",
        re.IGNORECASE,
    ),
    sign="a server refused the credentials",
    component=_who_logs_in,
).rule()

PORT_CONFLICT = _LastWords(
    name="port_conflict",
    title="a port is taken",
    did="can't listen on its port",
    because="port {port} is already in use",
    trigger="config",
    pattern=re.compile(
        r"address already in use|EADDRINUSE|Port (?P<port>\d{1,5}) (?:was|is) already in use"
        r"|BindException|bind\(\) to .{1,80} failed|Only one usage of each socket address",
        re.IGNORECASE,
    ),
    sign="the port could not be bound",
).rule()

PERMISSIONS = _LastWords(
    name="permission_denied",
    title="a file may not be read or written",
    did="can't use its files",
    because="permission is denied on {path}",
    trigger="config",
    pattern=re.compile(
        r"[\"'(]?(?P<path>/[A-Za-z0-9._/-]{1,200})?[\"')]?:? [Pp]ermission denied|\bEACCES\b|AccessDeniedException: /"
        r"|Operation not permitted|Read-only file system"
    ),
    sign="the file system refused it",
).rule()

READ_ONLY = _LastWords(
    name="database_read_only",
    title="a database takes no writes",
    did="takes no writes",
    because="it is read-only",
    trigger="config",
    component=lambda observation, _match, scene: database_of(scene.owner(observation.about), scene),
    looks=(look_at_settings,),
    pattern=re.compile(
        r"--(?:super-)?read-only option|in a read-only transaction|READONLY You can't write against a read only"
        r"|database is read.only|not primary|NotWritablePrimary",
        re.IGNORECASE,
    ),
    sign="the database refused a write",
).rule()
