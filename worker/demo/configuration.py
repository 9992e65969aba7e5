"""The configuration file of the demonstration, in the operator's own terms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from worker.demo.world import EMAIL, KUBERNETES_TOKEN, PAGERDUTY_TOKEN, SINK, SINK_TOKEN

POLL_SECONDS = 1


def configuration(address: str, state: Path, port: int, model: str) -> dict[str, Any]:
    """Both sources, one sink, every toolset that the world answers."""
    return {
        "state_dir": str(state),
        "model": {"name": model},
        "log": {"level": "info", "format": "json"},
        "server": {"host": "127.0.0.1", "port": port},
        "sources": {
            "pagerduty": {
                "kind": "pagerduty",
                "url": f"{address}/pagerduty",
                "token": PAGERDUTY_TOKEN,
                "from_email": EMAIL,
                "poll_seconds": POLL_SECONDS,
            },
            "alertmanager": {
                "kind": "alertmanager",
                "url": f"{address}/alertmanager",
                "poll_seconds": POLL_SECONDS,
                "write_to": SINK,
            },
        },
        "sinks": {SINK: {"kind": "webhook", "url": f"{address}/sink/{SINK}", "bearer_token": SINK_TOKEN}},
        "toolsets": {
            "kubernetes": {"kind": "kubernetes", "url": f"{address}/kubernetes", "token": KUBERNETES_TOKEN},
            "prometheus": {"kind": "prometheus", "url": f"{address}/prometheus"},
            "loki": {"kind": "loki", "url": f"{address}/loki"},
            "plan": {"kind": "plan"},
        },
    }
