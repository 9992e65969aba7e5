"""Why an answer is empty, as the model is told; over real HTTP."""

from __future__ import annotations

from agent.tools import ResultStatus, Toolset
from tests.support.prom_calls import NAMES, QUERY, RANGE, call, toolset
from tests.support.prom_server import ApiServer, Fields, Reply


def empty(server: ApiServer, *, names: list[str], counts: dict[str, int] | None = None) -> Toolset:
    """A server whose queries match nothing but the counts given for bare selectors."""

    def answer(fields: Fields) -> Reply:
        found = [
            count
            for text, count in (counts or {}).items()
            if fields["query"].startswith(f"count(last_over_time({text}[")
        ]
        result = [{"metric": {}, "value": [1, str(count)]} for count in found]
        return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}

    server.answers[QUERY] = answer
    server.matrix(RANGE)
    server.answers[NAMES] = lambda fields: (
        200,
        {"status": "success", "data": [name for name in names if f'"{name}"' in fields.get("match[]", f'"{name}"')]},
    )
    return toolset(server)


def test_an_unknown_metric_gives_the_closest_names(server: ApiServer) -> None:
    tools = empty(server, names=["http_requests_total", "http_request_duration_seconds_count", "up", "go_goroutines"])
    result = call(tools, "query", query="sum(rate(http_request_total[5m])) by (job)")
    assert result.status is ResultStatus.NO_DATA
    assert result.data.startswith("no metric is named http_request_total; closest: http_requests_total")
    assert "go_goroutines" not in result.data


def test_a_wrong_label_value_gives_the_values_there_are(server: ApiServer) -> None:
    tools = empty(server, names=["up"])
    server.data("/api/v1/label/job/values", ["api", "db"])
    server.data("/api/v1/label/env/values", ["prod"])
    result = call(tools, "query_range", query='up{job="apiserver", env=~"pr.*"}')
    assert result.data == 'up: job="apiserver" matches no value; there are api, db'
    assert server.last("/api/v1/label/job/values").fields["match[]"] == '{__name__="up"}'


def test_a_pattern_is_judged_by_the_server_and_not_by_our_own_slower_engine(server: ApiServer) -> None:
    tools = empty(server, names=["up"])
    every = [f"{'a' * 40}b{index}" for index in range(20)]
    server.answers["/api/v1/label/job/values"] = lambda fields: (
        200,
        {"status": "success", "data": [] if "job=~" in fields["match[]"] else every},
    )
    result = call(tools, "query", query='up{job=~"(a+)+\\\\."}')
    assert result.data.startswith('up: job=~"(a+)+\\." matches no value; there are ')
    asked = [request.fields["match[]"] for request in server.asked if request.path == "/api/v1/label/job/values"]
    assert asked == ['{__name__="up"}', '{__name__="up",job=~"(a+)+\\\\."}']


def test_a_condition_that_nothing_meets_is_told_from_a_missing_series(server: ApiServer) -> None:
    tools = empty(server, names=["up"], counts={'up{job="api"}': 3})
    result = call(tools, "query", query='up{job="api"} == 0')
    assert result.status is ResultStatus.NO_DATA
    assert result.data == 'up{job="api"} matches 3 series: the comparison, join or function around it leaves none'


def test_only_the_selector_that_is_empty_is_blamed(server: ApiServer) -> None:
    tools = empty(server, names=["up", "down"], counts={"up": 3})
    assert call(tools, "query", query="up / dawn").data == "no metric is named dawn; closest: down"


def test_a_metric_without_samples_in_the_window_says_so(server: ApiServer) -> None:
    assert "exists, but has no samples" in call(empty(server, names=["up"]), "query", query="up").data


def test_a_server_that_does_not_list_its_names_still_gives_no_data(server: ApiServer) -> None:
    server.vector(QUERY)
    result = call(toolset(server), "query", query="up")
    assert (result.status, result.data) == (ResultStatus.NO_DATA, "the query is valid and matches nothing")


def test_the_list_of_metric_names_is_asked_once_a_minute(server: ApiServer) -> None:
    tools = empty(server, names=["up"])
    for _ in range(3):
        call(tools, "query", query="nope")
    assert [request.fields for request in server.asked if request.path == NAMES].count({}) == 1


def test_a_metric_that_is_newer_than_the_kept_list_is_not_denied(server: ApiServer) -> None:
    names = ["up"]
    tools = empty(server, names=names)
    assert "no metric is named fresh" in call(tools, "query", query="fresh").data
    names.append("fresh")
    assert "fresh exists" in call(tools, "query", query="fresh").data
