"""A whole deployment out of real processes: Redis, demo world, model server, scheduler, receiver, workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sources.port import MARKER_PREFIX
from tests.support.redis_process import RedisProcess
from worker.redis_client import connect
from worker.settings import RedisSettings
from worker.store import Store

ROOT = Path(__file__).parents[2]
PAGERDUTY_TOKEN, KUBERNETES_TOKEN = "demo-pagerduty-token", "demo-kubernetes-token"


def eventually(holds: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait on a condition; fail with `what` when it does not come to hold."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)


def get_json(url: str, **headers: str) -> Any:
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.load(reply)


@dataclass
class Deployment:
    """`folder` holds its configuration, state and logs."""

    folder: Path
    redis: RedisProcess
    world: str
    config: dict[str, Any]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return Store(connect(self.redis.url, RedisSettings()))

    @property
    def config_file(self) -> Path:
        file = self.folder / "rootcaused.yaml"
        file.write_text(yaml.safe_dump(self.config))
        return file

    def start(self, *role: str) -> subprocess.Popen[bytes]:
        """A process of the daemon, in a process group of its own: `start("worker", "--role", "io")`."""
        command = [sys.executable, "-m", "worker.cli.main", "--config", str(self.config_file), *role]
        with (self.folder / f"{'-'.join(role)}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)
        return process

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that ends: `command("requeue", KEY)`."""
        command = [sys.executable, "-m", "worker.cli.main", "--config", str(self.config_file), *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    def notes(self, incident: str) -> list[dict[str, Any]]:
        """Our notes on a PagerDuty incident, as its API gives them; people's are left out."""
        url = f"{self.world}/pagerduty/incidents/{incident}/notes"
        notes: list[dict[str, Any]] = get_json(url, Authorization=f"Token token={PAGERDUTY_TOKEN}")["notes"]
        return [note for note in notes if MARKER_PREFIX in note["content"]]

    def incidents(self, source: str = "pagerduty") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = get_json(f"{self.world}/demo/incidents")["incidents"]
        return [incident for incident in found if incident["source"] == source]

    def logs(self) -> str:
        return "\n".join(f"== {file.name}\n{file.read_text()[-3_000:]}" for file in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        for process in self.processes:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for the process and all its children at once."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


@contextmanager
def demo_world(folder: Path) -> Iterator[str]:
    """The demo world as a process; gives its address."""
    command = [sys.executable, "deploy/demo/world.py", "--port", "0", "--state", str(folder / "world")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@contextmanager
def deployment(folder: Path, **config: Any) -> Iterator[Deployment]:
    """Redis with an append-only file, the demo world, the configuration; starting the daemon is the test's part."""
    with RedisProcess(folder, append_only=True) as redis, demo_world(folder) as world:
        base: dict[str, Any] = {
            "state_dir": str(folder / "state"),
            "redis": {"url": redis.url},
            "limits": {"lease_seconds": 3},
            "sources": {
                "pagerduty": {
                    "kind": "pagerduty",
                    "token": PAGERDUTY_TOKEN,
                    "from_email": "rootcaused@example.com",
                    "url": f"{world}/pagerduty",
                    "poll_seconds": 1,
                }
            },
            "toolsets": {
                "kubernetes": {"kind": "kubernetes", "url": f"{world}/kubernetes", "token": KUBERNETES_TOKEN},
                "plan": {"kind": "plan"},
            },
        }
        made = Deployment(folder, redis, world, {**base, **config})
        try:
            yield made
        except BaseException:
            print(made.logs())
            raise
        finally:
            made.stop()
