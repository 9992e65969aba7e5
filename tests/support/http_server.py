"""A real HTTP server on loopback whose answers a test writes, and which remembers what it was asked."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]  # lower-case names
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """`body` is bytes as they are, or anything JSON. `cut` closes the connection: "before" any byte of the reply, or
    "body" half-way through it. A header that is None is left out."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str | None] = field(default_factory=dict)
    cut: str = ""


Answer = Callable[[Request], Reply]
DATE = "Mon, 03 Feb 2031 12:00:00 GMT"


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is what some tests are about."""


class HttpServer:
    """Answers by `answer`, which may be exchanged during a test."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self._server = _Quiet(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def asked(self, method: str = "", path: str = "") -> list[Request]:
        return [r for r in self.requests if method in ("", r.method) and r.path.endswith(path)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet a reply, else each waits 40 ms for an acknowledgement
            disable_nagle_algorithm = True  # the same for replies larger than that buffer

            def do(self) -> None:
                address = urllib.parse.urlsplit(self.path)
                request = Request(
                    method=self.command,
                    path=address.path,
                    query=urllib.parse.parse_qs(address.query, keep_blank_values=True),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=self.rfile.read(int(self.headers.get("content-length") or 0)),
                )
                outer.requests.append(request)
                self._send(outer.answer(request))

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do  # noqa: N815  (the names http.server calls)

            def _send(self, reply: Reply) -> None:
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.close_connection = bool(reply.cut)
                if reply.cut == "before":
                    return
                self.send_response_only(reply.status)
                headers = {
                    "Date": DATE,
                    "Content-Type": "application/json",
                    "Content-Length": str(len(body)),
                    **reply.headers,
                }
                for name, value in headers.items():
                    if value is not None:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if reply.cut == "body" else body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler
