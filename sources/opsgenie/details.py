"""What the list leaves out of an alert: description, details and entity, one request an alert, each read once."""

from __future__ import annotations

from typing import Any

from agent.deadline import Deadline
from agent.errors import RootcausedError
from sources.opsgenie.client import OpsApi, part
from sources.opsgenie.dialect import Dialect
from sources.opsgenie.envelope import single

MAX_READS = 50  # of one poll; later polls read the rest
MAX_KEPT = 2_000
LEFT_OUT = ("description", "details", "entity", "extraProperties")


class Details:
    """Remembers by alert id, so that a poll reads only what is new."""

    def __init__(self, api: OpsApi, dialect: Dialect) -> None:
        self._api = api
        self._dialect = dialect
        self._kept: dict[str, dict[str, Any]] = {}

    def reading(self, deadline: Deadline) -> Reading:
        return Reading(self, deadline)

    def known(self, native: str) -> dict[str, Any] | None:
        return self._kept.get(native)

    def read(self, native: str, deadline: Deadline) -> dict[str, Any]:
        """The whole alert. Raises `Transient` or `Permanent`."""
        response = self._api.get(self.path(native), self._dialect.by_id, deadline=deadline)
        return self.keep(native, single(response, f"{self._dialect.kind} alert"))

    def keep(self, native: str, alert: dict[str, Any]) -> dict[str, Any]:
        while len(self._kept) >= MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[native] = {name: alert[name] for name in LEFT_OUT if name in alert}
        return alert

    def path(self, native: str) -> str:
        return f"{self._dialect.alerts}/{part(native)}"


class Reading:
    """One poll's reading of details: bounded, and over after the first that fails."""

    def __init__(self, details: Details, deadline: Deadline) -> None:
        self._details = details
        self._deadline = deadline
        self._left = MAX_READS

    def complete(self, item: object) -> tuple[object, str]:
        """The item with its details where they are known or can be had, and why they could not be."""
        native = item.get("id") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(native, str) or not native.strip("."):
            return item, ""
        if item.get("status") == "closed" or any(item.get(name) for name in LEFT_OUT):
            return item, ""
        found = self._details.known(native)
        if found is None:
            if not self._left:
                return item, ""
            self._left -= 1
            try:
                found = self._details.read(native, self._deadline)
            except RootcausedError as error:  # the list's word is enough to go on
                self._left = 0
                return item, f"the alert could not be read in full: {error}"
        return {**item, **{name: found[name] for name in LEFT_OUT if name in found}}, ""
