"""Recorded Kubernetes faults on disk: where they are, what was asked, and what the answer is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.alert import Alert, parse_time


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """`benchmark/<system>/<category>/<id>`."""

    system: str
    category: str
    id: str
    folder: Path

    @property
    def odd(self) -> bool:
        """Odd cases are what rules were written against; ids that are no numbers count as even."""
        return self.id.isdigit() and int(self.id) % 2 == 1


@dataclass(frozen=True, slots=True)
class Answer:
    """The label of a case: `app/cart`, `node/n1` or `namespace/shop` is the object."""

    taxonomy: str
    object: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCase:
    place: Place
    namespace: str
    query: str
    answer: Answer
    cache: dict[str, Any]
    anomalies: dict[str, Any]

    @property
    def collected_at(self) -> datetime | None:
        """When the recording was made."""
        return parse_time(self.cache.get("collection_timestamp"))

    def alert(self) -> Alert:
        """What a monitoring system would send: the complaint and the namespace, nothing of the cause."""
        return Alert(
            source="bench",
            id=f"{self.place.system}-{self.place.category}-{self.place.id}",
            title=self.query or "Alert",
            labels={"namespace": self.namespace},
        )


def places(data: Path, *, limit: int = 0, seed: int = 0) -> Iterator[Place]:
    """All cases, or `limit` of each system by lot."""
    found: dict[str, list[Place]] = {}
    for path in sorted(data.glob("benchmark/*/*/*/metadata.json")):
        system, category, case = path.parts[-4:-1]
        found.setdefault(system, []).append(Place(system, category, case, path.parent))
    for group in found.values():
        yield from group if not limit or limit >= len(group) else random.Random(seed).sample(group, limit)


def load(place: Place) -> RecordedCase:
    metadata = json.loads((place.folder / "metadata.json").read_text())
    result = metadata["result"]
    alerts = place.folder / "raw_data" / "alert.json"
    return RecordedCase(
        place=place,
        namespace=metadata["namespace"],
        query=metadata.get("query", ""),
        answer=Answer(result["fault_taxonomy"], result["fault_object"], result["root_cause"]),
        cache=json.loads((place.folder / "tool_cache.json").read_text()),
        anomalies=json.loads(alerts.read_text()) if alerts.is_file() else {},
    )
