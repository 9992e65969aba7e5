"""The rules analyst over the demo world: the real loop and the real toolsets, over HTTP, in one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent.alert import Alert
from agent.deadline import Deadline
from agent.report import Outcome, Report
from deploy.demo.server import World
from worker.demo.configuration import configuration
from worker.settings import Settings
from worker.wiring import build_sources, investigate_once

HOLD = timedelta(minutes=15)  # the longest time that a condition held before a rule paged

# Alert title to mechanism, component and what set it off.
CAUSES = {
    "cart-api: more than 5% of requests fail": ("memory_limit", "cart-api", "change"),
    "invoice-api: p99 latency": ("connection_pool_exhausted", "invoice-api", "change"),
    "fx-rates-api: rates are stale": ("dns_failure", "fx-rates-api", "dependency"),
    "payment-api: card charges fail": ("dependency_down", "api.paywave.example", "dependency"),
    "orders-api: orders can not be placed": ("disk_full", "data-orders-db-0", "capacity"),
    "shipping-api": ("probe_failure.readiness_port", "shipping-api", "change"),
    "mailer": ("missing_reference.configmap", "mailer", "change"),
    "sso.example.com": ("certificate_expired", "sso-gateway", "external"),
    "search-api": ("image_pull.reference", "search-api", "change"),
    "pricing-api p99": ("noisy_neighbour", "report-export-29410", "load"),
}
HEALTHY = ("profile-api: p99 latency above 1 s", "thumbnail-api p95 above 250 ms")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, tuple[Alert, Report]]]:
    """Title and labels of each open alert to what was made of it."""
    world = World(0, tmp_path_factory.mktemp("world"))
    thread = threading.Thread(target=world.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        folder: Path = tmp_path_factory.mktemp("state")
        settings = Settings.model_validate(configuration(world.address, folder, 1, "rules"))
        alerts = list(_open_alerts(settings))
        with ThreadPoolExecutor(4) as pool:
            made = pool.map(lambda alert: investigate_once(settings, alert), alerts)
            yield {f"{alert.title} {alert.labels}": (alert, report) for alert, report in zip(alerts, made, strict=True)}
    finally:
        world.shutdown()
        thread.join()
        world.server_close()


def _open_alerts(settings: Settings) -> Iterator[Alert]:
    for source in build_sources(settings).values():
        for page in source.poll("", deadline=Deadline.after(20)):
            yield from (alert for alert in page.alerts if not alert.resolved)


def of(reports: Mapping[str, tuple[Alert, Report]], words: str) -> tuple[Alert, Report]:
    return next(found for key, found in reports.items() if words in key)


def test_every_open_incident_is_investigated(reports):
    assert len(reports) == len(CAUSES) + len(HEALTHY)


@pytest.mark.parametrize("words", CAUSES)
def test_the_cause_is_found_and_confirmed(reports, words):
    _, report = of(reports, words)
    assert report.root_cause is not None, report.headline
    cause = report.root_cause
    assert (cause.category, cause.component, cause.trigger) == CAUSES[words]
    assert (report.outcome, report.confidence.level) == (Outcome.CONFIRMED, "high"), report.confidence


@pytest.mark.parametrize("words", HEALTHY)
def test_an_incident_that_is_over_convicts_nobody(reports, words):
    _, report = of(reports, words)
    assert report.outcome is Outcome.NOT_AN_ISSUE
    assert report.root_cause is None


@pytest.mark.parametrize("words", CAUSES)
def test_the_onset_lies_shortly_before_the_alert_and_stands_in_the_headline(reports, words):
    alert, report = of(reports, words)
    assert report.root_cause is not None
    began: datetime | None = report.root_cause.onset_at
    assert began is not None
    assert alert.starts_at is not None
    assert alert.starts_at - HOLD <= began <= alert.starts_at
    assert f"{began:%H:%M}" in report.headline or len(report.headline) > 110


@pytest.mark.parametrize("words", [*CAUSES, *HEALTHY])
def test_evidence_is_short_decisive_first_and_verified(reports, words):
    _, report = of(reports, words)
    weights = [one.weight for one in report.evidence]
    assert len(weights) <= 10
    assert weights[0] == "decisive"
    assert "contradicting" not in weights
    assert all(one.verified for one in report.evidence)
    assert len({one.quote for one in report.evidence}) == len(weights)
    assert report.checks.claims_uncited == 0
    assert report.root_cause is None or 1 <= len(report.root_cause.evidence) <= 4
