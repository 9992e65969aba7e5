"""The demo world in a thread of the test process, and a plain HTTP client for it."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.demo import github, jira, kubernetes, opsalerts, pagerduty, sink
from deploy.demo.server import World

BEGAN = 1_800_000_000.0


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


HEADERS = {
    "pagerduty": {"Authorization": f"Token token={pagerduty.TOKEN}", "From": pagerduty.EMAIL},
    "opsgenie": {"Authorization": f"GenieKey {opsalerts.API_KEY}"},
    "jsm": {"Authorization": basic(opsalerts.EMAIL, opsalerts.API_TOKEN)},
    "jira": {"Authorization": basic(jira.EMAIL, jira.API_TOKEN)},
    "github": {"Authorization": f"Bearer {github.TOKEN}"},
    "kubernetes": {"Authorization": f"Bearer {kubernetes.TOKEN}"},
    "sink": {"Authorization": f"Bearer {sink.TOKEN}"},
}


@dataclass
class Clock:
    """The world's wall clock, moved by hand."""

    at: float = BEGAN

    def __call__(self) -> float:
        return self.at


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Client:
    """Sends with the credentials of the played system, unless `headers` are given."""

    world: World
    clock: Clock

    def send(self, method: str, path: str, payload: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        system = path.split("/")[1]
        if headers is None:
            headers = HEADERS.get(system, {})
        connection = http.client.HTTPConnection("127.0.0.1", self.world.server_address[1], timeout=10)
        try:
            body = payload if isinstance(payload, str) else None if payload is None else json.dumps(payload)
            connection.request(method, path, body=body, headers=dict(headers))
            reply = connection.getresponse()
            return Answer(reply.status, dict(reply.getheaders()), reply.read().decode())
        finally:
            connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON of a reply that must be a 200."""
        answer = self.send("GET", path, headers=headers)
        assert answer.status == 200, answer.text
        return answer.json


@contextmanager
def running(folder: Path, clock: Clock) -> Iterator[Client]:
    world = World(0, folder, clock)
    thread = threading.Thread(target=world.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Client(world, clock)
    finally:
        world.shutdown()
        thread.join()
        world.server_close()


@pytest.fixture
def start() -> Callable[[Path], Any]:
    """Starts a world on a folder; for tests that start it twice."""
    return lambda folder: running(folder, Clock())


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Client]:
    """A world of the test's own, to be changed."""
    with running(tmp_path, Clock()) as client:
        yield client


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A world that is only read (and reading an incident settles the blip: tests that do so take `fresh`)."""
    with running(tmp_path_factory.mktemp("world"), Clock()) as client:
        yield client
