"""What must survive a restart: when the world began, notes, deliveries, what was resolved. One JSON file, fsynced.

```
began        epoch seconds; every time of every incident is relative to it
seed         varies when the incidents happened
episodes     incident id -> list of {n, fired, resolved}   (a re-fire is a new episode)
notes        ticket id -> list of notes or comments, each as its system gives it
tags         alert id -> list of OpsGenie tags
requests     request id -> what became of a write that OpsGenie had accepted
deliveries   sink name -> list of {identity, at, body}
```
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Clock = Callable[[], float]


class State:
    """Reads are copies; a change is on disk when `changing` ends."""

    def __init__(self, folder: Path, clock: Clock, seed: int = 0) -> None:
        self._path = folder / "world.json"
        self._folder = folder
        self._clock = clock
        self._lock = threading.RLock()
        folder.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._data: dict[str, Any] = json.loads(self._path.read_text())
        else:
            self._data = {**self._empty(), "seed": seed}
            self._write()

    def _empty(self) -> dict[str, Any]:
        tables: dict[str, Any] = {name: {} for name in ("episodes", "notes", "tags", "requests", "deliveries")}
        return {"began": float(int(self._clock())), **tables, "counter": 0}

    @property
    def began(self) -> float:
        return float(self._data["began"])

    @property
    def seed(self) -> int:
        return int(self._data["seed"])

    def now(self) -> float:
        return self._clock()

    def read(self, table: str) -> Any:
        """A copy of one of the tables above."""
        with self._lock:
            return json.loads(json.dumps(self._data[table]))

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """The tables, to be changed in place."""
        with self._lock:
            yield self._data
            self._write()

    def next_number(self) -> int:
        with self.changing() as data:
            data["counter"] += 1
            return int(data["counter"])

    def reset(self) -> None:
        """Forget what people and machines did; the incidents keep their times."""
        with self.changing() as data:
            data.update({**self._empty(), "began": data["began"]})

    def _write(self) -> None:
        """Atomic: a reader of the file sees the old or the new state, also after a power cut."""
        scratch = self._path.with_suffix(".tmp")
        with scratch.open("w") as file:
            json.dump(self._data, file)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(self._path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
