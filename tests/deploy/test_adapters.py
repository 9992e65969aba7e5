"""The daemon's own adapters and toolsets read the world without a complaint."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from agent.deadline import Deadline
from agent.tools import HealthState
from sources.catalog import build_source
from toolsets.catalog import build_toolset, check_all
from worker.demo.configuration import configuration
from worker.settings import Settings

SECONDS = 20.0


@pytest.fixture
def settings(fresh):
    return Settings.model_validate(configuration(fresh.world.address, Path("/nonexistent"), 8080, "rules"))


@pytest.mark.parametrize("name", ["pagerduty", "alertmanager", "opsgenie", "jsm", "jira", "github"])
def test_a_source_polls_two_alerts_and_fetches_each(settings, name):
    source = build_source(name, settings.sources[name])
    deadline = Deadline.after(SECONDS)
    pages = list(source.poll("", deadline=deadline))
    assert [broken for page in pages for broken in page.broken] == []
    alerts = list(chain.from_iterable(page.alerts for page in pages))
    assert len({alert.key for alert in alerts}) == 2
    assert all(source.fetch(alert.id, deadline=deadline) for alert in alerts)
    assert all({"alertname", "namespace"} <= alert.labels.keys() for alert in alerts)


def test_every_toolset_finds_its_server_well(settings):
    toolsets = [build_toolset(name, config) for name, config in settings.toolsets.items()]
    health = check_all(toolsets, Deadline.after(SECONDS))
    assert {name: found.state for name, found in health.items()} == dict.fromkeys(settings.toolsets, HealthState.OK)
