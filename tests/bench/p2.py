"""P2: alerts a second from Alertmanager's poll to the written report, beside Celery no-op tasks on the same Redis."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog

from tests.bench.figure import Figure, Options
from tests.support.redis_process import RedisProcess
from worker.pipeline.poll import poll
from worker.queue import make_app
from worker.record import DEFAULT
from worker.settings import Settings
from worker.wiring import build_front

ROOT = Path(__file__).parents[2]
ALERTS = 400
NO_OPS = 2_000
PROCESSES = 2


def run(options: Options) -> Iterator[Figure]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    count = options.limit or ALERTS
    with tempfile.TemporaryDirectory() as folder, RedisProcess(Path(folder)) as redis:
        no_ops = _no_ops(redis)
        redis.flush()
        alerts = _alerts(redis, count)
    yield Figure(name="p2.noop_tasks_per_second", value=no_ops, n=NO_OPS, unit="1/s")
    yield Figure(name="p2.alerts_per_second", value=alerts, n=count, unit="1/s")
    yield Figure(name="p2.alerts_over_noop", value=alerts / no_ops, n=count, unit="ratio", target=1 / 6)


def _no_ops(redis: RedisProcess) -> float:
    app = make_app(Settings(), redis.url)
    with _worker("noop", redis.url, "", DEFAULT):
        app.send_task("rootcaused.noop", queue=DEFAULT)  # the first waits for the worker to be up
        _until(lambda: _counter(redis) >= 1)
        for _ in range(NO_OPS):
            app.send_task("rootcaused.noop", queue=DEFAULT)
        begun, done = time.monotonic(), _counter(redis)
        _until(lambda: _counter(redis) > NO_OPS)
        return (NO_OPS + 1 - done) / (time.monotonic() - begun)


def _alerts(redis: RedisProcess, count: int) -> float:
    """One poll admits them all; from there to the last written report. Both kinds of worker share the cores."""
    with _alertmanager(count) as address:
        settings = settings_for(address, redis.url)
        front = build_front(settings)
        with _worker("investigate", redis.url, address), _worker("io", redis.url, address):
            _until(lambda: front.store.redis.exists("bench:investigate") and front.store.redis.exists("bench:io"))
            begun = time.monotonic()
            assert poll(front, "alertmanager") == count
            _until(lambda: front.store.counts()["written"] >= count)
            return count / (time.monotonic() - begun)


def settings_for(address: str, redis_url: str) -> Settings:
    source = {"kind": "alertmanager", "url": address, "write_to": "sink"}
    return Settings.model_validate(
        {
            "redis": {"url": redis_url},
            "sources": {"alertmanager": source},
            "storm": {"enabled": False},  # every alert is to be investigated
            "sinks": {"sink": {"kind": "webhook", "url": f"{address}/sink"}},
            "worker": {"concurrency": PROCESSES, "max_tasks_per_child": 100_000},
        }
    )


def _counter(redis: RedisProcess) -> int:
    import redis as client_library

    with client_library.Redis.from_url(redis.url) as client:
        return int(client.get("bench:noop") or 0)


def _until(holds: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("the benchmark did not come to its end")
        time.sleep(0.02)


@contextmanager
def _worker(role: str, redis_url: str, address: str, *_: str) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.bench.p2_worker", role, redis_url, address]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def _alertmanager(count: int) -> Iterator[str]:
    """Plays Alertmanager and the sink, in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.p2", str(count)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def _listed(count: int) -> list[dict[str, Any]]:
    return [
        {
            "labels": {"alertname": "QueueDeep", "severity": "warning", "shard": str(number)},
            "annotations": {"summary": "The queue holds more than 1000 orders"},
            "startsAt": "2031-02-03T04:05:06.000Z",
            "endsAt": "2031-02-03T05:05:06.000Z",
            "updatedAt": "2031-02-03T04:05:06.000Z",
            "fingerprint": f"{number:016x}",
            "receivers": [{"name": "all"}],
            "status": {"state": "active", "silencedBy": [], "inhibitedBy": []},
            "generatorURL": "http://127.0.0.1/graph",
        }
        for number in range(count)
    ]


def serve(count: int) -> None:
    alerts = {alert["labels"]["shard"]: alert for alert in _listed(count)}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one segment a reply: two would wait 40 ms for each other's acknowledgement

        def do_GET(self) -> None:
            matchers = parse_qs(urlsplit(self.path).query).get("filter", [])
            shards = [text.partition("=")[2].strip('"') for text in matchers if text.startswith("shard=")]
            self._send([alerts[shards[0]]] if shards else list(alerts.values()))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self._send({})

        def _send(self, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    threading.Thread(target=server.serve_forever).run()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
