"""Records, admissions and reports as plain JSON data, the same for the API and the command line."""

from __future__ import annotations

from typing import Any

from worker.front import Explained
from worker.record import Admission, Record
from worker.triage import told


def summary(record: Record) -> dict[str, Any]:
    """What a list shows of a record."""
    return {
        "key": record.key,
        "source": record.source,
        "state": record.state.value,
        "reason": record.reason,
        "title": record.alert.title,
        "severity": record.alert.severity.value,
        "outcome": record.outcome,
        "confidence": record.confidence,
        "investigation": record.investigation,
        "lead": record.lead,
        "generation": record.generation,
        "url": record.url,
        "updated_at": record.updated_at.isoformat(),
    }


def details(record: Record) -> dict[str, Any]:
    """The whole record."""
    return {**record.model_dump(mode="json"), "url": record.url, "seconds": record.seconds}


def explanation(key: str, explained: Explained) -> dict[str, Any]:
    """Every decision on an alert with its inputs."""
    record = explained.record
    return {
        "key": key,
        "state": record.state.value if record else None,
        "reason": record.reason if record else "",
        "lead": record.lead if record else "",
        "then": explained.then,
        "now": {"rulings": told(explained.now.rulings)},
    }


def outcome(admission: Admission) -> dict[str, Any]:
    return {
        "key": admission.key,
        "verdict": admission.verdict,
        "state": admission.state.value,
        "reason": admission.reason,
        "generation": admission.generation,
        "queued": admission.queued,
    }
