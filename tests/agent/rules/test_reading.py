# ruff: noqa: E501  (recorded lines are as long as they are)
"""From text to observations, and from the alert to names."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model import Message
from agent.rules.measures import known_metrics, measure_of
from agent.rules.names import is_label_value, is_object_name, short_host, workload_of_pod
from agent.rules.observation import Fact, Observation, Thing, age_seconds, quantity, quote
from agent.rules.reading.manifest import read_manifest
from agent.rules.reading.tables import read_events, read_get, rows
from agent.rules.scene import target
from agent.rules.subject import comparison, read_subject
from agent.rules.toolbox import Act, Offered, acts_of, open_toolbox
from agent.rules.transcript import Reading, read_transcript
from tests.support.rules_world import described, kubernetes, listed, logs, loki, measured, pods, prometheus, scene_of


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("basket-6d5f7c9b84-x7k2p", "basket"),
        ("basket-api-6d5f7c9b84-x7k2p", "basket-api"),
        ("db-0", "db"),
        ("agent-x7k2p", "agent"),
        ("standalone", "standalone"),
    ],
)
def test_the_workload_is_read_off_the_pods_name(pod, workload):
    assert workload_of_pod(pod) == workload


@given(st.text(max_size=300))
def test_a_name_that_passes_the_grammar_can_not_leave_its_argument(text):
    if is_object_name(text):
        assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    if is_label_value(text):
        assert not set(text) & set('"\\{}\n ,=~|')


def test_cluster_names_are_short_and_outside_names_whole():
    assert short_host("ledger.shop.svc.cluster.local") == "ledger"
    assert short_host("ledger.shop") == "ledger"
    assert short_host("api.pay.example.com") == "api.pay.example.com"
    assert short_host("10.1.2.3") == "10.1.2.3"


@pytest.mark.parametrize(
    ("line", "host", "port"),
    [
        ("dial tcp 10.1.2.3:5432: connect: connection refused", "10.1.2.3", "5432"),
        ("dial tcp: lookup ledger.shop.svc on 10.96.0.10:53: no such host", "ledger.shop.svc", ""),
        ("Error: connect ECONNREFUSED ledger:8080", "ledger", "8080"),
        ("getaddrinfo ENOTFOUND ledger", "ledger", ""),
        ("java.net.UnknownHostException: ledger.shop", "ledger.shop", ""),
        ('could not translate host name "orders-db" to address', "orders-db", ""),
        ("Failed to connect to ledger:9090", "ledger", "9090"),
        ('Get "https://ledger.shop.svc:8443/v1": EOF', "ledger.shop.svc", "8443"),
        ("connect ECONNREFUSED 127.0.0.1:8080", "", ""),
        ("all is well", "", ""),
    ],
)
def test_the_host_that_a_line_complains_of(line, host, port):
    assert target(line) == (host, port)


def test_both_kinds_of_pod_list_are_read():
    kubectl = scene_of(pods("NAME   READY   STATUS   RESTARTS   AGE\nbasket-0   1/2   Running   3 (40s ago)   9m"))
    ours = scene_of(
        pods(
            "NAMESPACE  NAME      READY  STATUS   RESTARTS  LAST-END                      CREATED               NODE\n"
            "shop       basket-0  1/2    Running  3         Error 1 2026-03-01T09:59:20Z  2026-03-01T09:51:00Z  -"
        )
    )
    for scene in (kubectl, ours):
        pod = scene.pods["basket-0"]
        assert (pod.ready, pod.restarted, pod.healthy, pod.node) == (False, True, False, "")


def test_a_namespaced_list_tells_where_the_workload_lives_only_by_its_column():
    scene = scene_of(
        listed("services", "NAME   TYPE   CLUSTER-IP   PORT(S)\nledger   ClusterIP   10.96.7.8   8080/TCP")
    )
    assert scene.host("10.96.7.8") == Thing("workload", "ledger")
    assert scene.host("10.96.7.9") == Thing("host", "10.96.7.9")


def test_the_state_of_a_container_is_quoted_from_its_first_to_its_last_line():
    text = (
        "Name: p\nContainers:\n  web:\n    State:     Waiting\n      Reason:  CrashLoopBackOff\n    Ready:     False\n"
    )
    (state,) = scene_of(described("pod", "p", text)).of(Fact.CONTAINER)
    assert state.text == "State:     Waiting\nReason:  CrashLoopBackOff"


def test_lines_that_differ_in_numbers_are_one_wording():
    scene = scene_of(logs("basket-0", "\n".join(f"ERROR took {n} ms: timed out" for n in range(50))))
    (line,) = scene.of(Fact.LOG)
    assert line.values["count"] == "50"
    assert line.text == "ERROR took 0 ms: timed out"


def test_the_log_stores_labels_say_who_wrote_a_line():
    line = '2026-03-01T10:00:00Z {namespace="shop",pod="ledger-0"} ERROR boom'
    (seen,) = scene_of(("loki_query", {"query": "{}"}, line)).of(Fact.LOG)
    assert seen.about == Thing("pod", "ledger-0")


@pytest.mark.parametrize(
    ("text", "first", "last", "highest"),
    [
        ('{pod="a"} first=1 last=9 min=1 (at 02:00:00) max=12 (at 02:40:00) avg=3; step from 1 to 9', "1", "9", "12"),
        ('2 series, step 1m; all have {job="x"}\n{pod="a"} constant 4', "4", "4", "4"),
        ('up{pod="a"} counter first=3 last=7 increase=4 (0.1/s)', "3", "7", "7"),
        ('{pod="a"} min=0.5 max=1e3 avg=7 first=2 last=1e3', "2", "1e3", "1e3"),
    ],
)
def test_statistics_of_a_series_are_read(text, first, last, highest):
    (series,) = scene_of(measured("up", text)).of(Fact.SERIES)
    assert (series.values["first"], series.values["last"], series.values["max"]) == (first, last, highest)
    assert series.about == Thing("pod", "a")


def test_labels_that_all_series_share_are_each_series_labels():
    (series,) = scene_of(measured("up", '2 series, step 1m; all have {job="x"}\n{pod="a"} constant 4')).of(Fact.SERIES)
    assert series.values["label_job"] == "x"


def test_what_a_query_measures_shows_in_the_query():
    assert measure_of("max(container_memory_working_set_bytes) by (pod)") == "memory_used"
    assert measure_of("probe_ssl_earliest_cert_expiry - time()") == "certificate_seconds"
    assert measure_of("sum(app_db_pool_in_use)") == "pool_used"
    assert measure_of("sum(rate(http_requests_total[5m]))") == ""
    assert known_metrics("3: app_db_pool_in_use, app_db_pool_max, up")["pool_used"] == "app_db_pool_in_use"


@pytest.mark.parametrize(
    ("text", "namespace", "workload"),
    [
        ("Pod shop/basket-6d5f7c9b84-x7k2p is crash looping", "shop", "basket"),
        ("namespace=shop deployment=basket has no replicas", "shop", "basket"),
        ('service "basket" in namespace "shop" is slow', "shop", "basket"),
        ("Service is down", "", ""),
        ("see https://wiki.example/shop/basket", "", ""),
    ],
)
def test_names_are_found_in_the_words_of_an_alert_without_labels(text, namespace, workload):
    subject = read_subject({"title": text})
    assert (subject.namespace, subject.workload) == (namespace, workload)


def test_the_expression_is_found_in_the_link_back_to_the_graph():
    subject = read_subject(
        {"title": "x", "url": "http://prom.example/graph?g0.expr=up%7Bjob%3D%22a%22%7D+%3D%3D+0&g0.tab=1"}
    )
    assert subject.expression == 'up{job="a"} == 0'
    condition = comparison(subject.expression)
    assert condition is not None
    assert (condition.left, condition.operator, condition.limit) == ('up{job="a"}', "==", 0.0)


@pytest.mark.parametrize("expression", ["up", "a > b", "(a > 1", "sum(a) > 1 and b", ""])
def test_an_expression_without_a_threshold_is_left_whole(expression):
    assert comparison(expression) is None


def test_acts_are_told_from_the_verbs_of_a_toolset():
    names = [schema["function"]["name"] for schema in [*kubernetes("k"), *prometheus("m"), *loki("l")]]
    acts = acts_of([*names, "report", "git_log"])
    assert acts["m_query"] is Act.QUERY
    assert acts["l_query"] is Act.LOG_QUERY
    assert acts["k_get"] is Act.GET
    assert "report" not in acts
    assert "git_log" not in acts


def test_arguments_take_the_tools_own_names_and_choices():
    properties: dict[str, dict[str, Any]] = {
        "resource_type": {"type": "string", "enum": ["pod", "node"]},
        "ns": {"type": "string"},
    }
    tool = Offered("x_get", Act.GET, properties, frozenset({"resource_type"}))
    assert tool.fill({"kind": "pods", "namespace": "shop"}) == {"resource_type": "pod", "ns": "shop"}
    assert tool.fill({"kind": "deployments"}) is None


def test_a_tool_that_does_not_exist_is_not_offered():
    assert open_toolbox(kubernetes()).get(Act.LOG_QUERY) is None


def test_only_the_first_line_of_a_result_is_its_head():
    call = {"id": "c", "function": {"name": "kubernetes_logs", "arguments": "{}"}}
    content = "T3 success\nquery: kubectl logs x\n\nT9 error\nquery: other\n\nline"
    messages: list[Message] = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": content},
    ]
    (reading,) = read_transcript(messages).readings
    assert (reading.ref, reading.status, reading.query) == ("T3", "success", "kubectl logs x")
    assert reading.body == "T9 error\nquery: other\n\nline"


def test_quantities_and_ages():
    assert quantity("64Mi") == 64 * 2**20
    assert quantity("500m") == 0.5
    assert quantity("many") is None
    assert age_seconds("4d20h") == 4 * 86_400 + 20 * 3_600
    assert age_seconds("<unknown>") is None


@given(st.text(min_size=1, max_size=900), st.integers(0, 900), st.integers(0, 50))
def test_a_quote_is_short_and_verbatim(text, start, length):
    cut = quote(text, start, start + length)
    assert len(cut) <= 300
    assert cut in text


def manifest_of(text: str) -> list[Observation]:
    return list(read_manifest(Reading(tool="k_yaml", arguments={}, ref="T1", status="success", query="", body=text)))


def test_a_manifest_gives_settings_ports_and_what_a_claim_asks_for():
    text = """
kind: Deployment
metadata:
  name: till
spec:
  template:
    spec:
      containers:
      - name: web
        env:
        - name: LEDGER_ADDR
          value: ledger:8080
        ports:
        - containerPort: 8081
---
kind: PersistentVolumeClaim
metadata:
  name: till-data
spec:
  accessModes: [ReadWriteMany]
  resources:
    requests:
      storage: 2Gi
"""
    found = {one.fact: one for one in manifest_of(text)}
    assert found[Fact.SETTING].values == {"name": "LEDGER_ADDR", "value": "ledger:8080"}
    assert found[Fact.SETTING].text == "- name: LEDGER_ADDR\n          value: ledger:8080"
    assert found[Fact.PORTS].values["ports"] == "8081"
    assert (found[Fact.CLAIM].values["modes"], found[Fact.CLAIM].values["storage"]) == ("ReadWriteMany", "2Gi")
    assert all(" ".join(one.text.split()) in " ".join(text.split()) for one in found.values())


def test_a_secrets_own_data_is_not_read():
    assert not manifest_of("kind: Secret\nmetadata:\n  name: db\ndata:\n  PASSWORD: c2VjcmV0\n")


@pytest.mark.parametrize(
    "text",
    [
        "kind: ConfigMap\ndata: " + "[" * 50_000,
        "kind: ConfigMap\ndata:\n  k: v\n" + "  k: v\n" * 20_000,
        "kind: [1, 2]\nmetadata: 7\nspec: x",
        "kind: ConfigMap\nmetadata:\n  name: !!python/object/apply:os.system [id]\n",
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi"))
        + "kind: ConfigMap\nmetadata:\n  name: *i\ndata:\n  k: *i\n",
    ],
    ids=["deep", "long", "odd", "tags", "aliases"],
)
def test_no_manifest_makes_reading_slow_or_breaks_it(text):
    started = time.process_time()
    manifest_of(text)
    assert time.process_time() - started < 2.0


def test_empty_cells_count_where_a_table_keeps_to_its_columns():
    text = "NAME    STATUS    VOLUME   CLASS   AGE\nclaim   Pending            fast    3m\nother   Bound     disk-1           3m"
    assert [row for _, row in rows(text)] == [
        {"NAME": "claim", "STATUS": "Pending", "CLASS": "fast", "AGE": "3m"},
        {"NAME": "other", "STATUS": "Bound", "VOLUME": "disk-1", "AGE": "3m"},
    ]


def test_an_event_that_came_often_began_with_the_first():
    text = "LAST SEEN             TYPE     REASON   OBJECT     COUNT                          MESSAGE\n2026-03-01T09:59:00Z  Warning  BackOff  Pod/a-0    9 since 2026-03-01T09:50:00Z   Back-off"
    (event,) = read_events(Reading(tool="k_events", arguments={}, ref="T1", status="success", query="", body=text))
    assert event.began == datetime(2026, 3, 1, 9, 50, tzinfo=UTC)
    assert event.at == datetime(2026, 3, 1, 9, 59, tzinfo=UTC)


def test_a_row_of_a_list_does_not_tell_when_something_began():
    text = "NAME  READY  STATUS   RESTARTS  CREATED\na-0   1/1    Running  0         2026-02-01T00:00:00Z"
    (row,) = read_get(Reading(tool="k_get", arguments={}, ref="T1", status="success", query="", body=text), "pod")
    assert row.began is None
