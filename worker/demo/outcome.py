"""What the demonstration came to: one row an incident, how many comments are missing and how many are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from worker.demo.world import Ticket
from worker.record import Record

COLUMNS = ("alert", "source", "state", "outcome", "confidence", "seconds", "tokens", "comments", "link")
MAX_TITLE_CHARS = 46


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`due` and `comments` are what the ticket must have and what its own API says it has."""

    key: str
    title: str
    source: str
    state: str
    outcome: str
    confidence: str
    due: int
    comments: int
    seconds: float
    tokens: int
    url: str

    @property
    def settled(self) -> bool:
        return self.state in ("written", "skipped", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    rows: Sequence[Row]

    @property
    def lost(self) -> int:
        return sum(max(0, row.due - row.comments) for row in self.rows)

    @property
    def doubled(self) -> int:
        return sum(max(0, row.comments - row.due) for row in self.rows)

    @property
    def holds(self) -> bool:
        """Every incident is settled and has exactly what is due; nothing at all would be no demonstration."""
        return bool(self.rows) and not self.lost and not self.doubled and all(row.settled for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        incidents = [{k: v for k, v in asdict(row).items() if k != "title"} for row in self.rows]
        return {"incidents": incidents, "lost": self.lost, "doubled": self.doubled}

    def table(self) -> str:
        """Columns as wide as their widest cell."""
        cells = [COLUMNS, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[index]) for line in cells) for index in range(len(COLUMNS))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells
        )


def row(ticket: Ticket, record: Record | None, comments: int) -> Row:
    """A ticket that the daemon never saw has the state `unseen`."""
    if record is None:
        return Row(
            key=f"{ticket.source}:{ticket.native}",
            title=ticket.title,
            source=ticket.source,
            state="unseen",
            outcome="",
            confidence="",
            due=ticket.due,
            comments=comments,
            seconds=0.0,
            tokens=0,
            url="",
        )
    return Row(
        key=record.key,
        title=ticket.title,
        source=ticket.source,
        state=record.state.value,
        outcome=record.outcome or record.reason,
        confidence=record.confidence,
        due=ticket.due,
        comments=comments,
        seconds=round(record.seconds, 2),
        tokens=record.tokens,
        url=record.url,
    )


def _cells(row: Row) -> tuple[str, ...]:
    title = row.title if len(row.title) <= MAX_TITLE_CHARS else f"{row.title[: MAX_TITLE_CHARS - 1]}…"
    counted = f"{row.comments} of {row.due}"
    return (
        title,
        row.source,
        row.state,
        row.outcome or "-",
        row.confidence or "-",
        f"{row.seconds:.1f}",
        str(row.tokens),
        counted,
        row.url or "-",
    )
