"""What a script prints, kept at both ends while it streams."""

from __future__ import annotations

HEAD_SHARE = 0.75


class Output:
    """Bytes in, at most `limit` kept: most from the start, the rest from the end."""

    def __init__(self, limit: int) -> None:
        self._head_room = int(limit * HEAD_SHARE)
        self._tail_room = limit - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > self._tail_room * 2:  # not at every byte: moving the tail costs its length
            del self._tail[: -self._tail_room]

    @property
    def lost(self) -> int:
        """Bytes that were not kept."""
        return max(0, self.total - len(self._head) - min(len(self._tail), self._tail_room))

    def text(self) -> str:
        """Whatever the bytes were: invalid ones are replaced, a cut character too, NUL is dropped."""
        tail = bytes(self._tail[-self._tail_room :])
        if not self.lost:
            return _decoded(bytes(self._head) + tail)
        return f"{_decoded(bytes(self._head))}\n[{self.lost} bytes left out]\n{_decoded(tail)}"


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "")
