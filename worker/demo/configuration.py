"""The configuration file of the demonstration, in the operator's own terms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from worker.demo.world import (
    EMAIL,
    GITHUB_REPOSITORY,
    GITHUB_TOKEN,
    JIRA_TOKEN,
    JSM_TOKEN,
    KUBERNETES_TOKEN,
    OPSGENIE_KEY,
    PAGERDUTY_TOKEN,
    SINK,
    SINK_TOKEN,
)

POLL_SECONDS = 1


def configuration(address: str, state: Path, port: int, model: str) -> dict[str, Any]:
    """Every source, one sink, every toolset that the world answers."""
    return {
        "state_dir": str(state),
        "model": {"name": model},
        "log": {"level": "info", "format": "json"},
        "server": {"host": "127.0.0.1", "port": port},
        "sources": {**_sources(address), **_ticketing(address)},
        "sinks": {SINK: {"kind": "webhook", "url": f"{address}/sink/{SINK}", "bearer_token": SINK_TOKEN}},
        "toolsets": {
            "kubernetes": {"kind": "kubernetes", "url": f"{address}/kubernetes", "token": KUBERNETES_TOKEN},
            "prometheus": {"kind": "prometheus", "url": f"{address}/prometheus"},
            "loki": {"kind": "loki", "url": f"{address}/loki"},
            "plan": {"kind": "plan"},
        },
    }


def _sources(address: str) -> dict[str, Any]:
    """Where alerts are kept as alerts."""
    return {
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
        "opsgenie": {
            "kind": "opsgenie",
            "url": f"{address}/opsgenie",
            "api_key": OPSGENIE_KEY,
            "poll_seconds": POLL_SECONDS,
        },
        "jsm": {
            "kind": "jsm_ops",
            "site": f"{address}/jsm",
            "url": f"{address}/jsm",
            "email": EMAIL,
            "api_token": JSM_TOKEN,
            "poll_seconds": POLL_SECONDS,
        },
    }


def _ticketing(address: str) -> dict[str, Any]:
    """Where they are issues."""
    return {
        "jira": {
            "kind": "jira",
            "url": f"{address}/jira",
            "email": EMAIL,
            "api_token": JIRA_TOKEN,
            "projects": "OPS",
            "poll_seconds": POLL_SECONDS,
        },
        "github": {
            "kind": "github",
            "url": f"{address}/github",
            "token": GITHUB_TOKEN,
            "repositories": [GITHUB_REPOSITORY],
            "labels": ["alert"],
            "poll_seconds": POLL_SECONDS,
        },
    }
