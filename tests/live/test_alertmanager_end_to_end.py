"""A real Prometheus evaluates a real rule, a real Alertmanager holds the alert, and we see it both ways."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.deployment import Deployment, eventually, get_json
from tests.support.redis_process import RedisProcess
from worker.record import State

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not (shutil.which("prometheus") and shutil.which("prometheus-alertmanager")),
        reason="needs Debian's prometheus and prometheus-alertmanager: make test-live installs them",
    ),
]
WEBHOOK_TOKEN = "made-up-webhook-token"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Exporter:
    """One gauge, which the test moves."""

    def __init__(self) -> None:
        self.depth = 4217.0
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = f"# TYPE shipping_queue_depth gauge\nshipping_queue_depth {exporter.depth}\n".encode()
                self.send_response(200)
                self.send_header("content-type", "text/plain; version=0.0.4")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@dataclass
class Monitoring:
    prometheus: str
    alertmanager: str
    exporter: Exporter


def alertmanager_config(webhook: str) -> dict[str, Any]:
    push = {"url": webhook, "send_resolved": True, "http_config": {"authorization": {"credentials": WEBHOOK_TOKEN}}}
    route = {"receiver": "rootcaused", "group_wait": "1s", "group_interval": "2s", "repeat_interval": "1h"}
    return {"route": route, "receivers": [{"name": "rootcaused", "webhook_configs": [push]}]}


def prometheus_config(exporter: int, alertmanager: int) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]},
        "scrape_configs": [{"job_name": "shipping", "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}]}],
    }


RULE = {
    "alert": "ShippingQueueDeep",
    "expr": "shipping_queue_depth > 1000",
    "labels": {"severity": "critical", "service": "shipping"},
    "annotations": {"summary": "The shipping queue holds more than 1000 orders"},
}


@contextmanager
def running(*command: str, log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


@contextmanager
def monitoring(folder: Path, webhook: str) -> Iterator[Monitoring]:
    exporter, prometheus, alertmanager = Exporter(), free_port(), free_port()
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "shipping", "rules": [RULE]}]}))
    (folder / "prometheus.yml").write_text(yaml.safe_dump(prometheus_config(exporter.port, alertmanager)))
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(alertmanager_config(webhook)))
    alertmanager_command = [
        "prometheus-alertmanager",
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}/am",
        f"--web.listen-address=127.0.0.1:{alertmanager}",
        "--cluster.listen-address=",
    ]
    prometheus_command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{prometheus}",
    ]
    try:
        with (
            running(*alertmanager_command, log=folder / "alertmanager.out"),
            running(*prometheus_command, log=folder / "prometheus.out"),
        ):
            yield Monitoring(f"http://127.0.0.1:{prometheus}", f"http://127.0.0.1:{alertmanager}", exporter)
    finally:
        exporter.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Deployment, Monitoring]]:
    port = free_port()
    webhook = f"http://127.0.0.1:{port}/webhooks/alertmanager"
    with RedisProcess(tmp_path) as redis, monitoring(tmp_path, webhook) as servers:
        config = {
            "state_dir": str(tmp_path / "state"),
            "redis": {"url": redis.url},
            "server": {"port": port},
            "sources": {
                "alertmanager": {
                    "kind": "alertmanager",
                    "url": servers.alertmanager,
                    "webhook_token": WEBHOOK_TOKEN,
                    "poll_seconds": 1,
                    "write_to": "reports",
                }
            },
            "sinks": {"reports": {"kind": "file", "path": str(tmp_path / "reports.jsonl")}},
            "toolsets": {"prometheus": {"kind": "prometheus", "url": servers.prometheus}, "plan": {"kind": "plan"}},
        }
        deployed = Deployment(tmp_path, redis, "", config)
        try:
            yield deployed, servers
        except BaseException:
            print(deployed.logs())
            raise
        finally:
            deployed.stop()


def reports(deployed: Deployment) -> list[dict[str, Any]]:
    file = deployed.folder / "reports.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def pushed(deployed: Deployment) -> float:
    """How many webhook requests the receiver took, by its own metrics."""
    port = deployed.config["server"]["port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    counts = [line for line in lines if line.startswith("rootcaused_webhook") and 'source="alertmanager"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in counts if "_created" not in line)


def firing(servers: Monitoring) -> list[dict[str, Any]]:
    alerts: list[dict[str, Any]] = get_json(f"{servers.alertmanager}/api/v2/alerts")
    return alerts


def test_a_real_alert_is_investigated_once_however_it_came_and_again_when_it_fires_anew(
    place: tuple[Deployment, Monitoring],
) -> None:
    deployed, servers = place
    for role in (("serve",), ("schedule",), ("worker",)):
        deployed.start(*role)
    eventually(lambda: reports(deployed), "the first report reached the sink", 120)
    eventually(lambda: pushed(deployed) >= 1, "Alertmanager pushed it")
    eventually(lambda: deployed.store.polls().get("alertmanager", {}).get("seen") == 1, "the poll saw it")
    records = deployed.store.records(source="alertmanager")
    assert len(records) == 1
    assert records[0].state is State.WRITTEN
    first = reports(deployed)
    assert len(first) == 1
    evidence = first[0]["report"]["evidence"]
    assert any(
        item["verified"] and "4217" in item["quote"] and item["tool"].startswith("prometheus") for item in evidence
    )

    servers.exporter.depth = 3
    eventually(lambda: not firing(servers), "the alert resolved", 60)
    servers.exporter.depth = 5_309
    eventually(lambda: len(reports(deployed)) == 2, "the second report reached the sink", 120)
    newest, oldest = deployed.store.records(source="alertmanager")
    assert newest.alert.fingerprint == oldest.alert.fingerprint
    assert newest.key != oldest.key
    related = reports(deployed)[1]["report"]["related"]
    assert [item["id"] for item in related if item["kind"] == "prior_incident"] == [oldest.investigation]
