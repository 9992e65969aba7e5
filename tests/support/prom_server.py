"""A small stand-in for the Prometheus and Loki HTTP APIs, over real HTTP on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Fields = dict[str, str]
Reply = tuple[int, Any]  # status; a JSON value, or text as it is


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived; `fields` are from the address and the form."""

    method: str
    path: str
    fields: Fields
    headers: dict[str, str]


@dataclass(slots=True)
class ApiServer:
    """Answers by path: a fixed reply or a function of the fields. What has no answer is 404."""

    answers: dict[str, Reply | Callable[[Fields], Reply]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def data(self, path: str, data: Any, **also: Any) -> None:
        """Answer `path` with a success of the Prometheus API."""
        self.answers[path] = (200, {"status": "success", "data": data, **also})

    def vector(self, path: str, *series: tuple[dict[str, str], float | str]) -> None:
        result = [{"metric": labels, "value": [1_796_090_400, str(value)]} for labels, value in series]
        self.data(path, {"resultType": "vector", "result": result})

    def matrix(self, path: str, *series: tuple[dict[str, str], list[tuple[float, float | str]]]) -> None:
        result = [{"metric": labels, "values": [[at, str(value)] for at, value in points]} for labels, points in series]
        self.data(path, {"resultType": "matrix", "result": result})

    def fails(self, path: str, status: int, kind: str, words: str) -> None:
        self.answers[path] = (status, {"status": "error", "errorType": kind, "error": words})

    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    def last(self, path: str) -> Asked:
        return [request for request in self.asked if request.path == path][-1]

    def reply(self, request: Asked) -> Reply:
        self.asked.append(request)
        answer = self.answers.get(request.path, (404, "404 page not found"))
        return answer(request.fields) if callable(answer) else answer


@contextmanager
def api_server() -> Iterator[ApiServer]:
    api = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("content-length") or 0)
            form = self.rfile.read(size).decode()
            pairs = parse_qs(parts.query, keep_blank_values=True) | parse_qs(form, keep_blank_values=True)
            headers = {name.lower(): value for name, value in self.headers.items()}
            fields = {name: values[0] for name, values in pairs.items()}
            status, content = api.reply(Asked(self.command, parts.path, fields, headers))
            body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(content, str) else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
