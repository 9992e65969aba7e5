"""A publisher that keeps what it was asked to publish."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.errors import Transient


@dataclass
class Published:
    tasks: list[tuple[str, ...]] = field(default_factory=list)
    down: bool = False

    def investigate(self, key: str, generation: int, queue: str) -> None:
        self._add("investigate", key, str(generation), queue)

    def write_back(self, key: str, generation: int) -> None:
        self._add("write_back", key, str(generation))

    def poll(self, source: str, *, expires: float) -> None:
        self._add("poll", source)

    def sweep(self, name: str, *, expires: float) -> None:
        self._add("sweep", name)

    def _add(self, *task: str) -> None:
        if self.down:
            raise Transient("publish: OperationalError")
        self.tasks.append(task)

    def take(self) -> list[tuple[str, ...]]:
        taken, self.tasks = self.tasks, []
        return taken
