"""The report: one typed object, stored as JSON, rendered by `sources/render` for each ticket system.

`Draft` is what a model hands in through the `report` tool (or what is made of its prose);
`Report` is what code makes of it after checking every claim against the recorded results.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

SCHEMA = "rca/1"
MAX_HEADLINE_CHARS = 140
MAX_QUOTE_CHARS = 300


class Outcome(StrEnum):
    """Set by code, never by the model."""

    CONFIRMED = "confirmed"
    LIKELY = "likely"
    INCONCLUSIVE = "inconclusive"
    NOT_AN_ISSUE = "not_an_issue"
    DUPLICATE_OF = "duplicate_of"
    RESOLVED_BEFORE_START = "resolved_before_start"


class Stop(StrEnum):
    """Why the run ended."""

    ANSWERED = "answered"
    STEP_LIMIT = "step_limit"
    TOKEN_LIMIT = "token_limit"
    TIME_LIMIT = "time_limit"
    COST_LIMIT = "cost_limit"
    MODEL_FAILED = "model_failed"


Level = Literal["high", "medium", "low"]
Weight = Literal["decisive", "supporting", "context", "contradicting"]
EvidenceKind = Literal["log", "metric", "event", "object", "change", "trace", "doc"]
Trigger = Literal["change", "load", "dependency", "capacity", "config", "code", "external", "unknown"]


def _text(value: Any) -> Any:
    """Models send null, numbers and lists where a string is due; none of these may cost the report."""
    if value is None:
        return ""
    return "; ".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else str(value)


Text = Annotated[str, BeforeValidator(_text)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class RootCause(_Part):
    component: Text = ""
    mechanism: Text = ""
    category: Text = ""
    trigger: Trigger = "unknown"
    onset_at: datetime | None = None
    evidence: tuple[str, ...] = ()


class Link(_Part):
    """One step of the causal chain."""

    source: Text = Field(default="", alias="from")
    target: Text = Field(default="", alias="to")
    relation: Text = ""
    evidence: tuple[str, ...] = ()
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Hypothesis(_Part):
    hypothesis: Text
    why: Text = ""
    evidence: tuple[str, ...] = ()


class NotChecked(_Part):
    what: Text
    reason: Text = "no_access"


class Moment(_Part):
    at: datetime | None = None
    what: Text
    evidence: tuple[str, ...] = ()


class Change(_Part):
    at: datetime | None = None
    what: Text
    url: Text = ""
    relation: Literal["suspected", "unrelated", "unknown"] = "unknown"


class NextStep(_Part):
    title: Text
    why: Text = ""
    command: Text = ""
    kind: Literal["diagnostic", "mitigation", "fix"] = "diagnostic"
    mutating: bool = False
    risk: Text = ""
    undo: Text = ""
    precondition_checked: bool = False


class Impact(_Part):
    symptom_confirmed: bool = False
    affected: Text = ""
    user_facing: Literal["yes", "no", "unknown"] = "unknown"
    scope: Text = ""
    since: datetime | None = None
    until: datetime | None = None


class Citation(_Part):
    """Evidence as the model cites it: the call's reference (`T3`) and a verbatim quote from its result."""

    id: str
    call: Text = ""
    kind: EvidenceKind = "object"
    quote: Text = ""
    weight: Weight = "supporting"


class Draft(_Part):
    """What the model claims. `finding` says which kind of answer it is; the outcome is computed from the evidence."""

    finding: Literal["root_cause", "not_an_issue", "inconclusive"] = "inconclusive"
    headline: Text = ""
    body: Text = ""
    impact: Impact = Impact()
    root_cause: RootCause | None = None
    causal_chain: tuple[Link, ...] = ()
    evidence: tuple[Citation, ...] = ()
    ruled_out: tuple[Hypothesis, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    timeline: tuple[Moment, ...] = ()
    recent_changes: tuple[Change, ...] = ()
    next_steps: tuple[NextStep, ...] = ()


class Evidence(_Part):
    """A citation after the check: `verified` means the quote stands in the recorded result."""

    id: str
    call: str
    kind: EvidenceKind
    tool: str = ""
    query: str = ""
    url: str = ""
    captured_at: datetime | None = None
    quote: str = ""
    result_sha256: str = ""
    weight: Weight = "supporting"
    verified: bool = False


class AlertSummary(_Part):
    key: str
    source: str
    id: str
    url: str = ""
    fingerprint: str = ""
    title: str
    severity: str
    fired_at: datetime | None = None
    status_at_write: str = ""


class Run(_Part):
    investigation: str
    generation: int = 1
    attempt: int = 1
    started_at: datetime
    duration_s: float = 0.0
    model: str = ""
    steps: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    mode: Literal["rules", "tools", "code", "mixed"] = "tools"


class Confidence(_Part):
    level: Level
    basis: str = ""
    capped_by: str = ""


class Related(_Part):
    kind: Literal["prior_incident", "correlated_alert", "runbook"]
    id: str
    url: str = ""
    why: str = ""


class Checks(_Part):
    claims_uncited: int = 0
    quotes_failed: int = 0
    times_out_of_window: int = 0
    secrets_redacted: int = 0


class Report(_Part):
    """Checked, final, stored before it is posted."""

    schema_version: str = SCHEMA
    alert: AlertSummary
    run: Run
    outcome: Outcome
    confidence: Confidence
    headline: str
    body: str = ""
    impact: Impact = Impact()
    root_cause: RootCause | None = None
    causal_chain: tuple[Link, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    ruled_out: tuple[Hypothesis, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    timeline: tuple[Moment, ...] = ()
    recent_changes: tuple[Change, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    related: tuple[Related, ...] = ()
    checks: Checks = Checks()
    sources_failed: tuple[str, ...] = ()
    stop: Stop = Stop.ANSWERED
