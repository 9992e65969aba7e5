"""The error tree, by who must act.

RootcausedError
├── ConfigError   the operator must change the configuration; raised at start-up only
├── Transient     try again later, not before `retry_after` seconds when that is known
├── Permanent     trying again will not help: park, and say so on the ticket
│   └── ContextOverflow   the request is larger than the model's window
└── ToolError     the model must read it and choose another call

Third-party exceptions are converted to one of these at the border where they appear, so that
everything that crosses a process boundary can be pickled (many clients' exceptions can't).
"""

from __future__ import annotations

from typing import Any


class RootcausedError(Exception):
    """Base of all our errors; carries keyword details and survives pickling with them."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), str(self.args[0]), self.details))


def _rebuild(kind: type[RootcausedError], message: str, details: dict[str, Any]) -> RootcausedError:
    return kind(message, **details)


class ConfigError(RootcausedError):
    """Raised when the configuration can't be used; names file, line and key where known."""

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, key: str | None = None
    ) -> None:
        super().__init__(message, file=file, line=line, key=key)
        self.file, self.line, self.key = file, line, key

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.key, str(self.args[0])) if part)


class Transient(RootcausedError):
    """Raised when the same act may succeed later: 429, 5xx, a dropped connection, a full Redis."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.retry_after = retry_after


class Permanent(RootcausedError):
    """Raised when trying again will not help: 401, 403, 404, 422, an unusable reply."""


class ContextOverflow(Permanent):
    """Raised when a request is larger than the model's window; the loop compacts and asks once more."""


class ToolError(RootcausedError):
    """Raised by a tool; its message is written for the model: what was asked, the API's words, what to try."""
