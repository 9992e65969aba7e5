"""Frames on the bridge, as the child sees them: four bytes of length, then JSON. Standard library only.

Any thread may call; replies are matched by number. The client is convenience: nothing about safety rests on it,
since the parent checks whatever comes.
"""

from __future__ import annotations

import _socket
import json
import select
import threading

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all of this module
if TYPE_CHECKING:
    from typing import Any

    Frame = dict[str, Any]

HEAD_BYTES = 4
CHUNK_BYTES = 65_536
UNSEALED = 97  # exit status: a layer that is required does not hold; nothing was run
RAW_BIT = 1 << 31  # in the length: a call's number and then plain text follow
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=str)


class Closed(Exception):
    """Raised when the other side is gone."""


class Wire:
    def __init__(self, fd: int) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
        self._sending = threading.Lock()
        self._state = threading.Condition()
        self._reading = False
        self._buffer = b""
        self._last = 0
        self._replies: dict[int, Frame] = {}

    def ask(self, tool: str, arguments: dict[str, Any]) -> int:
        """Send a call; its number, to wait for."""
        text = _ENCODER.encode(arguments)
        with self._sending:  # numbers go out in order
            self._last += 1
            number = self._last
            self._send(f'{{"i":{number},"t":{json.dumps(tool)},"a":{text}}}'.encode("ascii"))
        return number

    def tell(self, frame: Frame) -> None:
        with self._sending:
            self._send(json.dumps(frame, separators=(",", ":")).encode("utf-8", "replace"))

    def reply(self, number: int) -> Frame:
        """Wait for the reply to a call. One of the waiting threads reads, for all."""
        while True:
            with self._state:
                while number not in self._replies and self._reading:
                    self._state.wait()
                if number in self._replies:
                    return self._replies.pop(number)
                self._reading = True
            self._read_one()

    def receive(self) -> Frame:
        """The next frame, for before there are calls. Raises `Closed`."""
        size = int.from_bytes(self._exactly(HEAD_BYTES), "big")
        if size & RAW_BIT:
            number = int.from_bytes(self._exactly(HEAD_BYTES), "big")
            return {"i": number, "r": str(self._exactly((size ^ RAW_BIT) - HEAD_BYTES), "utf-8")}
        frame: Frame = json.loads(str(self._exactly(size), "utf-8"))
        return frame

    def _read_one(self) -> None:
        try:
            frame = self.receive()
            self._replies[frame["i"]] = frame
        finally:
            with self._state:
                self._reading = False
                self._state.notify_all()

    def _send(self, body: bytes) -> None:
        view = memoryview(len(body).to_bytes(HEAD_BYTES, "big") + body)
        while view:
            try:
                view = view[self._socket.send(view, _socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                self._make_room()

    def _make_room(self) -> None:
        """The parent may be waiting for us to take its replies before it takes more calls."""
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN | select.POLLOUT)
        events = poll.poll()[0][1]
        if events & select.POLLOUT or not events & select.POLLIN:
            return
        with self._state:
            if self._reading:
                mine = False
            else:
                mine = self._reading = True
        if mine:
            self._read_one()

    def _exactly(self, size: int) -> bytes | bytearray:
        while len(self._buffer) < size <= CHUNK_BYTES:
            part = self._socket.recv(CHUNK_BYTES)
            if not part:
                raise Closed("the parent is gone")
            self._buffer += part
        if size <= len(self._buffer):
            taken, self._buffer = self._buffer[:size], self._buffer[size:]
            return taken
        return self._large(size)

    def _large(self, size: int) -> bytearray:
        """Into one piece of memory, not put together again and again."""
        whole = bytearray(size)
        view, held = memoryview(whole), len(self._buffer)
        view[:held] = self._buffer
        self._buffer = b""
        while held < size:
            got = self._socket.recv_into(view[held:])
            if not got:
                raise Closed("the parent is gone")
            held += got
        return whole
