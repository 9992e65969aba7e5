"""Our ASGI app behind a real HTTP server on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import requests
import uvicorn
from fastapi import FastAPI


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """Gives the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def chunks(size: int) -> Iterator[bytes]:
    """A body whose length is not told beforehand."""
    for _ in range(size // 65_536 + 1):
        yield b"x" * 65_536


def status_of(reply: requests.Response) -> tuple[int, str]:
    """The status and what the JSON body says of it."""
    body = reply.json()
    return reply.status_code, body.get("error") or body.get("outcome") or body.get("status") or ""
