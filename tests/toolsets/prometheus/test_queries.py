"""PromQL through the tools: results, steps, and the errors a model reads; over real HTTP."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from agent.deadline import Deadline
from agent.tools import ResultStatus
from tests.support.prom_calls import CONFIG, NOW, QUERY, RANGE, SECRET, call, toolset
from tests.support.prom_server import ApiServer, Reply
from toolsets.configs import PrometheusConfig
from toolsets.prometheus import build


def test_an_instant_query_gives_values_with_query_time_and_link(server: ApiServer) -> None:
    server.vector(QUERY, ({"__name__": "up", "job": "api"}, 0), ({"__name__": "up", "job": "db"}, 1))
    result = call(toolset(server), "query", query="up")
    assert result.status is ResultStatus.SUCCESS
    assert result.query == "up at 2026-12-01T02:00:00Z"
    assert result.data.splitlines() == [
        "2 series, at 2026-12-01T02:00:00Z; all have up",
        '{job="db"} 1',
        '{job="api"} 0',
    ]
    assert result.url == f"{server.url}/graph?g0.expr=up&g0.tab=1&g0.moment_input=2026-12-01%2002%3A00%3A00"
    assert result.value[0] == {"metric": {"__name__": "up", "job": "api"}, "values": [[1_796_090_400.0, 0.0]]}


def test_an_old_alerts_instant_query_is_at_the_end_of_its_window(server: ApiServer) -> None:
    server.vector(QUERY, ({}, 1))
    result = call(toolset(server), "query", query="up", starts_at=NOW - timedelta(days=2))
    assert result.query == "up at 2026-11-29T08:00:00Z"


def test_scalars_nan_infinities_and_native_histograms_are_shown(server: ApiServer) -> None:
    tools = toolset(server)
    server.data(QUERY, {"resultType": "scalar", "result": [1_796_090_400, "NaN"]})
    assert call(tools, "query", query="0/0").data.endswith("{} NaN")
    server.vector(QUERY, ({"pod": "a"}, "+Inf"), ({"pod": "b"}, "-Inf"))
    assert call(tools, "query", query="x").data.splitlines()[1:] == ['{pod="a"} +Inf', '{pod="b"} -Inf']
    histogram = {"count": "12", "sum": "3.5", "buckets": [[0, "1", "2", "12"]]}
    server.data(QUERY, {"resultType": "vector", "result": [{"metric": {"pod": "a"}, "histogram": [1.0, histogram]}]})
    assert '{pod="a"} 12 (count of a native histogram)' in call(tools, "query", query="x").data


def test_a_range_selector_at_one_time_is_summarised(server: ApiServer) -> None:
    server.matrix(QUERY, ({"__name__": "load"}, [(NOW.timestamp() + at, at) for at in range(0, 300, 60)]))
    assert "1 series, raw samples\nload first=0 last=240" in call(toolset(server), "query", query="load[5m]").data


def test_warnings_and_infos_stand_first(server: ApiServer) -> None:
    server.data(
        QUERY,
        {"resultType": "vector", "result": [{"metric": {}, "value": [1, "1"]}]},
        warnings=["a store is down"],
        infos=["metric might not be a counter"],
    )
    lines = call(toolset(server), "query", query="x").data.splitlines()
    assert lines[:2] == ["warning: a store is down", "info: metric might not be a counter"]


# --- query_range


def test_a_range_query_covers_the_alerts_window_with_a_fitting_step(server: ApiServer) -> None:
    server.matrix(
        RANGE, ({"pod": "a"}, [(NOW.timestamp() - 60 * at, 1.0 if at > 30 else 8.0) for at in range(90, -1, -1)])
    )
    result = call(toolset(server), "query_range", query="sum(load)\n  by (pod)")
    assert result.query == "sum(load) by (pod) from 2026-12-01T00:30:00Z to 2026-12-01T02:00:00Z step 30s"
    assert server.last(RANGE).fields["step"] == "30.000"
    assert "step from 1 to 8 at 2026-12-01T01:30:00Z" in result.data
    assert result.url == (
        f"{server.url}/graph?g0.expr=sum%28load%29%0A%20%20by%20%28pod%29&g0.tab=0&g0.range_input=5400s"
        "&g0.end_input=2026-12-01%2002%3A00%3A00"
    )


@pytest.mark.parametrize(
    ("asked", "start", "used", "note"),
    [
        ("1s", "-30d", "10800.000", "step 3h was used instead of 1s: at most 300 points"),
        ("10", "-2h", "30.000", "step 30s was used instead of 10s: at most 300 points"),
        ("5m", "-2h", "300.000", ""),
        (60, "-1h", "60.000", ""),
        ("15s", "-1h", "30.000", "step 30s was used instead of 15s: the scrape interval"),
    ],
)
def test_the_step_is_clamped_and_the_model_is_told(
    server: ApiServer, asked: object, start: str, used: str, note: str
) -> None:
    server.data(CONFIG, {"yaml": "global:\n  evaluation_interval: 1m\n  scrape_interval: 30s\nscrape_configs: []\n"})
    server.matrix(RANGE, ({}, [(NOW.timestamp(), 1)]))
    result = call(toolset(server), "query_range", query="x", step=asked, start=start, end="now")
    assert server.last(RANGE).fields["step"] == used
    assert (note in result.data) if note else ("was used instead" not in result.data)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    hours=st.floats(0.001, 1.0) | st.floats(0.01, 100_000),
    step=st.floats(0.001, 1.0) | st.floats(0.001, 1e6),
    points=st.integers(1, 11_000),
)
def test_no_range_query_ever_asks_for_more_points_than_prometheus_gives(
    server: ApiServer, hours: float, step: float, points: int
) -> None:
    server.matrix(RANGE, ({}, [(NOW.timestamp(), 1)]))
    start = (NOW - timedelta(hours=hours)).isoformat()
    call(toolset(server, max_points=points), "query_range", query="x", start=start, end="now", step=f"{step:f}")
    fields = server.last(RANGE).fields
    assert (float(fields["end"]) - float(fields["start"])) / float(fields["step"]) <= points + 1e-6


def test_the_scrape_interval_is_asked_once(server: ApiServer) -> None:
    server.matrix(RANGE, ({}, [(NOW.timestamp(), 1)]))
    tools = toolset(server)
    call(tools, "query_range", query="x")
    call(tools, "query_range", query="x")
    assert server.paths().count(CONFIG) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"step": "0"}, {"step": "-5"}, {"step": "abc"}, {"step": "NaN"}, {"step": []},
        {"start": "2026-12-01T02:00:00Z", "end": "2026-12-01T01:00:00Z"}, {"start": "soon"}, {"end": {}},
        {"query": ""}, {"query": None}, {"querry": "up"}, {"query": ["up"]},
    ],
)  # fmt: skip
def test_bad_values_are_an_error_for_the_model_and_no_request(server: ApiServer, bad: dict[str, Any]) -> None:
    result = call(toolset(server), "query_range", **{"query": "up", **bad})
    assert result.status is ResultStatus.ERROR
    assert result.error
    assert RANGE not in server.paths()


def test_a_long_query_goes_as_a_form_and_a_short_one_as_a_get(server: ApiServer) -> None:
    server.vector(QUERY, ({}, 1))
    tools = toolset(server)
    call(tools, "query", query="up")
    assert server.last(QUERY).method == "GET"
    long = f'up{{job=~"{"|".join(["job"] * 700)}"}}'
    call(tools, "query", query=long)
    assert (server.last(QUERY).method, server.last(QUERY).fields["query"]) == ("POST", long)


def test_an_answer_too_large_to_read_gives_the_number_of_series(server: ApiServer) -> None:
    server.answers[RANGE] = (200, "x" * 20_100_000)
    server.vector(QUERY, ({}, 48_211))
    result = call(toolset(server), "query_range", query="x")
    assert result.status is ResultStatus.ERROR
    assert "the query gives 48211 series" in result.error
    assert "topk(10, ...)" in result.error
    assert server.last(QUERY).fields["query"] == "count(\nx\n)"


def test_a_parse_error_shows_the_place_in_the_query(server: ApiServer) -> None:
    server.fails(QUERY, 400, "bad_data", 'invalid parameter "query": 1:12: parse error: unexpected "}"')
    result = call(toolset(server), "query", query="sum(rate(up})")
    assert result.error.splitlines() == [
        'bad_data: invalid parameter "query": 1:12: parse error: unexpected "}"',
        "sum(rate(up})",
        "           ^",
        "try: correct the PromQL at the mark",
    ]


@pytest.mark.parametrize(
    ("status", "kind", "words", "hint"),
    [
        (422, "execution", "many-to-many matching not allowed", "group_left"),
        (422, "execution", "query processing would load too many samples into memory", "aggregate"),
        (503, "timeout", "query timed out in expression evaluation", "shorter window"),
        (400, "bad_data", 'expected type range vector in call to function "rate", got instant vector', "rate(x[5m])"),
        (500, "internal", "boom", "other sources"),
        (400, "bad_data", 'invalid parameter "query": 9:99: parse error: x', "correct the PromQL"),
    ],
)
def test_the_servers_own_words_go_to_the_model_with_what_to_try(
    server: ApiServer, status: int, kind: str, words: str, hint: str
) -> None:
    server.fails(QUERY, status, kind, words)
    result = call(toolset(server), "query", query="x")
    assert result.status is ResultStatus.ERROR
    assert result.error.startswith(f"{kind}: {words}")
    assert hint in result.error
    assert result.query == "x at 2026-12-01T02:00:00Z"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ((401, "no"), "credentials"),
        ((403, {"message": "forbidden"}), "credentials"),
        ((404, "404 page not found"), "path prefix"),
        ((302, "moved"), "redirects"),
        ((200, "<html>login</html>"), "not JSON"),
        ((200, ["list"]), "unexpected body"),
        ((200, {"status": "success", "data": None}), "can't be read"),
        ((200, {"status": "success", "data": {"resultType": "vector", "result": [{"value": 5}]}}), "can't be read"),
        ((200, {"status": "success", "data": {"resultType": "cube", "result": []}}), "'cube'"),
    ],
)
def test_strange_replies_are_an_error_and_not_no_data(server: ApiServer, reply: Reply, expected: str) -> None:
    server.answers[QUERY] = reply
    result = call(toolset(server), "query", query="x")
    assert result.status is ResultStatus.ERROR
    assert expected in result.error


def test_a_server_that_is_down_is_told_apart_from_no_data() -> None:
    down = build("prometheus", PrometheusConfig(url="http://127.0.0.1:1"), now=lambda: NOW)
    every: dict[str, dict[str, Any]] = {
        "query": {"query": "up"},
        "query_range": {"query": "up"},
        "series": {"match": "up"},
        "labels": {},
        "rules": {},
        "alerts": {},
        "metadata": {"metric": "up"},
    }
    for verb, arguments in every.items():
        result = call(down, verb, **arguments)
        assert result.status is ResultStatus.ERROR, verb
        assert "not the same as no data" in result.error


def test_no_time_left_is_an_error_at_once(server: ApiServer) -> None:
    result = call(toolset(server), "query", query="up", seconds=0)
    assert result.status is ResultStatus.ERROR
    assert "no time left" in result.error
    assert server.asked == []


@pytest.mark.parametrize("credentials", [
    {"bearer_token": SecretStr(SECRET)},
    {"username": "me", "password": SecretStr(SECRET)},
    {"headers": {"X-Token": SecretStr(SECRET)}},
])  # fmt: skip
def test_credentials_are_sent_and_never_shown(server: ApiServer, credentials: dict[str, Any]) -> None:
    server.fails(QUERY, 401, "auth", f"the token {SECRET} has run out")  # a server may repeat what it was sent
    tools = toolset(server, tenant="team-a", **credentials)
    result = call(tools, "query", query="up")
    sent = server.last(QUERY).headers
    assert sent["x-scope-orgid"] == "team-a"
    assert "authorization" in sent or sent["x-token"] == SECRET
    assert "has run out" in result.error
    assert SECRET not in repr(result) + repr(tools)


def test_a_password_in_the_address_is_in_no_error_and_no_link(server: ApiServer) -> None:
    server.answers[QUERY] = (500, "boom")
    address = server.url.replace("http://", f"http://me:{SECRET}@")
    tools = build("prometheus", PrometheusConfig(url=address), now=lambda: NOW)
    assert SECRET not in repr(call(tools, "query", query="up"))
    down = build("prometheus", PrometheusConfig(url=f"http://me:{SECRET}@127.0.0.1:1"), now=lambda: NOW)
    assert SECRET not in repr(call(down, "query", query="up"))
    assert SECRET not in repr(down.check(Deadline.after(5)))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.floats() | st.text(max_size=5) | st.none(), max_size=30))
def test_no_values_break_a_range_query(server: ApiServer, values: list[Any]) -> None:
    shown = [[1_796_083_200 + 30 * at, str(value)] for at, value in enumerate(values)]
    server.data(RANGE, {"resultType": "matrix", "result": [{"metric": {"a": "b"}, "values": shown}]})
    server.vector(QUERY)
    result = call(toolset(server), "query_range", query="x")
    assert result.status in (ResultStatus.SUCCESS, ResultStatus.NO_DATA)
    for one in result.value or []:
        assert all(value is None or math.isfinite(value) for _, value in one["values"])
