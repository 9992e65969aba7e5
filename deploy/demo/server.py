"""The HTTP server: one address, the played systems by the first step of the path, faults on demand."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from deploy.demo import catalog, exporters, podlogs
from deploy.demo.alertmanager import Alertmanager
from deploy.demo.control import Control, Faults, Requests
from deploy.demo.exchange import Played, Reply, Request
from deploy.demo.github import GitHub
from deploy.demo.jira import Jira
from deploy.demo.kubernetes import Kubernetes
from deploy.demo.loki import Loki
from deploy.demo.opsalerts import JsmOps, OpsGenie
from deploy.demo.pagerduty import PagerDuty
from deploy.demo.prometheus import Prometheus
from deploy.demo.promql.evaluator import Database
from deploy.demo.scene import Clock
from deploy.demo.sink import Sink
from deploy.demo.state import Clock as Now
from deploy.demo.state import State
from deploy.demo.tickets import Tickets

MAX_BODY_BYTES = 10_000_000


class World(ThreadingHTTPServer):
    """Listens on loopback alone; its credentials are made up."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, folder: Path, now: Now = time.time, seed: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        self.faults = Faults()
        self.requests = Requests()
        self.played = self._systems(State(folder, now, seed))

    def _systems(self, state: State) -> Mapping[str, Played]:
        clock = Clock(state.began)
        scene = catalog.incidents(clock, state.seed)
        cluster = catalog.cluster(clock, scene)
        tickets = Tickets(scene, state)
        streams = podlogs.streams(cluster)
        database = Database(exporters.everything(cluster))
        return {
            "pagerduty": PagerDuty(tickets, state, f"{self.address}/pagerduty"),
            "alertmanager": Alertmanager(tickets, state, f"{self.address}/prometheus"),
            "opsgenie": OpsGenie(tickets, state, f"{self.address}/opsgenie"),
            "jsm": JsmOps(tickets, state, f"{self.address}/jsm"),
            "jira": Jira(tickets, state, f"{self.address}/jira"),
            "github": GitHub(tickets, state, f"{self.address}/github"),
            "sink": Sink(state),
            "prometheus": Prometheus(database, exporters.metadata(cluster), tickets, state.now),
            "loki": Loki(streams, state.now),
            "kubernetes": Kubernetes(cluster, streams, state.now),
            "demo": Control(tickets, state, self.faults, self.requests),
        }

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """What the played system says."""
        parts = urlsplit(target)
        first, _, rest = parts.path.lstrip("/").partition("/")
        system = self.played.get(first)
        if system is None:
            return Reply(status=404, payload={"error": f"there are: {' '.join(f'/{name}' for name in self.played)}"})
        query = parse_qs(parts.query, keep_blank_values=True)
        return system.handle(Request(method=method, path=f"/{unquote(rest)}", query=query, headers=headers, body=body))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # head and body in one packet: in two, each reply waits 40 ms for the client's acknowledgement
    disable_nagle_algorithm = True
    server: World

    def _serve(self) -> None:
        method, path = self.command, urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(min(MAX_BODY_BYTES, int(headers.get("content-length") or 0)))
        is_ours = path.startswith("/demo")
        fault = None if is_ours else self.server.faults.take(method, path)
        if not is_ours:
            self.server.requests.count(method, path)
        if fault is not None and fault.delay:
            time.sleep(fault.delay)
        if fault is not None and fault.status:
            more = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            self._send(Reply(status=fault.status, payload={"error": "fault asked for"}, headers=more))
            return
        reply = self.server.answer(method, self.path, headers, body)
        if fault is not None and fault.drop:  # acted, but the caller never hears of it
            self.close_connection = True
            return
        self._send(reply)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815  # the names http.server asks for

    def _send(self, reply: Reply) -> None:
        body = reply.body()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the signature of http.server
        """Silent; `GET /demo/requests` tells what was asked."""
