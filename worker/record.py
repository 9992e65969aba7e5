"""One alert's life as the daemon knows it: states, the record, and what admission and claims answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agent.alert import Alert, Severity
from sources.port import Receipt


class State(StrEnum):
    """Where an alert is. `queued` to `write_failed` are owed work; the rest are settled. A `grouped` alert waits for
    the report of another, its lead."""

    QUEUED = "queued"
    GROUPED = "grouped"
    INVESTIGATING = "investigating"
    AWAITING_APPROVAL = "awaiting_approval"
    REPORTED = "reported"
    WRITE_FAILED = "write_failed"
    WRITTEN = "written"
    SKIPPED = "skipped"
    FAILED = "failed"

    @property
    def settled(self) -> bool:
        return self in (State.WRITTEN, State.SKIPPED, State.FAILED)


Via = Literal["poll", "webhook", "sweep", "requeue", "ask"]
Verdict = Literal["new", "known", "updated", "reopened", "requeued", "joined", "refused", "undecided"]
Fate = Literal["pending", "done", "nothing", "failed_again"]
Claimed = Literal["taken", "parked", "gone", "stale", "settled", "held"]

CRITICAL, DEFAULT, SWEEP = "rootcaused.critical", "rootcaused.default", "rootcaused.sweep"
WRITEBACK, POLL = "rootcaused.writeback", "rootcaused.poll"


def queue_for(alert: Alert, via: Via) -> str:
    """A page must not wait behind a backlog, so severity and origin choose the queue."""
    if via == "sweep":
        return SWEEP
    return CRITICAL if alert.severity is Severity.CRITICAL else DEFAULT


class Record(BaseModel):
    """What Redis holds of one alert. Times are aware and UTC; `seconds` is from first seen to settled.

    `lead` is the key of the alert whose report this one waits for and points to, `follows` says how they belong
    together; `group_size` counts a lead and its followers; `why` is the JSON of the decision at admission.
    `unpublished`: no message for it was ever sent. `told` stands for the line that a follower's ticket has."""

    model_config = ConfigDict(frozen=True)

    key: str
    source: str
    state: State
    reason: str = ""
    generation: int = 1
    attempts: int = 0
    write_attempts: int = 0
    alert: Alert
    via: Via = "poll"
    queue: str = DEFAULT
    investigation: str = ""
    previous: str = ""
    instructions: str = ""
    outcome: str = ""
    confidence: str = ""
    settle: State = State.WRITTEN
    lead: str = ""
    follows: str = ""
    promoted: bool = False
    unpublished: bool = False
    told: str = ""
    group_size: int = 1
    why: str = ""
    receipt: Receipt | None = None
    first_seen_at: datetime
    started_at: datetime | None = None
    updated_at: datetime
    tokens: int = 0
    cost_usd: float = 0.0

    @property
    def url(self) -> str:
        return (self.receipt.url if self.receipt else "") or self.alert.url

    @property
    def seconds(self) -> float:
        """From the start of the investigation (or first sight) to the last change of state."""
        return (self.updated_at - (self.started_at or self.first_seen_at)).total_seconds()

    @classmethod
    def from_hash(cls, fields: dict[str, str]) -> Record:
        """Raises `pydantic.ValidationError` when the hash was written by something else."""
        receipt = fields.get("receipt")
        return cls(
            key=fields["key"],
            source=fields["source"],
            state=State(fields["state"]),
            reason=fields.get("reason", ""),
            generation=int(fields["generation"]),
            attempts=int(fields["attempts"]),
            write_attempts=int(fields["write_attempts"]),
            alert=Alert.model_validate_json(fields["alert"]),
            via=fields.get("via", "poll"),
            queue=fields["queue"],
            investigation=fields["investigation"],
            previous=fields.get("previous", ""),
            instructions=fields.get("instructions", ""),
            outcome=fields.get("outcome", ""),
            confidence=fields.get("confidence", ""),
            settle=State(fields.get("settle") or State.WRITTEN),
            lead=fields.get("lead", ""),
            follows=fields.get("follows", ""),
            promoted=fields.get("promoted") == "1",
            told=fields.get("told", ""),
            unpublished=fields.get("unpublished") == "1",
            group_size=int(fields.get("group_size", 1)),
            why=fields.get("why", ""),
            receipt=Receipt(**_pairs(receipt)) if receipt else None,
            first_seen_at=_at(fields["first_seen_ms"]),
            started_at=_at(fields["started_ms"]) if fields.get("started_ms", "0") != "0" else None,
            updated_at=_at(fields["updated_ms"]),
            tokens=int(fields.get("tokens", 0)),
            cost_usd=float(fields.get("cost_usd", 0)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What became of an alert that was seen. `queued` says whether an investigation will follow from this sight; one
    that is `held` is published by the scheduler when its time comes. A follower is `late` when its lead is done."""

    key: str
    verdict: Verdict
    state: State
    reason: str
    generation: int
    queue: str
    held: bool = False
    late: bool = False

    @property
    def queued(self) -> bool:
        return self.verdict in ("new", "reopened", "requeued") and self.state is State.QUEUED


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to work on one generation of one alert until the lease ends; `fence` proves it with each write."""

    record: Record
    fence: str
    parked: bool = False

    @property
    def key(self) -> str:
        return self.record.key


def fate(lead: Record | None) -> Fate:
    """What became of a lead. `nothing`: somebody else must take its place. A group is given a second lead, and when
    that one fails as well, no third."""
    if lead is None or lead.state is State.SKIPPED or lead.lead:
        return "nothing"
    if lead.state is State.WRITTEN:
        return "done"
    if lead.state is State.FAILED:
        return "failed_again" if lead.promoted else "nothing"
    return "pending"


class LeaseLost(Exception):
    """Raised when a write is refused because another worker, or a newer generation, holds the alert: leave at once."""


def _at(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def _pairs(text: str) -> dict[str, str]:
    import json

    return dict(json.loads(text))
