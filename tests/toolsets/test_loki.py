"""The Loki tools against a stand-in over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from agent.alert import Alert
from agent.deadline import Deadline
from agent.tools import HealthState, ResultStatus, ToolContext, ToolResult, Toolset, compact_json
from tests.support.prom_server import ApiServer, Fields, Reply, api_server
from toolsets.configs import LokiConfig
from toolsets.loki import LABELS, QUERY_RANGE, build

NOW = datetime(2026, 12, 1, 2, 0, 0, tzinfo=UTC)
SECRET = "hunter2-secret"  # made up


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server() as api:
        yield api


def toolset(server: ApiServer, **config: Any) -> Toolset:
    return build("loki", LokiConfig(url=server.url, **config), now=lambda: NOW)


def call(tools: Toolset, verb: str, *, seconds: float = 30, **arguments: Any) -> ToolResult:
    alert = Alert(source="am", id="1", title="t", starts_at=NOW - timedelta(minutes=30))
    tool = next(tool for tool in tools.tools if tool.name == f"{tools.name}_{verb}")
    return tool.run(arguments, ToolContext(deadline=Deadline.after(seconds), alert=alert))


def streams(server: ApiServer, *found: tuple[dict[str, str], list[list[Any]]]) -> None:
    result = [{"stream": labels, "values": values} for labels, values in found]
    server.data(QUERY_RANGE, {"resultType": "streams", "result": result, "stats": {}})


def nanoseconds(minute: int) -> str:
    return f"{int(NOW.timestamp()) + 60 * minute}000000001"


def test_the_two_tools_cost_few_tokens(server: ApiServer) -> None:
    tools = toolset(server).tools
    assert [tool.name for tool in tools] == ["loki_query", "loki_labels"]
    assert sum(len(compact_json(tool.schema())) for tool in tools) / 4 <= 200


def test_log_lines_come_in_order_of_time_with_the_exact_query(server: ApiServer) -> None:
    streams(
        server,
        ({"app": "api", "pod": "b"}, [[nanoseconds(-1), "second", {"trace": "x"}]]),
        ({"app": "api", "pod": "a"}, [[nanoseconds(-2), "first"]]),
    )
    result = call(toolset(server, tenant="team-a"), "query", query='{app="api"}\n |= ""')
    assert result.status is ResultStatus.SUCCESS
    assert result.data.splitlines() == [
        '2 lines, all from {app="api"}',
        '2026-12-01T01:58:00Z {pod="a"} first',
        '2026-12-01T01:59:00Z {pod="b"} second',
    ]
    assert result.query == '{app="api"} |= "" from 2026-12-01T00:30:00Z to 2026-12-01T02:00:00Z limit 500 backward'
    asked = server.last(QUERY_RANGE)
    assert asked.headers["x-scope-orgid"] == "team-a"
    assert asked.fields["start"] == "1796085000000000000"
    assert (asked.fields["limit"], asked.fields["direction"]) == ("500", "backward")
    assert result.url == ""
    assert result.value[0]["line"] == "second"


def test_a_full_page_says_that_there_is_more(server: ApiServer) -> None:
    streams(server, ({"app": "api"}, [[nanoseconds(-2), "a b"], [nanoseconds(-1), "c d"]]))
    tools = toolset(server)
    assert call(tools, "query", query="{}", limit=2).data.startswith("PARTIAL: the newest 2 lines only")
    assert call(tools, "query", query="{}", limit="2", direction="forward").data.startswith("PARTIAL: the oldest 2")
    assert "PARTIAL" not in call(tools, "query", query="{}", limit=3).data


def test_a_metric_query_is_summarised(server: ApiServer) -> None:
    points: list[tuple[float, float | str]] = [(NOW.timestamp() + 60 * at, 0 if at < 10 else 9) for at in range(20)]
    server.matrix(QUERY_RANGE, ({"app": "api"}, points))
    result = call(toolset(server), "query", query='sum by (app) (rate({app="api"} |= "error" [5m]))')
    assert "step from 0 to 9 at 2026-12-01T02:10:00Z" in result.data
    assert result.query.endswith("to 2026-12-01T02:00:00Z step 1m")
    assert result.value[0]["metric"] == {"app": "api"}


def test_the_link_opens_grafana_where_one_is_configured(server: ApiServer) -> None:
    streams(server, ({"app": "api"}, [[nanoseconds(-1), "x"]]))
    url = call(toolset(server, external_url="https://me:pw@grafana.example"), "query", query='{app="api"}').url
    assert url.startswith("https://grafana.example/explore?schemaVersion=1&panes=")
    panes = parse_qs(urlsplit(url).query)["panes"][0]
    assert '"expr": "{app=\\"api\\"}"' in panes
    assert '"from": "1796085000000"' in panes


def labelled(server: ApiServer, *, met: tuple[str, ...]) -> Toolset:
    """A server without matching lines that has labels app and env; `met` are the selectors that meet a stream."""

    def values(fields: Fields) -> Reply:
        found = ["api", "worker"] if "query" not in fields or fields["query"] in met else None
        return 200, {"status": "success", **({"data": found} if found else {})}

    streams(server)
    server.data(LABELS, ["app", "env"])
    server.answers["/loki/api/v1/label/app/values"] = values
    server.answers["/loki/api/v1/label/env/values"] = values
    return toolset(server)


@pytest.mark.parametrize(
    ("met", "query", "expected"),
    [
        ((), '{application="api"}', "no label application in this window; labels are app, env"),
        ((), '{app="apl"}', '{app="apl"} matches no stream; values of app are api (of 2)'),
        (('{app="api"}', '{env=~"p.*"}'), '{app="api", env=~"p.*"}', "but none meets all"),
        (('{app="api"}',), '{app="api"} |= "boom" | json', "but no line passes what follows it"),
    ],
)
def test_an_empty_answer_says_which_part_meets_nothing(
    server: ApiServer, met: tuple[str, ...], query: str, expected: str
) -> None:
    result = call(labelled(server, met=met), "query", query=query)
    assert result.status is ResultStatus.NO_DATA
    assert expected in result.data


def test_a_server_that_explains_nothing_still_gives_no_data(server: ApiServer) -> None:
    streams(server)
    assert call(toolset(server), "query", query='{a="b"}').status is ResultStatus.NO_DATA


def test_labels_and_values_are_listed(server: ApiServer) -> None:
    tools = labelled(server, met=())
    assert call(tools, "labels").data == "2: app, env"
    assert call(tools, "labels", label="app").data == "2: api, worker"
    assert call(tools, "labels", label="app", query='{env="x"}').status is ResultStatus.NO_DATA
    assert call(tools, "labels", label="../push").status is ResultStatus.ERROR


def test_a_parse_error_shows_the_place(server: ApiServer) -> None:
    server.answers[QUERY_RANGE] = (400, "parse error at line 1, col 6: syntax error: unexpected }\n")
    result = call(toolset(server), "query", query="{app=}")
    assert result.error.splitlines() == [
        "HTTP 400: parse error at line 1, col 6: syntax error: unexpected }",
        "{app=}",
        "     ^",
        "try: correct the LogQL",
    ]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ((400, "the query time range exceeds the limit (query length: 721h)"), "shorter window"),
        ((401, "no org id"), "credentials"),
        ((401, f"bad token {SECRET}"), "bad token <redacted>"),
        ((404, "<html>nothing</html>"), "path prefix"),
        ((429, "too many outstanding requests"), "shorter window"),
        ((200, "<html>login</html>"), "not JSON"),
        ((200, {"status": "success", "data": {"resultType": "streams", "result": [{"values": 1}]}}), "can't be read"),
        ((200, {"status": "success"}), "can't be read"),
    ],
)
def test_refusals_and_strange_replies_are_an_error_with_what_to_try(
    server: ApiServer, reply: Reply, expected: str
) -> None:
    server.answers[QUERY_RANGE] = reply
    result = call(toolset(server, bearer_token=SecretStr(SECRET)), "query", query='{a="b"}')
    assert result.status is ResultStatus.ERROR
    assert expected in result.error
    assert "<html" not in result.error
    assert SECRET not in repr(result)


@pytest.mark.parametrize(
    "bad",
    [
        {"query": None},
        {"query": ""},
        {"query": "{}", "start": "soon"},
        {"query": "{}", "direction": "up"},
        {"query": "{}", "limit": "x"},
    ],
)
def test_bad_values_are_an_error_and_no_request(server: ApiServer, bad: dict[str, Any]) -> None:
    assert call(toolset(server), "query", **bad).status is ResultStatus.ERROR
    assert server.asked == []


def test_a_server_that_is_down_is_told_apart_from_no_data() -> None:
    down = build("loki", LokiConfig(url="http://127.0.0.1:1"), now=lambda: NOW)
    assert "not the same as no data" in call(down, "query", query="{}").error
    assert "not the same as no data" in call(down, "labels").error
    assert down.check(Deadline.after(5)).state is HealthState.FAILED


def test_a_long_query_goes_as_a_form(server: ApiServer) -> None:
    streams(server, ({"app": "api"}, [[nanoseconds(-1), "x"]]))
    query = f'{{app=~"{"|".join(["api"] * 700)}"}}'
    call(toolset(server), "query", query=query)
    assert (server.last(QUERY_RANGE).method, server.last(QUERY_RANGE).fields["query"]) == ("POST", query)


def test_the_check_tells_an_empty_server_from_a_good_one(server: ApiServer) -> None:
    server.answers[LABELS] = (200, {"status": "success"})
    assert toolset(server).check(Deadline.after(5)).state is HealthState.DEGRADED
    server.data(LABELS, ["app"])
    assert toolset(server).check(Deadline.after(5)).state is HealthState.OK
