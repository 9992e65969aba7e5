"""Processes killed and Redis flushed in mid-run; at the end each incident has its one note."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.events import ModelAnswered
from tests.support.deployment import ROOT, Deployment, deployment, eventually, get_json, kill
from worker.record import Record, State

pytestmark = pytest.mark.chaos

STEPS = 6


def script() -> dict[str, Any]:
    """Five turns with a tool call each, then the answer; each a little late, as a model is."""
    looks = [
        {"name": "kubernetes_get", "arguments": {"kind": kind, "namespace": "shop"}}
        for kind in ("pods", "deployments", "replicasets", "services", "nodes")
    ]
    lines = [{"calls": [call], "wait": 0.4} for call in looks]
    return {"by": "turn", "lines": [*lines, {"text": "The pods of cart-api were killed for memory.", "wait": 0.4}]}


@contextmanager
def model_server(folder: Path) -> Iterator[str]:
    """The scripted OpenAI-compatible server as a process; gives its address."""
    file = folder / "script.json"
    file.write_text(json.dumps(script()))
    command = [sys.executable, "-m", "tests.support.openai_server", "--script", str(file)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    with model_server(tmp_path) as address:
        yield address


@pytest.fixture
def deployed(tmp_path: Path, model: str) -> Iterator[Deployment]:
    named = {"name": "openai/scripted", "api_base": f"{model}/v1", "api_key": "sk-test"}
    with deployment(tmp_path, model=named) as made:
        yield made


def only(deployed: Deployment, title: str) -> tuple[str, str]:
    """Restrict the source to one incident; gives its id and its alert's key."""
    incident = next(item for item in deployed.incidents() if title in item["title"])
    url = f"{deployed.world}/pagerduty/incidents/{incident['native']}"
    service = get_json(url, Authorization="Token token=demo-pagerduty-token")["incident"]["service"]["id"]
    deployed.config["sources"]["pagerduty"]["service_ids"] = [service]
    return incident["native"], f"pagerduty:{incident['native']}"


def record(deployed: Deployment, key: str) -> Record | None:
    return deployed.store.get(key)


def reached(deployed: Deployment, key: str, *states: State) -> bool:
    found = record(deployed, key)
    return found is not None and found.state in states


def answers(deployed: Deployment, key: str) -> int:
    found = record(deployed, key)
    events = deployed.store.events(found.investigation) if found else []
    return sum(isinstance(event, ModelAnswered) for event in events)


def test_a_killed_worker_costs_at_most_one_model_call(deployed: Deployment, model: str) -> None:
    incident, key = only(deployed, "cart-api")
    deployed.start("schedule")
    deployed.start("worker", "--role", "io")
    first = deployed.start("worker", "--role", "investigate")
    eventually(lambda: answers(deployed, key) >= 3, "three model calls were answered")
    kill(first)
    assert answers(deployed, key) == 3
    deployed.start("worker", "--role", "investigate")
    eventually(lambda: reached(deployed, key, State.WRITTEN), "another worker finished it")
    requests = get_json(f"{model}/requests")
    turns = [sum(message["role"] == "assistant" for message in request["messages"]) for request in requests]
    assert sorted(set(turns)) == list(range(STEPS))
    assert len(turns) <= STEPS + 1
    assert [turns.count(turn) for turn in range(3)] == [1, 1, 1]
    notes = deployed.notes(incident)
    assert len(notes) == 1
    assert "killed for memory" in notes[0]["content"]
    found = record(deployed, key)
    assert found is not None
    assert found.attempts == 2


def test_a_flush_between_report_and_write_back_and_again_after_it(deployed: Deployment) -> None:
    incident, key = only(deployed, "cart-api")
    deployed.start("schedule")
    deployed.start("worker", "--role", "investigate")
    io = deployed.start("worker", "--role", "io")
    eventually(lambda: reached(deployed, key, State.INVESTIGATING), "the investigation began")
    kill(io)  # nobody writes back
    eventually(lambda: reached(deployed, key, State.REPORTED), "the report was stored")
    flush_and_restart(deployed)
    deployed.start("worker", "--role", "io")
    eventually(lambda: reached(deployed, key, State.WRITTEN), "it was seen again and written")
    assert len(deployed.notes(incident)) == 1

    flush_and_restart(deployed)
    eventually(lambda: reached(deployed, key, State.WRITTEN), "the note was found and adopted")
    assert len(deployed.notes(incident)) == 1
    assert answers(deployed, key) == 0  # nothing was paid for a second time


def test_a_worker_told_to_stop_hands_over_at_once_and_the_attempt_does_not_count(deployed: Deployment) -> None:
    _, key = only(deployed, "cart-api")
    deployed.config |= {"limits": {"lease_seconds": 300}, "worker": {"soft_shutdown_seconds": 0.5}}
    deployed.start("schedule")
    deployed.start("worker", "--role", "io")
    first = deployed.start("worker", "--role", "investigate")
    eventually(lambda: answers(deployed, key) >= 2, "two model calls were answered")
    deployed.start("worker", "--role", "investigate")
    first.terminate()
    assert first.wait(20) == 0
    eventually(lambda: reached(deployed, key, State.WRITTEN), "the other worker finished it", 30)
    found = record(deployed, key)
    assert found is not None
    assert found.attempts == 1


def flush_and_restart(deployed: Deployment) -> None:
    deployed.redis.flush()
    deployed.redis.stop()
    deployed.redis.start()


def test_two_requeues_at_once_give_one_run_and_the_note_is_edited_in_place(deployed: Deployment) -> None:
    incident, key = only(deployed, "cart-api")
    deployed.start("schedule")
    deployed.start("worker", "--role", "investigate")
    deployed.start("worker", "--role", "io")
    eventually(lambda: reached(deployed, key, State.WRITTEN), "the first report was written")
    before = deployed.notes(incident)
    command = [sys.executable, "-m", "worker.cli.main", "--config", str(deployed.config_file), "requeue", key]
    requeues = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(60) for process in requeues] == [0, 0]
    eventually(lambda: deployed.notes(incident) != before, "the note was edited")
    eventually(lambda: reached(deployed, key, State.WRITTEN), "the second report was written")
    after = deployed.notes(incident)
    assert [note["id"] for note in after] == [note["id"] for note in before]
    found = record(deployed, key)
    assert found is not None
    assert found.generation == 2
    assert after[0]["content"] != before[0]["content"]
