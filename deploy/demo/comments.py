"""What people and we wrote on a ticket, in whatever shape its system keeps a comment."""

from __future__ import annotations

from typing import Any

from deploy.demo.state import State
from deploy.demo.tickets import Ticket

Object = dict[str, Any]


class Comments:
    """Kept in the table `notes` by the ticket's id; all reads are copies."""

    def __init__(self, state: State) -> None:
        self._state = state

    def of(self, ticket: Ticket) -> list[Object]:
        found: list[Object] = self._state.read("notes").get(ticket.native, [])
        return found

    def add(self, ticket: Ticket, comment: Object) -> None:
        with self._state.changing() as data:
            data["notes"].setdefault(ticket.native, []).append(comment)

    def change(self, ticket: Ticket, comment: object, changes: Object) -> Object | None:
        """The changed comment; None when the ticket has none with that id."""
        with self._state.changing() as data:
            found = next((one for one in data["notes"].get(ticket.native, []) if one["id"] == comment), None)
            if found is None:
                return None
            found.update(changes)
            return dict(found)


def flat(body: object) -> str:
    """The text of a comment: as it is, or all texts of a document in Atlassian's format."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return " ".join(flat(one) for one in body)
    return f"{body.get('text', '')}{flat(body.get('content', []))}" if isinstance(body, dict) else ""
