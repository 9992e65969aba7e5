"""The short report that is due when an alert could not be investigated: a page is never met with silence."""

from __future__ import annotations

from datetime import datetime

from agent.alert import Alert
from agent.report import AlertSummary, Confidence, NotChecked, Outcome, Report, Run, Stop
from worker.record import Record


def summary_of(alert: Alert) -> AlertSummary:
    return AlertSummary(
        key=alert.key,
        source=alert.source,
        id=alert.id,
        url=alert.url,
        fingerprint=alert.fingerprint,
        title=alert.title,
        severity=alert.severity.value,
        fired_at=alert.starts_at,
        status_at_write=alert.status.value,
    )


def failure_report(record: Record, now: datetime, reason: str) -> Report:
    started = record.started_at or now
    return Report(
        alert=summary_of(record.alert),
        run=Run(
            investigation=record.investigation,
            generation=record.generation,
            attempt=record.attempts,
            started_at=started,
            duration_s=max(0.0, (now - started).total_seconds()),
            model="none",
        ),
        outcome=Outcome.INCONCLUSIVE,
        confidence=Confidence(level="low", basis="not investigated"),
        headline=f"Could not investigate after {record.attempts - 1} attempts: {reason}"[:140],
        not_checked=(NotChecked(what="everything", reason="error"),),
        stop=Stop.MODEL_FAILED,
    )
