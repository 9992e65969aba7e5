"""What a strict fake provider says in one turn, whatever its wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An answer, calls, or a refusal by `status`. `thinking` is signed where the provider signs it."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    thinking: str = ""
    finish: str = ""  # the provider's own word; "" for the usual one
    status: int = 200
    error: str = "overloaded"
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """Raised when a request is one that the real provider refuses; the message is in its words."""

    def __init__(self, words: str, *, overflow: bool = False) -> None:
        super().__init__(words)
        self.overflow = overflow


def refuse_unknown(where: str, given: Mapping[str, Any], known: str) -> None:
    """Raise for a field that is not among the words of `known`."""
    for name in given:
        if name not in known.split():
            raise Refused(f"{where}: Extra inputs are not permitted: {name!r}")


def refuse_unless(holds: object, words: str) -> None:
    if not holds:
        raise Refused(words)
