"""The played Prometheus, Loki and Kubernetes over HTTP."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest

from deploy.demo import kubernetes
from tests.deploy.conftest import BEGAN, HEADERS

PROM, LOKI, KUBE = "/prometheus/api/v1", "/loki/loki/api/v1", "/kubernetes"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_an_instant_query_gives_a_vector(world):
    data = world.get(f"{PROM}/query?query={quote('count(up) > bool 10')}")["data"]
    assert data["resultType"] == "vector"
    assert data["result"][0]["value"] == [BEGAN, "1"]


def test_a_query_may_come_as_a_form(world):
    answer = world.send("POST", f"{PROM}/query", urlencode({"query": "1+1", "time": "100"}), FORM)
    assert answer.json["data"] == {"resultType": "scalar", "result": [100.0, "2"]}


def test_a_range_query_gives_a_matrix(world):
    fields = {
        "query": 'kube_deployment_spec_replicas{deployment="cart-api"}',
        "start": BEGAN - 120,
        "end": BEGAN,
        "step": "60s",
    }
    data = world.get(f"{PROM}/query_range?{urlencode(fields)}")["data"]
    assert data["resultType"] == "matrix"
    assert data["result"][0]["values"] == [[BEGAN - 120, "3"], [BEGAN - 60, "3"], [BEGAN, "3"]]


@pytest.mark.parametrize(
    "path", ["query?query=sum(", "query", "query?query=up&time=x", "query_range?query=up&start=1&end=2", "series"]
)
def test_a_bad_query_is_refused_in_the_style_of_prometheus(world, path):
    answer = world.send("GET", f"{PROM}/{path}")
    assert (answer.status, answer.json["status"], answer.json["errorType"]) == (400, "error", "bad_data")
    assert answer.json["error"]


def test_series_labels_and_values_are_found_by_selector(world):
    only = quote("hikaricp_connections_active")
    series = world.get(f"{PROM}/series?match[]={only}")["data"]
    assert {one["__name__"] for one in series} == {"hikaricp_connections_active"}
    assert "pool" in world.get(f"{PROM}/labels?match[]={only}")["data"]
    assert world.get(f"{PROM}/label/pool/values?match[]={only}")["data"] == ["HikariPool-1"]
    assert "up" in world.get(f"{PROM}/label/__name__/values")["data"]
    assert len(world.get(f"{PROM}/label/__name__/values?limit=3")["data"]) == 3


def test_a_pod_that_is_gone_is_listed_for_the_time_it_was_there(world):
    selector = 'kube_pod_info{namespace="shop"}'
    path = f"{PROM}/series?match[]={quote(selector)}"
    before, now = (BEGAN - 7_200, BEGAN - 3_600), (BEGAN - 600, BEGAN)
    pods = [
        {one["pod"] for one in world.get(f"{path}&start={start}&end={end}")["data"] if "cart" in one["pod"]}
        for start, end in (before, now)
    ]
    assert [len(found) for found in pods] == [3, 3]
    assert not pods[0] & pods[1]


def test_rules_fire_for_what_is_open(world):
    [group] = world.get(f"{PROM}/rules")["data"]["groups"]
    assert len(group["rules"]) == 12
    assert {alert["state"] for alert in world.get(f"{PROM}/alerts")["data"]["alerts"]} == {"firing"}


def test_metadata_and_build_are_told(world):
    assert world.get(f"{PROM}/metadata?metric=up")["data"]["up"][0]["type"] == "gauge"
    assert world.get(f"{PROM}/status/buildinfo")["data"]["version"]
    assert world.send("GET", "/prometheus/-/ready").status == 200


def logs(world, query, **fields):
    data = world.get(f"{LOKI}/query_range?{urlencode({'query': query, **fields})}")["data"]
    return [value for stream in data["result"] for value in stream["values"]]


def test_line_filters_keep_what_they_say(world):
    every = logs(world, '{app="orders-db"}', limit=5000)
    kept = logs(world, '{app="orders-db"} |= "No space left" != "HINT" |~ "(?i)error"', limit=5000)
    assert 0 < len(kept) < len(every)
    assert all("No space left" in line and "ERROR" in line for _, line in kept)


def test_the_newest_lines_come_first_and_the_limit_holds(world):
    backward = logs(world, '{app="orders-db"}', limit=5)
    forward = logs(world, '{app="orders-db"}', limit=5, direction="forward")
    assert [at for at, _ in backward] == sorted((at for at, _ in backward), reverse=True)
    assert [at for at, _ in forward] == sorted(at for at, _ in forward)
    assert len(backward) == len(forward) == 5
    assert backward[-1][0] > forward[-1][0]


def test_times_may_be_nanoseconds(world):
    start, end = int((BEGAN - 60) * 1e9), int(BEGAN * 1e9)
    times = [int(at) for at, _ in logs(world, '{app="orders-db"} | json', start=start, end=end, limit=5000)]
    assert times
    assert all(start <= at < end for at in times)


def test_counting_over_time_is_summed_by_label(world):
    query = 'sum by (app) (count_over_time({namespace="orders"} |= "No space left" [5m]))'
    found = {
        one["metric"]["app"]: float(one["value"][1])
        for one in world.get(f"{LOKI}/query?query={quote(query)}")["data"]["result"]
    }
    assert found.keys() == {"orders-api", "orders-db"}
    lines = logs(world, '{app="orders-db"} |= "No space left"', start=BEGAN - 300, end=BEGAN, limit=5000)
    assert found["orders-db"] == len(lines)


def test_a_rate_over_a_range_is_a_matrix(world):
    fields = {"query": 'sum(rate({app="orders-db"} |= "ERROR" [1m]))', "start": BEGAN - 300, "end": BEGAN, "step": 60}
    [series] = world.get(f"{LOKI}/query_range?{urlencode(fields)}")["data"]["result"]
    assert len(series["values"]) == 6


@pytest.mark.parametrize(
    "query", ["", "{}", '{app="x"', '{app=~".*"}', '{app="x"} | line_format "y"', "sum(up)", '{app="x"} |~ "("']
)
def test_a_bad_log_query_is_400_as_plain_text(world, query):
    answer = world.send("GET", f"{LOKI}/query_range?{urlencode({'query': query})}")
    assert answer.status == 400
    assert answer.text


def test_labels_of_streams_are_listed(world):
    assert {"app", "container", "namespace", "pod"} <= set(world.get(f"{LOKI}/labels")["data"])
    assert "orders-db" in world.get(f"{LOKI}/label/app/values")["data"]
    assert world.get(f"{LOKI}/series?match[]=" + quote('{app="orders-db"}'))["data"][0]["namespace"] == "orders"


def names(found):
    return [one["metadata"]["name"] for one in found["items"]]


def test_without_the_token_the_cluster_is_closed(world):
    assert world.send("GET", f"{KUBE}/version", headers={}).status == 401


def test_discovery_lists_what_is_served(world):
    groups = {one["name"] for one in world.get(f"{KUBE}/apis")["groups"]}
    assert {"apps", "batch", "networking.k8s.io", "metrics.k8s.io"} <= groups
    assert "pods" in {one["name"] for one in world.get(f"{KUBE}/api/v1")["resources"]}
    for group in world.get(f"{KUBE}/apis")["groups"]:
        version = group["preferredVersion"]["groupVersion"]
        for resource in world.get(f"{KUBE}/apis/{version}")["resources"]:
            assert "items" in world.get(f"{KUBE}/apis/{version}/{resource['name']}")


def test_label_selectors_narrow_a_list(world):
    path = f"{KUBE}/api/v1/namespaces/shop/pods?labelSelector="
    every = names(world.get(path))
    cart = names(world.get(path + quote("app=cart-api")))
    assert len(cart) == 3
    assert names(world.get(path + quote("app in (cart-api, other)"))) == cart
    assert set(names(world.get(path + quote("app!=cart-api")))) == set(every) - set(cart)
    assert names(world.get(path + "app,!nothing")) == every


def test_events_are_found_by_what_they_are_about(world):
    [pod, *_] = names(world.get(f"{KUBE}/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart-api"))
    fields = quote(f"involvedObject.kind=Pod,involvedObject.name={pod}")
    found = world.get(f"{KUBE}/api/v1/namespaces/shop/events?fieldSelector={fields}")["items"]
    assert {one["involvedObject"]["name"] for one in found} == {pod}
    assert "BackOff" in {one["reason"] for one in found}


def test_a_list_is_paged_by_continue(world):
    every = names(world.get(f"{KUBE}/api/v1/pods"))
    page = world.get(f"{KUBE}/api/v1/pods?limit=20")
    joined = names(page)
    while token := page["metadata"].get("continue"):
        page = world.get(f"{KUBE}/api/v1/pods?limit=20&continue={quote(token)}")
        joined += names(page)
    assert joined == every
    assert len(every) > 40


def test_a_list_may_be_asked_for_as_a_table(world):
    headers = {**HEADERS["kubernetes"], "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    found = world.get(f"{KUBE}/api/v1/namespaces/shop/endpoints", headers)
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Endpoints", "Age"]
    cells = {row["cells"][0]: row["cells"][1] for row in found["rows"]}
    assert cells["cart-api"] == "<none>"
    assert cells["recommendations-web"].count(":8080") == 2


def test_every_kind_has_a_table(world):
    headers = {**HEADERS["kubernetes"], "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    for version, kinds in kubernetes.GROUPS.items():
        for kind in kinds:
            if kind != "Secret":
                root = f"{KUBE}/api/{version}" if version == "v1" else f"{KUBE}/apis/{version}"
                found = world.get(f"{root}/{kubernetes.plural(kind.lstrip('-'))}", headers)
                assert all(len(row["cells"]) == len(found["columnDefinitions"]) for row in found["rows"])


def test_logs_of_this_run_and_the_one_before(world):
    [pod, *_] = names(world.get(f"{KUBE}/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart-api"))
    path = f"{KUBE}/api/v1/namespaces/shop/pods/{pod}/log"
    now = world.send("GET", f"{path}?timestamps=true").text.splitlines()
    before = world.send("GET", f"{path}?timestamps=true&previous=true&container=cart-api").text.splitlines()
    assert "Starting CartApplication" in now[0]
    assert before[-1] < now[0]
    assert len(world.send("GET", f"{path}?tailLines=2").text.splitlines()) == 2


def test_a_container_that_never_ran_has_no_log(world):
    [pod] = [
        one
        for one in world.get(f"{KUBE}/api/v1/namespaces/catalog/pods")["items"]
        if one["status"]["phase"] == "Pending"
    ]
    answer = world.send("GET", f"{KUBE}/api/v1/namespaces/catalog/pods/{pod['metadata']['name']}/log")
    assert answer.status == 400
    assert "waiting to start" in answer.json["message"]


def test_logs_in_kubernetes_and_loki_are_the_same(world):
    path = f"{KUBE}/api/v1/namespaces/orders/pods/orders-db-0/log?sinceSeconds=300"
    there = logs(world, '{pod="orders-db-0"}', start=BEGAN - 300, end=BEGAN, limit=5000, direction="forward")
    assert world.send("GET", path).text.splitlines() == [line for _, line in there]


def test_what_is_not_there_or_not_allowed_is_told_as_a_status(world):
    missing = world.send("GET", f"{KUBE}/apis/apps/v1/namespaces/shop/deployments/nothing")
    assert (missing.status, missing.json["reason"]) == (404, "NotFound")
    assert world.send("GET", f"{KUBE}/api/v1/secrets").json["reason"] == "Forbidden"
    assert world.send("DELETE", f"{KUBE}/api/v1/pods").status == 405
    assert world.send("GET", f"{KUBE}/api/v1/rockets").status == 404


def test_metrics_show_the_node_that_is_busy(world):
    usage = {
        one["metadata"]["name"]: int(one["usage"]["cpu"][:-1])
        for one in world.get(f"{KUBE}/apis/metrics.k8s.io/v1beta1/nodes")["items"]
    }
    assert max(usage, key=lambda name: usage[name]) == "node-b2"
    assert world.get(f"{KUBE}/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods")["items"]
