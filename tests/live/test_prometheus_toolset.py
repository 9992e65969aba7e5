"""The Prometheus tools against a real Prometheus that scrapes itself."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.alert import Alert
from agent.deadline import Deadline
from agent.tools import HealthState, ResultStatus, ToolContext, ToolResult, Toolset
from toolsets.configs import PrometheusConfig
from toolsets.prometheus import build

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="there is no prometheus on the PATH"),
]

CONFIG = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: prometheus
    static_configs: [{targets: ["127.0.0.1:PORT"]}]
  - job_name: down
    static_configs: [{targets: ["127.0.0.1:1"]}]
"""
RULES = """
groups:
  - name: live
    rules:
      - {alert: TargetDown, expr: up == 0, annotations: {summary: "a target is down"}}
      - {record: "job:up:sum", expr: sum by (job) (up)}
"""


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.1)


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("prometheus")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "prometheus.yml").write_text(CONFIG.replace("PORT", str(port)))
    (home / "rules.yml").write_text(RULES)
    command = [
        "prometheus",
        f"--config.file={home / 'prometheus.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--query.max-samples=20000",
    ]
    with (home / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=home) as process:
        try:
            wait_for(lambda: process.poll() is None and is_ready(f"http://127.0.0.1:{port}"), "prometheus is ready")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


@pytest.fixture(scope="module")
def tools(url: str) -> Toolset:
    built = build("prometheus", PrometheusConfig(url=url))
    for what in (
        "count(count_over_time(up[1m]) >= 3) == 2",
        "count_over_time(prometheus_http_requests_total[1m]) >= 3",
        'job:up:sum{job="prometheus"} == 1',
        'ALERTS{alertname="TargetDown", alertstate="firing"}',
    ):
        wait_for(lambda: call(built, "query", query=what, time="now").status is ResultStatus.SUCCESS, what)  # noqa: B023
    return build("prometheus", PrometheusConfig(url=url))  # the first one has kept what there was at the start


def call(tools: Toolset, verb: str, **arguments: Any) -> ToolResult:
    alert = Alert(source="am", id="1", title="t", starts_at=datetime.now(UTC) - timedelta(seconds=1))
    tool = next(tool for tool in tools.tools if tool.name == f"prometheus_{verb}")
    return tool.run(arguments, ToolContext(deadline=Deadline.after(20), alert=alert))


def test_the_check_is_good_and_names_the_version(tools: Toolset) -> None:
    health = tools.check(Deadline.after(10))
    assert health.state is HealthState.OK
    assert health.reason.startswith("version ")


def test_an_instant_query_shows_both_targets(tools: Toolset) -> None:
    result = call(tools, "query", query="up", time="now")
    assert result.status is ResultStatus.SUCCESS
    assert "2 series" in result.data
    assert result.data.endswith(" 0")
    assert result.url.startswith(f"{result.url.partition('/graph')[0]}/graph?g0.expr=up&g0.tab=1")


def test_a_range_query_over_thirty_days_by_the_second_is_answered(tools: Toolset) -> None:
    result = call(tools, "query_range", query="up", start="-30d", end="now", step="1s")
    assert result.status in (ResultStatus.SUCCESS, ResultStatus.NO_DATA)
    result = call(tools, "query_range", query="prometheus_http_requests_total", start="-2m", end="now", step="1s")
    assert result.status is ResultStatus.SUCCESS
    assert "counter first=" in result.data or "constant" in result.data


def test_the_step_does_not_go_below_the_scrape_interval(tools: Toolset) -> None:
    result = call(tools, "query_range", query="up", start="-1m", end="now")
    assert result.query.endswith("step 1s")


def test_a_parse_error_is_marked_at_the_place(tools: Toolset) -> None:
    result = call(tools, "query", query="sum(rate(up[5m])")
    assert result.status is ResultStatus.ERROR
    assert result.error.startswith("bad_data: ")
    assert "\nsum(rate(up[5m])\n" in result.error
    assert "^" in result.error


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("rate(up)", "give the function a range"),
        ("up * on() up", "group_left"),
        ('last_over_time({__name__=~".+"}[5m:100ms])', "aggregate"),
        ("{}", "name a metric"),
    ],
)
def test_refusals_come_with_what_to_try(tools: Toolset, query: str, hint: str) -> None:
    wait_for(lambda: call(tools, "query", query=query, time="now").status is ResultStatus.ERROR, query)
    assert hint in call(tools, "query", query=query, time="now").error


def test_an_unknown_metric_leads_to_the_real_one(tools: Toolset) -> None:
    result = call(tools, "query", query="rate(prometheus_http_request_total[1m])", time="now")
    assert result.status is ResultStatus.NO_DATA
    assert "closest: prometheus_http_requests_total" in result.data


def test_a_wrong_label_value_leads_to_the_real_ones(tools: Toolset) -> None:
    result = call(tools, "query", query='up{job="prom"}', time="now")
    assert result.data == 'up: job="prom" matches no value; there are down, prometheus'
    result = call(tools, "query", query='up{job=~"prom|x"}', time="now")
    assert result.data.startswith('up: job=~"prom|x" matches no value; there are down, prometheus')


def test_a_condition_that_nothing_meets_is_said(tools: Toolset) -> None:
    result = call(tools, "query", query="up > 5", time="now")
    assert result.data == "up matches 2 series: the comparison, join or function around it leaves none"


def test_series_labels_and_metadata_are_listed(tools: Toolset) -> None:
    assert "2 series" in call(tools, "series", match="up", start="-5m", end="now").data
    assert "job" in call(tools, "labels", end="now", start="-5m").data
    values = call(tools, "labels", label="job", match="up", start="-5m", end="now")
    assert values.data == "2: down, prometheus"
    names = call(tools, "labels", label="__name__", search="build_info", start="-5m", end="now")
    assert "prometheus_build_info" in names.data
    assert "counter, " in call(tools, "metadata", metric="prometheus_http_requests").data


def test_rules_and_alerts_show_what_fires(tools: Toolset) -> None:
    rules = call(tools, "rules").data
    assert "TargetDown (group live) firing, 1 active: up == 0" in rules
    assert "job:up:sum (group live) recording: sum by (job) (up)" in rules
    alerts = call(tools, "alerts", search="down").data
    assert "1 alerts" in alerts
    assert 'alertname="TargetDown"' in alerts


def test_a_long_query_is_taken_as_a_form(tools: Toolset) -> None:
    result = call(tools, "query", query=f'up{{job=~"{"|".join(["prometheus"] * 300)}"}}', time="now")
    assert result.status is ResultStatus.SUCCESS


def test_the_link_opens_the_page_of_this_server(tools: Toolset) -> None:
    link = call(tools, "query_range", query="up", start="-1m", end="now").url
    with urllib.request.urlopen(link, timeout=5) as page:
        assert page.status == 200
