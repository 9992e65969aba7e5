"""Reports as JSON lines in a file: the last line for a ticket is the current one."""

# ruff: noqa: ARG002  (the port hands over more than a sink that only writes needs)

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.report import Report
from sources.configs import FileSinkConfig
from sources.port import MARKER_PREFIX, Receipt, marker
from sources.render.markdown import markdown

OWNER_ONLY = 0o600  # reports quote logs
REFUSALS = (PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


class FileSink:
    """A line is `{"id", "key", "alert", "report", "text"}`; a report that changed is one more with the same id."""

    def __init__(self, name: str, config: FileSinkConfig) -> None:
        self.name = name
        self._path = config.path

    def find(self, alert: Alert, *, deadline: Deadline) -> Receipt | None:
        """The last report on this alert."""
        if not self._path.exists():
            return None
        with self._opened() as file:
            last = _last(file, alert.key)
        return _receipt(self._path, last["id"]) if last else None

    def publish(self, alert: Alert, report: Report, *, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Durable when it returns. Writing the same report again changes nothing."""
        line: dict[str, Any] = {
            "id": marker(report.run.investigation),
            "key": alert.key,
            "alert": alert.model_dump(mode="json", exclude={"raw"}),
            "report": report.model_dump(mode="json"),
            "text": markdown(report),
        }
        with self._opened() as file:
            if _last(file, alert.key) != line:
                _append(file, line)
        return _receipt(self._path, line["id"])

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """The file under an exclusive lock, until it is closed. Raises `Transient` (disk full) or `Permanent`."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, OWNER_ONLY), "a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
        except REFUSALS as error:
            raise Permanent(f"file sink {self._path}: {error.strerror}") from error
        except OSError as error:
            raise Transient(f"file sink {self._path}: {error.strerror}") from error


def _last(file: BinaryIO, key: str) -> dict[str, Any] | None:
    """The last line for this ticket. A line torn by a crash is passed over."""
    needle = json.dumps(key).encode()
    found = None
    file.seek(0)
    for line in file:
        if needle not in line:  # far cheaper than reading every line as JSON
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("key") == key and isinstance(entry.get("id"), str):
            found = entry
    return found


def _append(file: BinaryIO, line: dict[str, Any]) -> None:
    """In one write past any buffer, after a line break if the last writer died in the middle of a line."""
    size = file.seek(0, os.SEEK_END)
    torn = b""
    if size:
        file.seek(-1, os.SEEK_END)
        torn = b"" if file.read(1) == b"\n" else b"\n"
    data = torn + json.dumps(line).encode() + b"\n"
    if os.write(file.fileno(), data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file.fileno())


def _receipt(path: Path, identity: str) -> Receipt:
    return Receipt(id=identity, url=path.absolute().as_uri(), investigation=identity.removeprefix(MARKER_PREFIX))
