"""The parent's end of the bridge, with a made-up child."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.code_mode.bridge import Abuse, Answer, Ask, Bridge, framed


class Child:
    """The other end: sends what it likes, reads frames."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        end.settimeout(5)

    def send(self, frame: Any) -> None:
        body = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        self.end.sendall(len(body).to_bytes(4, "big") + body)

    def read(self) -> Any:
        size = int.from_bytes(self._exactly(4), "big")
        return json.loads(self._exactly(size))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.end.recv(size - len(data))
            assert part, "the parent hung up"
            data += part
        return data


Start = Callable[..., tuple[Child, Bridge, list[Abuse]]]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[tuple[Child, Bridge]] = []

    def begin(ask: Ask, **changes: Any) -> tuple[Child, Bridge, list[Abuse]]:
        ours, theirs = socket.socketpair()
        abuses: list[Abuse] = []
        options: dict[str, Any] = {
            "concurrent": 4,
            "frame_bytes": 1_000,
            "queue_bytes": 1_000_000,
            "call_seconds": 5.0,
            "clock": time.monotonic,
        }
        bridge = Bridge(ours, ask=ask, abused=abuses.append, **{**options, **changes})
        child = Child(theirs)
        made.append((child, bridge))
        bridge.start(framed({"code": ""}))
        assert child.read() == {"code": ""}
        child.send({"s": {"seccomp": ""}})
        return child, bridge, abuses

    yield begin
    for child, bridge in made:
        bridge.end()
        child.end.close()


def echo(tool: str, arguments: dict[str, Any]) -> Answer:
    return Answer("r", json.dumps([tool, arguments]))


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_call_is_answered_under_its_number(start: Start) -> None:
    child, bridge, _ = start(echo)
    child.send({"i": 7, "t": "logs", "a": {"pod": "x"}})
    assert child.read() == {"i": 7, "r": ["logs", {"pod": "x"}]}
    assert bridge.layers == {"seccomp": ""}


def test_calls_run_side_by_side_and_answers_come_as_they_are_ready(start: Start) -> None:
    gate = threading.Event()

    def ask(tool: str, arguments: dict[str, Any]) -> Answer:
        if arguments["n"] == 1:
            assert gate.wait(5)
        return Answer("r", str(arguments["n"]))

    child, _, _ = start(ask)
    child.send({"i": 1, "t": "x", "a": {"n": 1}})
    child.send({"i": 2, "t": "x", "a": {"n": 2}})
    assert child.read() == {"i": 2, "r": 2}
    gate.set()
    assert child.read() == {"i": 1, "r": 1}


def test_no_more_calls_than_allowed_are_in_flight_the_rest_is_not_even_read(start: Start) -> None:
    gate, running, most = threading.Semaphore(0), [0], [0]
    lock = threading.Lock()

    def ask(tool: str, arguments: dict[str, Any]) -> Answer:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        assert gate.acquire(timeout=5)
        with lock:
            running[0] -= 1
        return Answer("r", "1")

    child, _, _ = start(ask, concurrent=3)
    for number in range(1, 13):
        child.send({"i": number, "t": "x", "a": {}})
    eventually(lambda: running[0] == 3)
    for _ in range(12):
        gate.release()
    assert sorted(child.read()["i"] for _ in range(12)) == list(range(1, 13))
    assert most[0] == 3


def test_an_overdue_call_is_answered_for_once_and_its_late_result_dropped(start: Start) -> None:
    gate = threading.Event()
    now = [0.0]

    def ask(tool: str, arguments: dict[str, Any]) -> Answer:
        if tool == "hang":
            assert gate.wait(5)
        return Answer("r", "1")

    child, bridge, _ = start(ask, clock=lambda: now[0])
    child.send({"i": 1, "t": "hang", "a": {}})
    eventually(lambda: bridge._open)
    bridge.expire()
    now[0] = 6.0
    bridge.expire()
    assert child.read() == {"i": 1, "e": "hang gave no answer within 5 s and was given up"}
    gate.set()
    child.send({"i": 2, "t": "x", "a": {}})
    assert child.read() == {"i": 2, "r": 1}


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"rubbish",
        b"[]",
        b"1",
        b'{"i":1,"t":"x"}',
        b'{"i":1,"t":"x","a":{},"more":1}',
        b'{"i":1.5,"t":"x","a":{}}',
        b'{"i":true,"t":"x","a":{}}',
        b'{"i":0,"t":"x","a":{}}',
        b'{"i":2147483648,"t":"x","a":{}}',
        b'{"i":1,"t":1,"a":{}}',
        b'{"i":1,"t":"x","a":[]}',
        b'{"i":1,"t":"x","a":{"n":NaN}}',
        b'{"i":1,"t":"x","a":{"n":1e999}}',
        b'{"i":1,"t":"x","a":{"n":' + b"[" * 40 + b"]" * 40 + b"}}",
        b'{"i":1,"t":"\xff","a":{}}',
        b"x" * 1_001,
        b'{"s":{}}',
        b'{"v":1}',
    ],
)
def test_what_no_honest_child_sends_ends_the_run(start: Start, frame: bytes) -> None:
    child, _, abuses = start(echo)
    child.send(frame)
    eventually(lambda: abuses)


def test_a_number_must_be_higher_than_the_last(start: Start) -> None:
    child, _, abuses = start(echo)
    child.send({"i": 5, "t": "x", "a": {}})
    child.read()
    child.send({"i": 5, "t": "x", "a": {}})
    eventually(lambda: abuses)


def test_the_first_frame_must_be_about_the_seal() -> None:
    ours, theirs = socket.socketpair()
    abuses: list[Abuse] = []
    bridge = Bridge(
        ours,
        ask=echo,
        abused=abuses.append,
        concurrent=1,
        frame_bytes=1_000,
        queue_bytes=1_000,
        call_seconds=1,
        clock=time.monotonic,
    )
    child = Child(theirs)
    bridge.start(framed({}))
    child.read()
    child.send({"i": 1, "t": "x", "a": {}})
    eventually(lambda: abuses)
    bridge.end()
    theirs.close()


def test_the_end_frees_threads_and_socket_also_while_a_reply_is_not_read(start: Start) -> None:
    before = threading.active_count()
    child, bridge, _ = start(lambda *_: Answer("r", json.dumps("x" * 3_000_000)))
    for number in range(1, 4):
        child.send({"i": number, "t": "x", "a": {}})
    eventually(lambda: threading.active_count() > before + 2)
    bridge.end()
    eventually(lambda: threading.active_count() == before)
    assert bridge._socket.fileno() == -1


def test_a_child_that_takes_no_answers_gets_no_more_calls(start: Start) -> None:
    made: list[int] = []

    def ask(tool: str, arguments: dict[str, Any]) -> Answer:
        made.append(1)
        return Answer("r", json.dumps("x" * 1_000_000))

    child, bridge, _ = start(ask, queue_bytes=500_000, concurrent=2)
    for number in range(1, 9):
        child.send({"i": number, "t": "x", "a": {}})
    eventually(lambda: bridge._queued >= 1_000_000)
    assert len(made) <= 2
    assert sorted(child.read()["i"] for _ in range(8)) == list(range(1, 9))
    assert len(made) == 8


def test_a_fault_of_ours_costs_the_call_and_not_the_run(start: Start) -> None:
    def ask(tool: str, arguments: dict[str, Any]) -> Answer:
        if tool == "broken":
            raise KeyError("secret")
        return Answer("r", "1")

    child, _, abuses = start(ask)
    child.send({"i": 1, "t": "broken", "a": {}})
    assert child.read() == {"i": 1, "e": "broken could not be called (KeyError)"}
    for number in range(2, 40):  # quick enough to be answered by the thread that reads
        child.send({"i": number, "t": "x", "a": {}})
        assert child.read() == {"i": number, "r": 1}
    child.send({"i": 40, "t": "broken", "a": {}})
    assert child.read()["i"] == 40
    assert not abuses
