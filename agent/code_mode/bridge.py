"""The parent's end of the bridge: frames from a process that may send anything, each checked before it counts.

Some threads take turns at reading: the one that has read a request answers it, while the next waits for another. So
at most `concurrent` requests are in flight, the rest is not even read, and no more replies wait than there are
threads. Whatever is not a proper frame ends the run.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent.deadline import Clock

HEAD_BYTES = 4
CHUNK_BYTES = 65_536
MAX_DEPTH = 32
MAX_NAME_CHARS = 64
MAX_NUMBER = 2**31
MAX_VALUE_CHARS = 100_000
QUICK_SECONDS, QUICK_IN_A_ROW = 0.0002, 8  # a tool that answered so fast so often is not worth another thread
RESERVE = 2  # threads that wait for a request
TEXT = "t"
RAW_BIT = 1 << 31  # in the length: the call's number and then plain text follow, which saves escaping it


@dataclass(frozen=True, slots=True)
class Answer:
    """`kind`: r(esult), n(o data) or e(rror), of which `body` is JSON; or `TEXT`, of which it is the text itself."""

    kind: str
    body: str


@dataclass(frozen=True, slots=True)
class Request:
    number: int
    tool: str
    arguments: dict[str, Any]


class Abuse(Exception):
    """Raised for a frame that no honest child sends."""


class TooMany(Abuse):
    """Raised by `ask` for a child that goes on calling past its limit."""


Ask = Callable[[str, dict[str, Any]], Answer]


class Bridge:
    """`ask` answers a request, or raises `Abuse`. `abused` is called, from any thread, when the child
    must be ended."""

    def __init__(
        self,
        end: socket.socket,
        *,
        ask: Ask,
        abused: Callable[[Abuse], None],
        concurrent: int,
        frame_bytes: int,
        queue_bytes: int,
        call_seconds: float,
        clock: Clock,
    ) -> None:
        self._socket = end
        self._ask, self._abused = ask, abused
        self._concurrent, self._frame_bytes, self._queue_bytes = concurrent, frame_bytes, queue_bytes
        self._call_seconds, self._clock = call_seconds, clock
        self._reading, self._sending, self._state = threading.Lock(), threading.Lock(), threading.Lock()
        self._buffer = bytearray()
        self._last = 0
        self._quick: dict[str, int] = {}  # tool -> quick answers in a row
        self._open: dict[int, tuple[float, str]] = {}  # request -> when it is overdue, tool
        self._threads = self._idle = 0
        self._queued = 0  # bytes of answers that the child has not taken yet
        self._closing = self._ended = False
        self._drained = threading.Event()
        self.layers: dict[str, str] | None = None
        self.value = ""

    def start(self, unsent: bytes = b"") -> None:
        """Serve the child, once it was sent what is still unsent of its order; returns at once."""
        self._more_threads(unsent)

    def finish(self, seconds: float) -> None:
        """The child is gone: take in what it said last. Calls of a dead child are not made."""
        self._closing = True
        self._drained.wait(seconds)

    def end(self) -> None:
        """No request is read or answered from here on. The socket is closed by the last thread that uses it."""
        with self._state:
            self._ended = True
            last = self._threads == 0
        with suppress(OSError):  # the child is gone
            self._socket.shutdown(socket.SHUT_RDWR)
        if last:
            self._socket.close()

    def expire(self) -> None:
        """Answer for the calls whose tool does not: the script goes on without them."""
        now = self._clock()
        with self._state:
            late = [(number, tool) for number, (due, tool) in self._open.items() if now > due]
        for number, tool in late:
            words = f"{tool} gave no answer within {self._call_seconds:g} s and was given up"
            self._send(number, Answer("e", json.dumps(words)))

    def _more_threads(self, first: bytes = b"") -> None:
        """Some in reserve, so that many calls at once find threads by doubling, not one after the other."""
        while True:
            with self._state:
                if self._ended or self._idle >= RESERVE or self._threads >= self._concurrent:
                    return
                self._threads += 1
                self._idle += 1
            threading.Thread(target=self._live, args=(first,), name="code-bridge", daemon=True).start()
            first = b""

    def _live(self, first: bytes) -> None:
        try:
            if first:
                self._socket.sendall(first)
            while (request := self._next()) is not None:
                self._serve(request)
        except OSError:
            pass  # the child is gone, or the run is over
        except Abuse as abuse:
            self._abused(abuse)
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._state:
            self._threads -= 1
            last = self._ended and self._threads == 0
        if last:
            self._socket.close()

    def _serve(self, request: Request) -> None:
        self._more_threads()
        try:
            self._answer(request)
        finally:
            with self._state:
                self._idle += 1

    def _answer(self, request: Request) -> None:
        begun = self._clock()
        try:
            answer = self._ask(request.tool, request.arguments)
        except Abuse:
            raise
        except Exception as error:  # noqa: BLE001  a fault of ours, a store that is away: it costs this call only
            answer = Answer("e", json.dumps(f"{request.tool} could not be called ({type(error).__name__})"))
        quick = self._clock() - begun < QUICK_SECONDS
        self._quick[request.tool] = self._quick.get(request.tool, 0) + 1 if quick else 0
        self._send(request.number, answer)

    def _send(self, number: int, answer: Answer) -> None:
        """Once for each request, whoever comes first."""
        with self._state:
            if self._open.pop(number, None) is None or self._ended:
                return
        if answer.kind == TEXT:
            body = answer.body.encode("utf-8", "replace")
            head = (len(body) + HEAD_BYTES | RAW_BIT).to_bytes(HEAD_BYTES, "big") + number.to_bytes(HEAD_BYTES, "big")
        else:
            body = f'{{"i":{number},"{answer.kind}":{answer.body}}}'.encode("utf-8", "replace")
            head = len(body).to_bytes(HEAD_BYTES, "big")
        with self._state:
            self._queued += len(body)
        try:
            with self._sending:
                if len(body) <= CHUNK_BYTES:
                    self._socket.sendall(head + body)
                else:  # not copied once more
                    self._socket.sendall(head)
                    self._socket.sendall(body)
        finally:
            with self._state:
                self._queued -= len(body)

    def _next(self) -> Request | None:
        """The next request; None at the end. Raises `Abuse`, `OSError`."""
        with self._reading:
            while True:
                while self._queued > self._queue_bytes and not self._ended:
                    with self._sending:  # it takes no answers, so it gets no more calls
                        pass
                body = self._frame()
                if body is None or self._ended:
                    self._drained.set()
                    return None
                request = self._read(_parsed(body))
                if request is None or self._closing:
                    continue
                with self._state:
                    self._open[request.number] = (self._clock() + self._call_seconds, request.tool)
                if self._quick.get(request.tool, 0) >= QUICK_IN_A_ROW and not self._buffer:
                    self._answer(request)  # while reading on is nobody's turn: handing it over would take longer
                    continue
                with self._state:
                    self._idle -= 1
                return request

    def _frame(self) -> bytes | None:
        if not self._fill(HEAD_BYTES):
            return None
        size = int.from_bytes(self._buffer[:HEAD_BYTES], "big")
        if not 2 <= size <= self._frame_bytes:
            raise Abuse(f"a frame of {size} bytes; at most {self._frame_bytes} are taken")
        if not self._fill(HEAD_BYTES + size):
            return None
        body = bytes(self._buffer[HEAD_BYTES : HEAD_BYTES + size])
        del self._buffer[: HEAD_BYTES + size]
        return body

    def _fill(self, size: int) -> bool:
        while len(self._buffer) < size:
            part = self._socket.recv(CHUNK_BYTES)
            if not part:
                return False
            self._buffer += part
        return True

    def _read(self, frame: dict[str, Any]) -> Request | None:
        """A request; None for what the child tells about itself."""
        if self.layers is None:
            self.layers = _layers(frame)
            return None
        if frame.keys() == {"v"} and isinstance(frame["v"], str) and not self.value:  # once, or it were a flood
            self.value = frame["v"][:MAX_VALUE_CHARS] or " "
            return None
        if frame.keys() != {"i", "t", "a"}:
            raise Abuse("a frame with other fields than a call has")
        number, tool, arguments = frame["i"], frame["t"], frame["a"]
        if type(number) is not int or not self._last < number < MAX_NUMBER:
            raise Abuse("a call whose number is not higher than the last one's")
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise Abuse("a call whose fields have other types")
        self._last = number
        return Request(number, tool[:MAX_NAME_CHARS], arguments)


def framed(value: Mapping[str, Any]) -> bytes:
    body = json.dumps(value).encode("utf-8", "replace")
    return len(body).to_bytes(HEAD_BYTES, "big") + body


def _layers(frame: dict[str, Any]) -> dict[str, str]:
    """The first frame, sent before any foreign code ran: which layers of the seal hold."""
    layers = frame.get("s")
    if frame.keys() != {"s"} or not isinstance(layers, dict):
        raise Abuse("the first frame is not about the seal")
    return {str(name): str(why)[:300] for name, why in layers.items()}


def _parsed(body: bytes) -> dict[str, Any]:
    """The frame as JSON: an object, valid UTF-8, finite numbers (Python bounds an integer's digits), not too deep."""
    try:
        frame = _DECODER.decode(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Abuse("a frame that is not JSON") from error
    deep = body.count(b"{") + body.count(b"[") > MAX_DEPTH  # else it can't be
    if not isinstance(frame, dict) or (deep and not _within(frame, MAX_DEPTH)):
        raise Abuse("a frame that is not an object, or nested too deep")
    return frame


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(text)
    return number


def _within(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_within(item, levels - 1) for item in inner)


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
