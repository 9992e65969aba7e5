"""Reports for tests: a full one, and one whose every text is hostile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from agent.report import (
    AlertSummary,
    Change,
    Confidence,
    Evidence,
    Hypothesis,
    Impact,
    Link,
    Moment,
    NextStep,
    NotChecked,
    Outcome,
    Related,
    Report,
    RootCause,
    Run,
)

NOON = datetime(2031, 2, 3, 12, 0, tzinfo=UTC)


def report(**changes: Any) -> Report:
    """A finished report on `tests.support.alerts.alert()`."""
    fields: dict[str, Any] = {
        "alert": AlertSummary(key="pd:Q1", source="pd", id="Q1", title="slow", severity="error", fired_at=NOON),
        "run": Run(
            investigation="0123456789abcdef",
            started_at=NOON,
            duration_s=38,
            model="m-1",
            steps=12,
            tool_calls=18,
            tokens_in=45_210,
            tokens_out=900,
            cost_usd=0.12,
        ),
        "outcome": Outcome.LIKELY,
        "confidence": Confidence(level="medium", basis="1 decisive, 0 contradicting", capped_by="tool errors"),
        "headline": "checkout answers 503 because its connection pool is exhausted, since 11:57 UTC",
        "body": "The pool has 5 connections.\n\n## Detail\n- **max** is `5`\n- wanted is 40\n\n```\nPoolTimeout\n```",
        "impact": Impact(symptom_confirmed=True, affected="12 % of checkouts", user_facing="yes", since=NOON),
        "root_cause": RootCause(
            component="checkout",
            mechanism="pool of 5 after release 1.4.2",
            trigger="change",
            evidence=("E1",),
            onset_at=NOON - timedelta(minutes=3),
        ),
        "causal_chain": (Link(source="release 1.4.2", target="pool of 5", relation="sets", evidence=("E1",)),),
        "evidence": (
            Evidence(
                id="E1",
                call="T3",
                kind="log",
                tool="kubernetes_logs",
                query="kubectl logs -n shop deploy/checkout",
                url="https://grafana.example.org/explore?q=1",
                quote="PoolTimeout: no connection",
                weight="decisive",
                verified=True,
                captured_at=NOON,
            ),
            Evidence(id="E2", call="T4", kind="metric", quote="pool_in_use 5", weight="supporting"),
        ),
        "ruled_out": (Hypothesis(hypothesis="node pressure", why="nodes are idle", evidence=("E2",)),),
        "not_checked": (NotChecked(what="traces", reason="no_access"),),
        "timeline": (Moment(at=NOON - timedelta(minutes=3), what="release 1.4.2", evidence=("E1",)),),
        "recent_changes": (Change(at=NOON, what="release 1.4.2", relation="suspected"),),
        "next_steps": (
            NextStep(
                title="roll back",
                command="kubectl rollout undo -n shop deploy/checkout",
                kind="mitigation",
                mutating=True,
            ),
            NextStep(title="read the pool size", command="kubectl get cm -n shop checkout -o yaml"),
        ),
        "related": (Related(kind="runbook", id="RB-1", url="https://wiki.example.org/rb1", why="names the pool"),),
    }
    return Report(**{**fields, **changes})


HOSTILE = (
    "@oncall-team @here user@host.example org/repo#12 fixes #12 closes PROJ-1 [~accountid:123] <!channel> <@U1> #1\n"
    "/lgtm\n/assign @bob\n![x](https://evil.example/p.png) <img src=https://evil.example/q.png>\n"
    "[a](javascript:alert(1)) "
    "https://evil.example/x www.evil.example \x1b]52;c;AAAA\x07 \r over \u202egnp.exe "
    "\U000e0041\U000e0042 ```\n</details> --> {code} | cell |\nrootcaused:v1:forged\n"
)


def hostile() -> Report:
    """The hostile text in every field a model or an alert can fill."""
    text = HOSTILE
    return report(
        alert=AlertSummary(key="pd:Q1", source="pd", id="Q1", title=text, severity="error", fired_at=NOON),
        headline=text,
        body=f"{text}\n```\n{text}\n```\n- {text}",
        impact=Impact(affected=text, scope=text, since=NOON),
        root_cause=RootCause(component=text, mechanism=text, category=text, evidence=("E1", text)),
        causal_chain=(Link(source=text, target=text, relation=text, evidence=(text,)),),
        evidence=(Evidence(id="E1", call="T1", kind="log", tool="t", query=text, quote=text, verified=True),),
        ruled_out=(Hypothesis(hypothesis=text, why=text),),
        not_checked=(NotChecked(what=text, reason=text),),
        timeline=(Moment(at=NOON, what=text),),
        recent_changes=(Change(what=text, url="https://evil.example/c"),),
        next_steps=(NextStep(title=text, why=text, command=text, risk=text, undo=text, mutating=True),),
        related=(Related(kind="runbook", id=text, url="https://evil.example/r", why=text),),
        sources_failed=(text,),
    )
