"""The report's draft from a verdict: every claim with its evidence, and what could not be looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from agent.report import (
    MAX_HEADLINE_CHARS,
    Change,
    Draft,
    Impact,
    Link,
    Moment,
    NextStep,
    NotChecked,
    RootCause,
)
from agent.report import (
    Hypothesis as RuledOut,
)
from agent.rules.changes import Changed, changes
from agent.rules.evidence import Evidence, telling
from agent.rules.mechanisms import steps
from agent.rules.mechanisms.port import Finding as Seen
from agent.rules.mechanisms.port import Hypothesis, category
from agent.rules.onset import onset
from agent.rules.pod import Pod
from agent.rules.scene import Scene
from agent.rules.scoring import Finding, Scored, Verdict
from agent.rules.toolbox import KUBERNETES, LOG_STORE, METRICS, Act, Toolbox
from agent.rules.transcript import Reading

Relation = Literal["suspected", "unrelated", "unknown"]
NO_MODEL = "Rules analysis: no language model was used."
MAX_DECISIVE = 2  # of one hypothesis
MAX_SUPPORTING = 2
MAX_RULED_OUT = 3
MAX_MOMENTS = 8
MAX_CHANGES = 6

_REASONS = (
    ("timeout", re.compile(r"timed?[ -]?out|deadline", re.IGNORECASE)),
    ("no_data", re.compile(r"not ?found|\b404\b|no such|bad ?request|\b400\b|parse error|no log", re.IGNORECASE)),
)


def write_draft(scene: Scene, verdict: Verdict, toolbox: Toolbox, acts: Mapping[str, Act]) -> Draft:
    match verdict.finding, verdict.best:
        case Finding.ROOT_CAUSE, Scored() as best:
            return _root_cause(scene, verdict, best, toolbox, acts)
        case _:
            return _no_cause(scene, verdict, toolbox, acts)


def _root_cause(scene: Scene, verdict: Verdict, best: Scored, toolbox: Toolbox, acts: Mapping[str, Act]) -> Draft:
    evidence = Evidence()
    hypothesis = best.hypothesis
    account = hypothesis.mechanism.account(hypothesis, scene)
    began = onset(scene, verdict, best, account.trigger)
    for_it = evidence.of([*_proof(hypothesis), *telling(hypothesis, "supporting", MAX_SUPPORTING)])
    against = evidence.of(telling(hypothesis, "contradicting", 2))
    impact = _impact(scene, verdict, evidence)
    changed = _changes(scene, hypothesis.component.name, began, evidence)
    chain = tuple(_chain(scene, verdict, best, evidence))
    component = hypothesis.component.name
    mechanism = f"{component} {account.did} because {account.because}"
    return Draft(
        finding="root_cause",
        headline=_headline(mechanism, began),
        body=_body(scene, verdict, f"{mechanism}.", against),
        impact=impact,
        root_cause=RootCause(
            component=component,
            mechanism=mechanism,
            category=category(hypothesis, account),
            trigger=account.trigger,
            onset_at=began,
            evidence=for_it,
        ),
        causal_chain=chain,
        timeline=_timeline(scene, verdict, evidence),
        ruled_out=_ruled_out(verdict, scene, evidence),
        not_checked=_not_checked(scene, toolbox, acts),
        recent_changes=changed,
        next_steps=_ordered(hypothesis.mechanism.next_steps(hypothesis, scene)),
        evidence=evidence.all,
    )


def _proof(hypothesis: Hypothesis) -> list[Seen]:
    return telling(hypothesis, "decisive", MAX_DECISIVE)


def _headline(text: str, since: datetime | None) -> str:
    """The time goes first if both do not fit: what and why matter more."""
    tail = f", since {since:%Y-%m-%d %H:%M} UTC" if since else ""
    text = " ".join(text.split())
    if len(text) + len(tail) <= MAX_HEADLINE_CHARS:
        return text + tail
    return text if len(text) <= MAX_HEADLINE_CHARS else f"{text[: MAX_HEADLINE_CHARS - 1].rstrip()}…"


def _body(scene: Scene, verdict: Verdict, first: str, against: tuple[str, ...] = ()) -> str:
    parts = [first]
    for scored in verdict.explained[:3]:
        account = scored.hypothesis.mechanism.account(scored.hypothesis, scene)
        parts.append(f"It explains that {scored.hypothesis.component.name} {account.did}: {account.because}.")
    if against:
        parts.append(f"Against it speaks {', '.join(against)}.")
    if verdict.symptom.now is False and verdict.symptom.ever:
        parts.append("The alert's own condition no longer holds.")
    for scored in _beside(verdict):
        account = scored.hypothesis.mechanism.account(scored.hypothesis, scene)
        parts.append(f"Beside it, {scored.hypothesis.component.name} {account.did}: {account.because}.")
    return "\n\n".join([" ".join(parts), NO_MODEL])


def _beside(verdict: Verdict) -> list[Scored]:
    """What else is wrong: of each component the deepest cause."""
    decisive = sorted((s for s in verdict.others if s.decisive), key=lambda s: s.hypothesis.mechanism.depth)
    return list({scored.hypothesis.component: scored for scored in decisive}.values())[:2]


def _impact(scene: Scene, verdict: Verdict, evidence: Evidence) -> Impact:
    """Confirmed only by what a result shows: the alert's metric, or the alert's own pods."""
    told = verdict.symptom
    for series in told.seen[:1]:
        evidence.whole(series, "supporting" if told.ever else "context")
    unwell = _unwell(scene)
    for pod in unwell[:1]:
        evidence.whole(pod.row, "supporting")
    focus = scene.focus.name
    pods = scene.pods_of(focus) if focus else list(scene.pods.values())
    scope = f"{len(unwell)} of {len(pods)} pods not healthy" if pods and unwell else ""
    return Impact(
        symptom_confirmed=bool(told.ever or unwell),
        affected=focus or scene.subject.namespace or scene.subject.node,
        scope=scope,
        since=scene.subject.starts_at,
    )


def _unwell(scene: Scene) -> list[Pod]:
    focus = scene.focus.name
    pods = scene.pods_of(focus) if focus else list(scene.pods.values())
    return [pod for pod in pods if not pod.healthy]


def _chain(scene: Scene, verdict: Verdict, best: Scored, evidence: Evidence) -> Iterator[Link]:
    """From the cause outwards; each link rests on what was seen of its effect."""
    before = best.hypothesis.component.name
    for scored in verdict.explained[:4]:
        hypothesis = scored.hypothesis
        seen = evidence.of([*_proof(hypothesis), *telling(hypothesis, "supporting", 1)][:1], "supporting")
        if not seen:
            continue
        account = hypothesis.mechanism.account(hypothesis, scene)
        effect = f"{hypothesis.component.name} {account.did}"
        yield Link(source=before, target=effect, relation="causes", evidence=seen)
        before = effect


def _ruled_out(verdict: Verdict, _scene: Scene, evidence: Evidence) -> tuple[RuledOut, ...]:
    """Near the alert first: that a distant workload is well is no news."""
    told: list[RuledOut] = []
    for scored in sorted(verdict.refuted, key=lambda s: -s.near):
        hypothesis = scored.hypothesis
        seen = telling(hypothesis, "contradicting", 1)
        title = f"{hypothesis.mechanism.title} ({hypothesis.component.name})"
        if ids := evidence.of(seen, "context"):
            told.append(RuledOut(hypothesis=title, why=seen[0].sign, evidence=ids))
        if len(told) == MAX_RULED_OUT:
            break
    return tuple(told)


def _changes(scene: Scene, component: str, began: datetime | None, evidence: Evidence) -> tuple[Change, ...]:
    """Those of the component are suspected; a change after the onset can't be the cause."""
    found: list[Change] = []
    for change in changes(scene)[:MAX_CHANGES]:
        late = change.at is not None and began is not None and change.at > began
        relation: Relation = "unrelated" if late else "suspected" if change.workload == component else "unknown"
        if relation == "suspected" and not any(one.relation == "suspected" for one in found):
            _cite_change(change, evidence)
        found.append(Change(at=change.at, what=f"{change.workload}: {change.what}", relation=relation))
    return tuple(found)


def _cite_change(change: Changed, evidence: Evidence) -> tuple[str, ...]:
    return tuple(filter(None, (evidence.whole(seen, "context") for seen in change.seen[:1])))


def _timeline(scene: Scene, verdict: Verdict, evidence: Evidence) -> tuple[Moment, ...]:
    """When each sign was first seen, and the changes before them; one moment a line of evidence."""
    moments: dict[tuple[str, ...], Moment] = {}
    for scored in [verdict.best, *verdict.explained] if verdict.best else []:
        name = scored.hypothesis.component.name
        for finding in [*_proof(scored.hypothesis), *telling(scored.hypothesis, "supporting", MAX_SUPPORTING)]:
            if finding.observation.began and (seen := evidence.of([finding])):
                moment = Moment(at=finding.observation.began, what=f"{name}: {finding.sign}", evidence=seen)
                moments.setdefault(seen, moment)
    for change in changes(scene)[:MAX_CHANGES]:
        if change.at is not None and (seen := _cite_change(change, evidence)):
            moments[seen] = Moment(at=change.at, what=f"{change.workload}: {change.what}", evidence=seen)
    return tuple(sorted(moments.values(), key=lambda moment: str(moment.at))[:MAX_MOMENTS])


def _ordered(found: Iterable[NextStep]) -> tuple[NextStep, ...]:
    """Read-only steps first."""
    return tuple(sorted(found, key=lambda step: step.mutating))


def _no_cause(scene: Scene, verdict: Verdict, toolbox: Toolbox, acts: Mapping[str, Act]) -> Draft:
    evidence = Evidence()
    healthy = verdict.finding is Finding.NOT_AN_ISSUE
    name = scene.focus.name or scene.subject.namespace or scene.subject.node or "the alert"
    told = verdict.symptom
    for series in told.seen[:2]:
        evidence.whole(series, "decisive" if healthy else "context")
    pods = scene.pods_of(scene.focus.name) or list(scene.pods.values())
    for pod in [pod for pod in pods if pod.healthy == healthy][:2]:
        evidence.whole(pod.row, "supporting" if healthy else "context")
    for scored in verdict.others[:2]:
        evidence.of([*_proof(scored.hypothesis), *telling(scored.hypothesis, "supporting", 2)][:2])
    if healthy:
        past = "no longer holds" if told.ever else "never held in the window"
        headline = f"{name} looks healthy: the alert's condition {past}"
    else:
        headline = f"No cause found for {name}" + ("" if _looked(scene) else ": no data source could be read")
    return Draft(
        finding="not_an_issue" if healthy else "inconclusive",
        headline=_headline(headline, None),
        body=_body(scene, verdict, _account_of_search(scene, verdict, healthy=healthy)),
        impact=Impact(symptom_confirmed=False, affected=name) if healthy else _impact(scene, verdict, evidence),
        ruled_out=_ruled_out(verdict, scene, evidence),
        not_checked=_not_checked(scene, toolbox, acts),
        recent_changes=_changes(scene, scene.focus.name, None, evidence),
        timeline=_timeline(scene, verdict, evidence),
        next_steps=() if healthy else _where_to_look(scene),
        evidence=evidence.all,
    )


def _looked(scene: Scene) -> bool:
    return any(reading.ref and reading.status in ("success", "no_data") for reading in scene.readings)


def _account_of_search(scene: Scene, verdict: Verdict, *, healthy: bool) -> str:
    read = [reading for reading in scene.readings if reading.ref and reading.status in ("success", "no_data")]
    failed = sum(reading.status == "error" for reading in scene.readings)
    searched = f"{len(read)} results were read" + (f", {failed} calls failed" if failed else "")
    if healthy:
        return f"{searched}: the alert's own metric is within its threshold, the pods are ready, nothing warns."
    weak = [scored for scored in verdict.others if not scored.decisive][:2]
    text = f"{searched}, and none of them shows a cause."
    for scored in weak:
        signs = ", ".join(dict.fromkeys(finding.sign for finding in scored.hypothesis.findings[:3]))
        text += f" Too little to conclude from: {scored.hypothesis.component.name}, {signs}."
    return text


def _where_to_look(scene: Scene) -> tuple[NextStep, ...]:
    """Where a person would go on."""
    namespace = steps.flag(scene)
    return (
        steps.look("See which pods are not well", f"kubectl get pods{namespace or ' -A'}"),
        steps.look("Read the latest events", f"kubectl get events{namespace or ' -A'} --sort-by=.lastTimestamp"),
    )


def _not_checked(scene: Scene, toolbox: Toolbox, acts: Mapping[str, Act]) -> tuple[NotChecked, ...]:
    """Calls that failed, and the kinds of source there is no tool for."""
    missing: dict[str, NotChecked] = {}
    for reading in scene.readings:
        if reading.status == "error" and reading.tool in acts:
            what = _asked(reading)
            missing.setdefault(what, NotChecked(what=what, reason=_reason(reading)))
    used = set(acts.values())
    kinds = (("Kubernetes objects", KUBERNETES), ("metrics", METRICS), ("stored logs", LOG_STORE | {Act.LOGS}))
    for title, group in kinds:
        if not toolbox.has(group) and not used & group:
            missing[title] = NotChecked(what=f"{title}: no tool for them is configured", reason="no_access")
    return tuple(missing.values())


def _asked(reading: Reading) -> str:
    words = " ".join(str(value)[:80] for value in reading.arguments.values())
    return f"{reading.tool} {words}".strip()[:200]


def _reason(reading: Reading) -> str:
    return next((name for name, pattern in _REASONS if pattern.search(reading.body[:2_000])), "no_access")
