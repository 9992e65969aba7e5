"""A cluster's events: what the control plane and the kubelets said, oldest first, with absolute times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.alert import parse_time
from agent.deadline import Deadline
from toolsets.kubernetes import tables
from toolsets.kubernetes.api import Cluster
from toolsets.kubernetes.fields import Object, at, name_of, text
from toolsets.kubernetes.grammar import stamp
from toolsets.kubernetes.kinds import Kind, well_known

MAX_ROWS = 100
MAX_MESSAGE_CHARS = 500
HEADERS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE")


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Which events. `name` also stands for what it owns: `web` takes in `web-7d4b9c-x2x`, unless `exact`."""

    kind: Kind | None = None
    name: str = ""
    since: datetime | None = None
    exact: bool = False

    def includes(self, event: Object) -> bool:
        involved = text(event, "involvedObject.name") or text(event, "regarding.name")
        kind = text(event, "involvedObject.kind") or text(event, "regarding.kind")
        if self.since and (seen := last_seen(event)) and seen < self.since:
            return False
        if not self.name:
            return self.kind is None or kind == self.kind.name
        if involved == self.name:
            return self.kind is None or kind == self.kind.name
        return not self.exact and involved.startswith(f"{self.name}-")


def read(cluster: Cluster, namespace: str, about: About, deadline: Deadline) -> tuple[list[Object], str]:
    """Matching events, oldest first, and what to say when not all could be searched. Raises `ToolError`."""
    kind, named = well_known("Event"), f"involvedObject.name={about.name}" if about.name else ""
    listing = cluster.list(kind, namespace, deadline, fields=named if about.exact else "")
    items = listing.items
    if named and not about.exact and not listing.complete:
        # Pages come in the order of names, so a busy cluster's cut may have cost the object's own events.
        seen = {name_of(event) for event in items}
        own = cluster.list(kind, namespace, deadline, fields=named).items
        items = [*items, *(event for event in own if name_of(event) not in seen)]
    found = [event for event in items if about.includes(event)]
    found.sort(key=lambda event: stamp(last_seen(event)))
    searched = f"PARTIAL: searched {len(items)} of {listing.total or 'more'} events; give a namespace or name\n"
    return found, "" if listing.complete else searched


def table(events: Sequence[Object], *, with_namespace: bool = False, rows: int = MAX_ROWS) -> str:
    """The newest `rows` of them, the newest last."""
    note = f"PARTIAL: the newest {rows} of {len(events)}; narrow by name or since\n" if len(events) > rows else ""
    lines = [_row(event, with_namespace) for event in events[-rows:]]
    headers = HEADERS if not with_namespace else (HEADERS[0], "NAMESPACE", *HEADERS[1:])
    return note + tables.render(headers, lines, cell_chars=MAX_MESSAGE_CHARS)


def last_seen(event: Object) -> datetime | None:
    """Writers fill different fields; the last that is there wins over the object's own creation."""
    paths = ("series.lastObservedTime", "lastTimestamp", "deprecatedLastTimestamp", "eventTime", "firstTimestamp")
    for path in (*paths, "metadata.creationTimestamp"):
        if found := parse_time(at(event, path)):
            return found
    return None


def _row(event: Object, with_namespace: bool) -> tuple[str, ...]:
    where = "involvedObject" if at(event, "involvedObject") else "regarding"
    about = f"{text(event, f'{where}.kind')}/{text(event, f'{where}.name')}"
    count = at(event, "series.count") or at(event, "count") or at(event, "deprecatedCount") or 1
    first = stamp(at(event, "firstTimestamp") or at(event, "eventTime"))
    repeated = f"{count} since {first}" if count != 1 and first else str(count)
    message = text(event, "message") or text(event, "note")
    seen, kind = stamp(last_seen(event)), text(event, "type")
    place = [text(event, f"{where}.namespace") or text(event, "metadata.namespace")] if with_namespace else []
    return (seen, *place, kind, text(event, "reason"), about, repeated, message)
