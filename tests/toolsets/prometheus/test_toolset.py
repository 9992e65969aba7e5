"""The Prometheus tools: what they cost, what they list, what they refuse; over real HTTP."""

from __future__ import annotations

from typing import Any

from agent.deadline import Deadline
from agent.tools import HealthState, ResultStatus, compact_json
from tests.support.prom_calls import NAMES, QUERY, RANGE, call, toolset
from tests.support.prom_server import ApiServer
from toolsets.configs import PrometheusConfig
from toolsets.prometheus import build


def test_the_seven_tools_cost_few_tokens(server: ApiServer) -> None:
    tools = toolset(server).tools
    assert [tool.name.removeprefix("prometheus_") for tool in tools] == [
        "query", "query_range", "series", "labels", "rules", "alerts", "metadata",
    ]  # fmt: skip
    assert sum(len(compact_json(tool.schema())) for tool in tools) / 4 <= 650
    assert not any(tool.restricted for tool in tools)


def test_building_reaches_no_network() -> None:
    build("prometheus", PrometheusConfig(url="http://127.0.0.1:1"))


def test_only_reads_are_ever_sent(server: ApiServer) -> None:
    long = f'up{{job="{"x" * 3_000}"}}'
    tools = toolset(server)
    for tool in tools.tools:
        for text in ("up", long):
            names = set(tool.parameters["properties"]) - {"start", "end", "time", "step"}
            arguments: dict[str, Any] = dict.fromkeys(names, text)
            call(tools, tool.name.removeprefix("prometheus_"), **arguments)
    tools.check(Deadline.after(5))
    forms = {request.path for request in server.asked if request.method == "POST"}
    assert forms <= {QUERY, RANGE, "/api/v1/series", "/api/v1/labels"}
    assert {request.method for request in server.asked} == {"GET", "POST"}


def test_series_are_factored_counted_and_cut(server: ApiServer) -> None:
    server.data("/api/v1/series", [{"__name__": "up", "job": "api", "pod": f"p{index}"} for index in range(500)])
    result = call(toolset(server), "series", match="up", start="-1h")
    lines = result.data.splitlines()
    assert lines[0] == '500 series; all have up{job="api"}'
    assert lines[1].startswith("PARTIAL: 100 of 500 series shown, unordered")
    assert lines[2] == "distinct label values: pod 500"
    assert lines[3] == '{pod="p0"}'


def test_label_names_and_values_can_be_searched(server: ApiServer) -> None:
    server.data("/api/v1/labels", ["__name__", "job"])
    server.data(NAMES, ["node_cpu_seconds_total", "node_load1", "up"])
    tools = toolset(server)
    assert call(tools, "labels").data == "2: __name__, job"
    assert call(tools, "labels", label="__name__", search="CPU").data == "1: node_cpu_seconds_total"
    missing = call(tools, "labels", label="__name__", search="node_laod1")
    assert missing.status is ResultStatus.NO_DATA
    assert "closest: node_load1" in missing.data


def test_a_label_name_cannot_leave_its_place_in_the_path(server: ApiServer) -> None:
    call(toolset(server), "labels", label="../../admin/tsdb/delete_series")
    assert server.paths() == ["/api/v1/label/U___2e__2e__2f__2e__2e__2f_admin_2f_tsdb_2f_delete__series/values"]


def test_metadata_is_found_by_a_part_of_the_name(server: ApiServer) -> None:
    every = {"node_load1": [{"type": "gauge", "help": "1m load average.", "unit": ""}], "up": [{"type": "gauge"}]}
    server.answers["/api/v1/metadata"] = lambda fields: (
        200,
        {"status": "success", "data": {} if fields.get("metric") else every},
    )
    tools = toolset(server)
    assert call(tools, "metadata", metric="load").data == "node_load1: gauge, 1m load average."
    assert call(tools, "metadata", metric="node_loda1").status is ResultStatus.NO_DATA


def test_rules_show_this_alerts_rule_first_then_broken_and_firing_ones(server: ApiServer) -> None:
    def rule(name: str, state: str = "inactive", **also: Any) -> dict[str, Any]:
        return {"name": name, "query": f"{name} > 1", "state": state, "type": "alerting", **also}

    ours = rule("Ours", "firing", duration=300, alerts=[{}, {}], annotations={"runbook_url": "https://r/1"})
    broken = rule("Broken", lastError="many-to-many")
    recorded = {"name": "job:up:sum", "query": "sum by (job) (up)", "type": "recording"}
    server.data(
        "/api/v1/rules",
        {"groups": [{"name": "g", "rules": [recorded, rule("Calm"), broken, rule("Loud", "firing"), ours]}]},
    )
    result = call(toolset(server), "rules")
    assert result.data.splitlines() == [
        "5 rules",
        "Ours (group g) firing, 2 active, for 5m: Ours > 1",
        "  runbook_url: https://r/1",
        "Broken (group g) inactive: Broken > 1",
        "  rule fails: many-to-many",
        "Loud (group g) firing: Loud > 1",
        "Calm (group g) inactive: Calm > 1",
        "job:up:sum (group g) recording: sum by (job) (up)",
    ]
    assert result.url == f"{server.url}/rules"
    assert call(toolset(server), "rules", search="nothing like it").status is ResultStatus.NO_DATA


def test_alerts_show_state_value_and_since_when(server: ApiServer) -> None:
    def alert(name: str, state: str, at: str) -> dict[str, Any]:
        return {"labels": {"alertname": name, "team": "a"}, "state": state, "activeAt": at, "value": "1e+00"}

    both = [alert("Slow", "pending", "2026-12-01T01:58:00.123456789Z"), alert("Down", "firing", "2026-12-01T01:50:00Z")]
    server.data("/api/v1/alerts", {"alerts": both})
    tools = toolset(server)
    assert call(tools, "alerts").data.splitlines() == [
        '2 alerts; all have {team="a"}',
        'firing {alertname="Down"} since 2026-12-01T01:50:00Z value=1',
        'pending {alertname="Slow"} since 2026-12-01T01:58:00Z value=1',
    ]
    assert call(tools, "alerts", search="disk").data == "2 alerts are pending or firing; none matches"


def test_the_check_asks_what_the_tools_will_ask(server: ApiServer) -> None:
    server.answers["/-/ready"] = (200, "Ready")
    server.answers[QUERY] = (401, "no")
    health = toolset(server).check(Deadline.after(5))
    assert health.state is HealthState.FAILED
    assert "credentials" in health.reason
    assert health.remedy
    server.data(QUERY, {"resultType": "scalar", "result": [1, "1"]})
    assert toolset(server).check(Deadline.after(5)).state is HealthState.OK
    server.data("/api/v1/status/buildinfo", {"version": "2.42.0"})
    assert toolset(server).check(Deadline.after(5)).reason == "version 2.42.0"
