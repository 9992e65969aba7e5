"""One piece of work for the investigator: the alert, and what is known and allowed around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agent.alert import Alert
from agent.deadline import Deadline
from agent.report import Related
from agent.runbooks import Runbook

Redact = Callable[[str], str]


def _as_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`ticket_context` is what the ticket already says (hostile text); `instructions` are the operator's;
    `prior` are earlier reports and related alerts, told to the model as hypotheses; `runbooks` those of the operator
    that fit the alert."""

    alert: Alert
    investigation: str
    started_at: datetime
    deadline: Deadline
    generation: int = 1
    attempt: int = 1
    instructions: str = ""
    ticket_context: str = ""
    prior: tuple[Related, ...] = ()
    runbooks: tuple[Runbook, ...] = ()
    redact: Redact = _as_is
