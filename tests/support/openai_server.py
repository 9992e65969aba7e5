"""A scripted OpenAI-compatible HTTP server on loopback, in a thread or as a process of its own.

`python -m tests.support.openai_server --script FILE --port 0` prints its port. The script is a JSON list of lines,
or `{"by": "turn", "lines": [...]}`: then a line is chosen by the number of assistant messages in the request, so that
many conversations, or one that was interrupted, each get the script from where they are. A line is one of

    {"text": "...", "finish": "stop", "usage": {...}, "message": {...}}      an answer; `message` adds fields
    {"calls": [{"name": "...", "arguments": {...} | "text", "id": "..."}]}   tool calls, with `text` if wished
    {"status": 429, "headers": {"Retry-After": "1"}, "error": "words"}       a refusal
    {"body": {...}}                                                         any body, verbatim
    {"wait": seconds, ...}                                                  any of these, late
    {"hang": true} | {"drip": true} | {"drop": true}                        no answer, a byte now and then, a cut line

The last line answers everything past the end. `GET /requests` gives what was asked, `GET /count` how often.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Line = dict[str, Any]
_CLOSE = {"connection": "close"}  # a kept connection would outlive the test that made it


class OpenAIServer:
    """Use it in a `with`. `requests` holds the bodies received, `base_url` is what a client is given."""

    def __init__(self, lines: Sequence[Line], *, by: str = "order", port: int = 0) -> None:
        self.lines = list(lines)
        self.by = by
        self.requests: list[dict[str, Any]] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self.http = _Http(("127.0.0.1", port), _Handler)
        self.http.script = self
        self.port = int(self.http.server_address[1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def count(self) -> int:
        return len(self.requests)

    def next_line(self, request: dict[str, Any]) -> Line:
        with self._lock:
            self.requests.append(request)
            place = len(self.requests) - 1
        if self.by == "turn":
            place = sum(message.get("role") == "assistant" for message in request.get("messages", ()))
        return self.lines[min(place, len(self.lines) - 1)]

    def __enter__(self) -> Self:
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()


def completion(line: Line) -> dict[str, Any]:
    """The body of a chat completion for a line."""
    calls = [_call(call, number) for number, call in enumerate(line.get("calls", ()))]
    message: dict[str, Any] = {"role": "assistant", "content": line.get("text"), **line.get("message", {})}
    if calls:
        message["tool_calls"] = calls
    finish = line.get("finish", "tool_calls" if calls else "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": line.get("usage", {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}),
    }


def _call(call: dict[str, Any], number: int) -> dict[str, Any]:
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    identity = call.get("id", f"call_{number}")
    return {"id": identity, "type": "function", "function": {"name": call.get("name"), "arguments": text}}


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    script: OpenAIServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer(self.server.script.next_line(json.loads(body)))

    def do_GET(self) -> None:
        script = self.server.script
        self._send(200, {}, script.requests if self.path == "/requests" else {"count": script.count})

    def _answer(self, line: Line) -> None:
        self.server.script.closing.wait(line.get("wait", 0))
        if line.get("hang"):
            self.server.script.closing.wait()
        elif line.get("drip"):
            self._drip()
        elif line.get("drop"):
            self.close_connection = True
        elif "status" in line:
            words = line.get("error", "refused")
            error = words if isinstance(words, dict) else {"message": words, "type": "error"}
            self._send(line["status"], line.get("headers", {}), {"error": error})
        else:
            self._send(200, line.get("headers", {}), line["body"] if "body" in line else completion(line))

    def _drip(self) -> None:
        """A byte ten times a second: no time-out between two bytes ever ends this."""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "100000")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            while not self.server.script.closing.wait(0.1):
                self.wfile.write(b" ")
                self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _send(self, status: int, headers: dict[str, str], value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **_CLOSE,
            **headers,
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", required=True, type=Path)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    script = json.loads(given.script.read_text())
    lines, by = (script, "order") if isinstance(script, list) else (script["lines"], script.get("by", "order"))
    with OpenAIServer(lines, by=by, port=given.port) as server:
        print(server.port, flush=True)
        while True:
            time.sleep(3_600)


if __name__ == "__main__":
    main()
