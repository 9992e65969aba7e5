"""What the receiver counts and what it reads from the store when Prometheus asks."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from agent.errors import Transient
from worker.store import Store

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One registry an app, so that two apps in one process don't share counts."""

    def __init__(self, store: Store) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Stored(store))
        self._webhooks = Counter(
            "rootcaused_webhook_requests",
            "Webhook requests by configured source and outcome.",
            ["source", "outcome"],
            registry=self._registry,
        )

    def webhook(self, source: str, outcome: str) -> None:
        """`source` is a configured name or "unknown": a name from outside would make a series a request."""
        self._webhooks.labels(source, outcome).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Stored(Collector):
    """Read anew at every scrape. With Redis away, that is all that is told."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = GaugeMetricFamily("rootcaused_redis_up", "1 while Redis answers.")
        try:
            counts, polls = self._store.counts(), self._store.polls()
        except Transient:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        alerts = GaugeMetricFamily("rootcaused_alerts", "Alert records by state.", labels=["state"])
        for state, count in counts.items():
            alerts.add_metric([state], count)
        yield alerts
        polled = GaugeMetricFamily(
            "rootcaused_poll_timestamp_seconds", "When a source was last polled.", labels=["source"]
        )
        failed = GaugeMetricFamily("rootcaused_poll_failed", "1 when a source's last poll failed.", labels=["source"])
        for source, poll in polls.items():
            polled.add_metric([source], float(poll["at"]))
            failed.add_metric([source], 1 if poll["error"] else 0)
        yield polled
        yield failed

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing, so that registering does not ask Redis."""
        yield from ()
