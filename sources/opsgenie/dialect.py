"""Where the two APIs differ; everything else is written once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from agent.deadline import Deadline
from agent.http import Http


class Dialect(Protocol):
    """One of the two APIs. No method but `root` and `authors` reaches the network."""

    @property
    def kind(self) -> str: ...

    @property
    def alerts(self) -> str:
        """The path of the list, below `root`."""
        ...

    @property
    def size(self) -> str:
        """The name of the page size parameter."""
        ...

    @property
    def last_offset(self) -> int:
        """What offset and page size may come to together."""
        ...

    @property
    def by_id(self) -> Mapping[str, str]:
        """Parameters that say that an alert is named by its id."""
        ...

    @property
    def note_pages(self) -> Mapping[str, str]:
        """Parameters of the first page of notes."""
        ...

    @property
    def edits(self) -> bool:
        """Whether a note has an id and can be changed."""
        ...

    def http(self) -> Http: ...

    def root(self, deadline: Deadline) -> str:
        """What stands before every path."""
        ...

    def authors(self, http: Http, deadline: Deadline) -> frozenset[str]:
        """The names our own notes come back under. Raises `Permanent` when nobody can tell."""
        ...

    def note(self, content: str) -> dict[str, Any]:
        """The body that writes a note."""
        ...

    def link(self, native: str) -> str:
        """Where a person sees the alert; "" when that is not known."""
        ...
