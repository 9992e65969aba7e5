"""The catalog: what is configured is what is built, and reading it costs little."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import TypeAdapter, ValidationError

from sources.catalog import SinkConfig, SourceConfig, build_sink, build_source

SOURCES: TypeAdapter[SourceConfig] = TypeAdapter(SourceConfig)
SINKS: TypeAdapter[SinkConfig] = TypeAdapter(SinkConfig)


@pytest.mark.parametrize("written", [
    {"kind": "pagerduty", "token": "t", "from_email": "a@b.example"},
    {"kind": "opsgenie", "api_key": "k"},
    {"kind": "github", "token": "t", "repositories": "acme/shop", "labels": "alert"},
    {"kind": "jira", "url": "https://x.example", "email": "a@b", "api_token": "t", "jql": "a = b"},
    {"kind": "jsm_ops", "email": "a@b.example", "api_token": "t", "site": "https://a.atlassian.net"},
    {"kind": "alertmanager", "url": "http://am:9093", "write_to": "chat"},
])  # fmt: skip
def test_every_kind_of_source_is_built(written: dict[str, str]) -> None:
    source = build_source("one", SOURCES.validate_python(written))
    assert (source.name, source.kind) == ("one", written["kind"])


@pytest.mark.parametrize("written", [
    {"kind": "webhook", "url": "https://h.example/x"},
    {"kind": "slack", "url": "https://hooks.example/T/B/X"},
    {"kind": "file", "path": "/nowhere/reports.jsonl"},
])  # fmt: skip
def test_every_kind_of_sink_is_built(written: dict[str, str]) -> None:
    assert build_sink("two", SINKS.validate_python(written)).name == "two"


@pytest.mark.parametrize("written", [
    {"kind": "pager", "token": "t"}, {"kind": "pagerduty", "token": "t", "from_email": "nobody"},
    {"kind": "pagerduty", "token": "t", "from_email": "a@b", "tokn": "x"},
])  # fmt: skip
def test_a_misspelt_source_is_refused(written: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        SOURCES.validate_python(written)


@pytest.mark.parametrize("written", [
    {"kind": "slack", "url": "hooks.example/SECRETPATH"}, {"kind": "slack", "url": "https://h/x", "channel": "#a"},
])  # fmt: skip
def test_a_misspelt_sink_is_refused_without_showing_its_address(written: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        SINKS.validate_python(written)
    assert "SECRETPATH" not in str(caught.value.errors(include_input=False))


def test_no_configuration_shows_its_secrets() -> None:
    written = {"kind": "pagerduty", "token": "secret-1", "from_email": "a@b.example", "webhook_secrets": "secret-2"}
    assert "secret-" not in repr(SOURCES.validate_python(written))


def test_reading_the_catalog_loads_no_client_library() -> None:
    heavy = "{'requests', 'urllib3', 'pagerduty', 'httpx2', 'celery', 'litellm', 'redis'}"
    script = f"import sys, sources.catalog; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
