from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import ToolError
from agent.tools import HealthState, ResultStatus, ToolContext, ToolResult, Toolset, compact_json
from tests.support.kube_server import KubeServer, serving
from tests.support.kube_world import APPS, CORE, event, meta, shop, web_pod
from toolsets.configs import KubernetesConfig
from toolsets.kubernetes.toolset import build

NOW = datetime(2026, 5, 1, 10, 9, tzinfo=UTC)
VERBS = ("get", "describe", "yaml", "events", "logs", "top")


@pytest.fixture
def kube() -> Iterator[KubeServer]:
    with serving(shop()) as server:
        yield server


def toolset(kube: KubeServer, *namespaces: str) -> Toolset:
    config = KubernetesConfig(url=kube.url, token=SecretStr("t0ken-of-ours"), namespaces=namespaces)
    return build("kubernetes", config, now=lambda: NOW)


def call(kube: KubeServer, verb: str, *namespaces: str, **arguments: Any) -> ToolResult:
    tool = next(tool for tool in toolset(kube, *namespaces).tools if tool.name == f"kubernetes_{verb}")
    context = ToolContext(deadline=Deadline.after(20), alert=Alert(source="s", id="1", title="t"))
    return tool.run(arguments, context)


def test_six_tools_in_less_than_seven_hundred_tokens(kube: KubeServer) -> None:
    tools = toolset(kube).tools
    assert [tool.name for tool in tools] == [f"kubernetes_{verb}" for verb in VERBS]
    assert len(compact_json([tool.schema() for tool in tools])) / 4 < 700


def test_pods_that_are_not_well_come_first_with_reason_and_last_end(kube: KubeServer) -> None:
    result = call(kube, "get", kind="pods", namespace="shop")
    header, first, *_, last = result.data.splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "LAST-END", "CREATED", "NODE", "IP"]
    assert first.split()[:4] == ["web-bbb-1", "0/1", "CrashLoopBackOff", "5"]
    assert "OOMKilled 137 2026-05-01T10:04:10Z" in first
    assert last.startswith("web-bbb-2")
    assert result.query == "kubectl get pods -n shop -o wide"


def test_a_selector_and_all_namespaces(kube: KubeServer) -> None:
    kube.add(CORE, "pods", web_pod("web-other", namespace="billing"))
    result = call(kube, "get", kind="Pod", selector="app=web")
    assert {line.split()[0] for line in result.data.splitlines()[1:]} == {"shop", "billing"}
    assert result.query == "kubectl get pods --all-namespaces -l app=web -o wide"
    assert "api-ccc-1" not in result.data


def test_a_custom_resource_is_found_by_short_name_and_shown_as_the_server_says(kube: KubeServer) -> None:
    kube.tables["certificates"] = ["Ready"]
    result = call(kube, "get", kind="cert", namespace="shop")
    assert [line.split() for line in result.data.splitlines()] == [["NAME", "READY"], ["web-tls", "False"]]


def test_a_custom_resource_has_columns_also_where_the_server_makes_no_tables(kube: KubeServer) -> None:
    assert "Ready=False(Expired)" in call(kube, "get", kind="certificates.cert-manager.io").data


def test_another_apis_kind_of_a_familiar_name_is_not_taken_for_ours(kube: KubeServer) -> None:
    root = "/apis/serving.knative.dev/v1"
    kube.documents["/apis"]["groups"].append({"name": "serving.knative.dev", "versions": [{"version": "v1"}]})
    kube.documents[root] = {
        "resources": [{"name": "services", "kind": "Service", "namespaced": True, "verbs": ["get"]}]
    }
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "RevisionMissing"}]}
    kube.add(root, "services", {"kind": "Service", "metadata": meta("fn"), "status": status})
    result = call(kube, "get", kind="services.serving.knative.dev")
    assert "Ready=False(RevisionMissing)" in result.data
    assert result.query == "kubectl get services.serving.knative.dev --all-namespaces -o wide"


def test_an_unknown_kind_names_near_ones(kube: KubeServer) -> None:
    with pytest.raises(ToolError, match=r"no kind 'certificat'; near ones: certificates\.cert-manager\.io"):
        call(kube, "get", kind="certificat")


def test_nothing_there_is_no_data_and_a_missing_namespace_is_named(kube: KubeServer) -> None:
    empty = call(kube, "get", kind="pods", namespace="billing")
    assert (empty.status, empty.data) == (ResultStatus.NO_DATA, "no pods in namespace billing")
    missing = call(kube, "get", kind="pods", namespace="shopp")
    assert missing.status is ResultStatus.NO_DATA
    assert missing.data == "no pods in namespace shopp, and there is no such namespace; there are: shop"


def test_a_name_that_is_not_there_lists_similar_ones(kube: KubeServer) -> None:
    result = call(kube, "describe", kind="pod", name="web-bb-1", namespace="shop")
    assert result.status is ResultStatus.NO_DATA
    assert "there are: shop/web-bbb-1, shop/web-bbb-2" in result.data


def test_a_name_without_namespace_is_looked_for_everywhere(kube: KubeServer) -> None:
    found = call(kube, "describe", kind="pod", name="web-bbb-1")
    assert found.data.startswith("Pod shop/web-bbb-1")
    assert found.query == "kubectl describe pods web-bbb-1 -n shop"
    kube.add(CORE, "pods", web_pod("web-bbb-1", namespace="billing"))
    with pytest.raises(ToolError, match="several namespaces: billing, shop; give namespace"):
        call(kube, "describe", kind="pod", name="web-bbb-1")


def test_a_forbidden_read_gives_the_apis_words_and_what_was_asked(kube: KubeServer) -> None:
    message = 'pods is forbidden: User "rca" cannot list resource "pods" in API group "" in the namespace "shop"'
    kube.refused["/api/v1/namespaces/shop/pods"] = (403, message)
    result = call(kube, "get", kind="pods", namespace="shop")
    assert result.status is ResultStatus.ERROR
    assert message in result.error
    assert "permission is missing" in result.error
    assert result.query == "GET /api/v1/namespaces/shop/pods?limit=500"


def test_a_list_is_read_page_by_page_up_to_a_cap(kube: KubeServer) -> None:
    kube.add(CORE, "configmaps", *({"metadata": meta(f"c{index:04}", "billing")} for index in range(2_600)))
    result = call(kube, "get", kind="cm", namespace="billing")
    assert result.data.startswith("PARTIAL: 2000 of 2600;")
    assert len(result.data.splitlines()) == 2_002
    pages = [params.get("continue") for _, path, params, _ in kube.requests if path.endswith("/configmaps")]
    assert pages == [None, "500", "1000", "1500"]


def test_an_expired_page_gives_what_was_read_so_far(kube: KubeServer) -> None:
    kube.add(CORE, "configmaps", *({"metadata": meta(f"c{index:04}", "billing")} for index in range(1_200)))
    kube.expire_after_pages = 1
    assert call(kube, "get", kind="cm", namespace="billing").data.startswith("PARTIAL: 500 of more;")


def test_describe_pod_tells_why_it_ended(kube: KubeServer) -> None:
    data = call(kube, "describe", kind="pod", name="web-bbb-1", namespace="shop").data
    for line in (
        "owned by: ReplicaSet/web-bbb, Deployment/web",
        "  state: waiting CrashLoopBackOff: back-off 2m40s restarting failed container; ready False; restarts 5",
        "  last state: terminated OOMKilled, exit code 137, 2026-05-01T10:03:00Z to 2026-05-01T10:04:10Z",
        "  requests: cpu=100m,memory=64Mi; limits: memory=128Mi",
        "  liveness: HTTP GET :8080/healthz delay=0s timeout=2s period=10s failures=3",
        "volume data: persistentVolumeClaim web-data",
        "condition Ready=False since 2026-05-01T10:04:11Z ContainersNotReady",
    ):
        assert line in data.splitlines()
    assert "API_KEY=<secret web key api-key>" in data
    assert "Back-off restarting failed container app" in data
    assert "hunter2-literal" not in data


def test_describe_deployment_tells_what_the_last_rollout_changed(kube: KubeServer) -> None:
    lines = call(kube, "describe", kind="deployment", name="web", namespace="shop").data.splitlines()
    start = lines.index("rollout history (revision, first created, name, size, images):")
    assert lines[start + 1 : start + 5] == [
        "  #2  2026-05-01T10:00:02Z  web-bbb  2 replicas  registry.example/web:1.4.2",
        "  #1  2026-04-20T08:00:00Z  web-aaa  0 replicas  registry.example/web:1.4.2",
        "changed from #1 to #2:",
        "  containers[app].resources.limits.memory: 512Mi -> 128Mi",
    ]
    assert "last changed: 2026-05-01T10:00:00Z Update by helm" in lines
    assert "pods matching app=web: 2, 1 of them ready" in lines


def test_what_can_not_be_read_beside_the_object_is_named_in_its_place(kube: KubeServer) -> None:
    kube.refused[f"{APPS}/namespaces/shop/replicasets"] = (403, "replicasets is forbidden")
    kube.refused[f"{CORE}/namespaces/shop/events"] = (403, "events is forbidden")
    result = call(kube, "describe", kind="deploy", name="web", namespace="shop")
    assert result.status is ResultStatus.SUCCESS
    assert "rollout history: not available (403: replicasets is forbidden" in result.data
    assert "events: not available (403: events is forbidden" in result.data


def test_describe_service_counts_the_ready_pods_it_selects(kube: KubeServer) -> None:
    assert "pods matching app=web: 2, 1 of them ready" in call(kube, "describe", kind="svc", name="web").data


def test_describe_node_shows_pressure_taints_and_what_is_unwell_there(kube: KubeServer) -> None:
    data = call(kube, "describe", kind="node", name="node-1").data
    assert "taints: key=dedicated,value=shop,effect=NoSchedule" in data
    assert "pods here: 2; they request cpu 200m, memory 128Mi" in data
    assert "condition MemoryPressure=True" in data


@pytest.mark.parametrize("verb", ["get", "describe", "yaml"])
@pytest.mark.parametrize("everywhere", [True, False])
def test_a_secret_gives_its_keys_and_never_a_value(kube: KubeServer, verb: str, everywhere: bool) -> None:
    where = {} if everywhere else {"namespace": "shop"}
    result = call(kube, verb, kind="secrets", name="web", **where)
    whole = f"{result.data}{result.value}"
    assert "api-key" in whole
    assert "c2VjcmV0LXZhbHVl" not in whole


def test_yaml_has_no_managed_fields_and_no_literal_password(kube: KubeServer) -> None:
    data = call(kube, "yaml", kind="deployment", name="web", namespace="shop").data
    assert "managedFields" not in data
    assert "hunter2-literal" not in data
    assert "memory: 128Mi" in data
    assert "value: production" in data


def test_events_are_oldest_first_with_absolute_times_and_take_in_what_is_owned(kube: KubeServer) -> None:
    lines = call(kube, "events", namespace="shop", name="web").data.splitlines()
    assert lines[0].split()[:3] == ["LAST", "SEEN", "TYPE"]
    assert [line.split()[0] for line in lines[1:]] == ["2026-05-01T10:00:02Z", "2026-05-01T10:08:00Z"]
    assert "12 since 2026-05-01T09:59:00Z" in lines[2]


def test_events_since_a_duration_and_of_one_kind(kube: KubeServer) -> None:
    recent = call(kube, "events", since="4m").data
    assert "FailedScheduling" in recent
    assert "ScalingReplicaSet" not in recent
    deployments = call(kube, "events", kind="deployment", namespace="shop").data
    assert len(deployments.splitlines()) == 2
    nothing = call(kube, "events", kind="node")
    assert (nothing.status, nothing.data) == (
        ResultStatus.NO_DATA,
        "no events about nodes in any namespace; they are kept about an hour",
    )


def test_a_message_of_many_lines_stays_in_its_row(kube: KubeServer) -> None:
    data = call(kube, "events", name="api-ccc-1").data
    assert "0/1 nodes are available: 1 Insufficient cpu." in data
    assert len(data.splitlines()) == 2


def test_many_events_are_cut_to_the_newest(kube: KubeServer) -> None:
    many = (
        event(f"n{i}", "Pod", "x", "Pulled", f"number {i}", f"2026-05-01T09:{i // 60:02}:{i % 60:02}Z")
        for i in range(300)
    )
    kube.add(CORE, "events", *many)
    data = call(kube, "events", name="x").data
    assert data.startswith("PARTIAL: the newest 100 of 300;")
    assert "number 299" in data
    assert "number 199 " not in data


def test_logs_have_times_to_the_second_and_point_to_the_previous_run(kube: KubeServer) -> None:
    result = call(kube, "logs", name="web-bbb-1", namespace="shop")
    assert result.data.splitlines() == [
        "== web-bbb-1/app: 2 lines",
        "2026-05-01T10:07:01Z starting",
        "2026-05-01T10:07:02Z cache: loading 600 MB",
        "note: web-bbb-1 restarted 5 times, last end OOMKilled 137 2026-05-01T10:04:10Z: previous=true reads that run",
    ]
    assert result.query == "kubectl logs web-bbb-1 -n shop --all-containers --tail=100 --timestamps"


def test_logs_of_the_previous_run(kube: KubeServer) -> None:
    assert "ERROR cache full" in call(kube, "logs", name="web-bbb-1", previous="true").data
    never = call(kube, "logs", name="web-bbb-2", previous=True)
    assert never.status is ResultStatus.NO_DATA
    assert 'previous terminated container "app" in pod "web-bbb-2" not found' in never.data


@pytest.mark.parametrize(
    "arguments",
    [{"kind": "deployment", "name": "web"}, {"name": "deployment/web"}, {"selector": "app=web"}, {"name": "web"}],
)
def test_logs_of_a_workload_are_those_of_its_pods_the_unwell_first(kube: KubeServer, arguments: dict[str, str]) -> None:
    headings = [
        line for line in call(kube, "logs", namespace="shop", **arguments).data.splitlines() if line[:2] == "=="
    ]
    assert headings == ["== web-bbb-1/app: 2 lines", "== web-bbb-2/app: 1 lines"]


def test_logs_are_searched_and_counted(kube: KubeServer) -> None:
    kube.logs["shop/web-bbb-1/app"] = "".join(f"2026-05-01T10:07:02.5Z line {number}\n" for number in range(500))
    result = call(kube, "logs", name="web-bbb-1", namespace="shop", grep=r"line \d7$", tail=3)
    assert result.data.splitlines()[:4] == [
        "== web-bbb-1/app: 3 of 9 matching, 500 lines searched",
        "2026-05-01T10:07:02Z line 77",
        "2026-05-01T10:07:02Z line 87",
        "2026-05-01T10:07:02Z line 97",
    ]
    assert result.query.endswith("--timestamps | grep -iP -e 'line \\d7$'")
    assert call(kube, "logs", name="web-bbb-1", namespace="shop", grep="absent").status is ResultStatus.NO_DATA


def test_a_line_that_repeats_is_said_once(kube: KubeServer) -> None:
    kube.logs["shop/web-bbb-2/app"] = (
        "2026-05-01T10:07:02Z a\n" + "2026-05-01T10:07:03Z retry\n" * 40 + "2026-05-01T10:08:00Z b\n"
    )
    assert call(kube, "logs", name="web-bbb-2", namespace="shop").data.splitlines()[1:] == [
        "2026-05-01T10:07:02Z a",
        "2026-05-01T10:07:03Z retry",
        "  [the same 39 times more]",
        "2026-05-01T10:08:00Z b",
    ]


def test_logs_since_ask_for_a_time_and_control_characters_are_dropped(kube: KubeServer) -> None:
    kube.logs["shop/web-bbb-2/app"] = "2026-05-01T10:08:30Z \x1b]52;c;x\x07 red\x1b[31m\r\n"
    data = call(kube, "logs", name="web-bbb-2", namespace="shop", since="1m").data
    params = next(params for _, path, params, _ in kube.requests if path.endswith("/log"))
    assert params["sinceTime"] == "2026-05-01T10:08:00Z"
    assert "\x1b" not in data
    assert "\x07" not in data


@pytest.mark.parametrize(
    "line",
    [
        "2026-05-01 10:08:30,123 INFO ready",
        'level=INFO ts=2026-05-01T10:08:30.1Z msg="ready"',
        '{"level":"info","timestamp":"2026-05-01T10:08:30.1Z"}',
    ],
)
def test_a_line_with_a_time_of_its_own_gets_no_second_one(kube: KubeServer, line: str) -> None:
    kube.logs["shop/web-bbb-2/app"] = (
        f"2026-05-01T10:08:30.5Z {line}\n2026-05-01T10:08:31.5Z expired 2026-05-01 10:00:00\n"
    )
    assert call(kube, "logs", name="web-bbb-2", namespace="shop").data.splitlines()[1:] == [
        line,
        "2026-05-01T10:08:31Z expired 2026-05-01 10:00:00",
    ]


def test_escapes_in_a_message_are_inert(kube: KubeServer) -> None:
    kube.add(
        CORE, "events", event("evil", "Pod", "evil", "Failed", "\x1b]52;c;x\x07clip\u009b", "2026-05-01T10:08:00Z")
    )
    assert call(kube, "events", name="evil").data.splitlines()[1].endswith("]52;c;xclip")


def test_a_workload_that_is_not_whole_comes_first(kube: KubeServer) -> None:
    whole = {"metadata": meta("aaa"), "spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
    kube.objects = {f"{APPS}/namespaces/shop/deployments/aaa": whole, **kube.objects}
    rows = call(kube, "get", kind="deployments", namespace="shop").data.splitlines()
    assert [row.split()[0] for row in rows] == ["NAME", "web", "aaa"]


def test_a_container_that_is_not_there_names_those_that_are(kube: KubeServer) -> None:
    with pytest.raises(ToolError, match="containers are: api, proxy"):
        call(kube, "logs", name="api-ccc-1", container="app")


def test_top_sets_usage_beside_the_limit(kube: KubeServer) -> None:
    row = call(kube, "top", kind="pods", namespace="shop").data.splitlines()[2]
    assert row.split() == ["shop", "web-bbb-1", "app", "2m", "126Mi", "128Mi", "(98%)"]
    node = call(kube, "top", kind="nodes").data.splitlines()[2]
    assert node.split() == ["node-1", "2000m", "4000m", "(50%)", "6144Mi", "8192Mi", "(75%)"]


def test_a_cluster_without_metrics_api_says_so(kube: KubeServer) -> None:
    kube.refused["/apis/metrics.k8s.io"] = (404, "the server could not find the requested resource")
    with pytest.raises(ToolError, match=r"has no metrics API .* use a metrics toolset instead"):
        call(kube, "top", kind="pods")


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "pod", "name": "../../secrets/web"},
        {"kind": "pod", "name": ".."},
        {"kind": "pod", "name": "-o=json"},
        {"kind": "pod", "name": "web?x=1"},
        {"kind": "pod", "name": "web", "namespace": "shop/../kube-system"},
        {"kind": "pod", "name": "web", "namespace": "@evil.example"},
        {"kind": "../pods", "name": "web"},
        {"kind": "pod%2f", "name": "web"},
        {"kind": "pod", "name": "web\nx"},
        {"kind": "pod", "name": ""},
        {"kind": "", "name": "web"},
    ],
)
def test_no_argument_becomes_a_path_step_a_flag_or_a_host(kube: KubeServer, arguments: dict[str, str]) -> None:
    with pytest.raises(ToolError):
        call(kube, "describe", **arguments)
    assert kube.requests == []


def test_only_allowed_namespaces_are_read(kube: KubeServer) -> None:
    kube.add(CORE, "pods", web_pod("secretive", namespace="kube-system"))
    for verb, arguments in (
        ("get", {"kind": "pods"}),
        ("describe", {"kind": "pod", "name": "x"}),
        ("events", {}),
        ("logs", {"name": "x"}),
        ("top", {"kind": "pods"}),
    ):
        with pytest.raises(ToolError, match="'kube-system' is not open to this tool; open are: billing, shop"):
            call(kube, verb, "shop", "billing", namespace="kube-system", **arguments)
    assert "secretive" not in call(kube, "get", "shop", "billing", kind="pods").data
    assert call(kube, "yaml", "shop", "billing", kind="pod", name="secretive").status is ResultStatus.NO_DATA
    assert "kube-system" not in call(kube, "get", "shop", "billing", kind="ns").data
    assert not any("kube-system" in path or path == "/api/v1/pods" for path in kube.paths())


def test_every_request_is_a_get(kube: KubeServer) -> None:
    calls: tuple[tuple[str, dict[str, str]], ...] = (
        ("get", {"kind": "pods"}),
        ("describe", {"kind": "deploy", "name": "web"}),
        ("yaml", {"kind": "cm", "name": "web-config"}),
        ("events", {}),
        ("logs", {"name": "web-bbb-1"}),
        ("top", {}),
    )
    for verb, arguments in calls:
        assert call(kube, verb, **arguments).status is ResultStatus.SUCCESS
    toolset(kube).check(Deadline.after(5))
    assert {method for method, _, _, _ in kube.requests} == {"GET"}
    assert {headers["Authorization"] for _, _, _, headers in kube.requests} == {"Bearer t0ken-of-ours"}


def test_check_warns_when_secrets_can_be_read(kube: KubeServer) -> None:
    assert toolset(kube).check(Deadline.after(5)).state is HealthState.DEGRADED
    kube.refused["/api/v1/secrets"] = (403, "secrets is forbidden")
    health = toolset(kube).check(Deadline.after(5))
    assert (health.state, health.reason) == (HealthState.OK, "Kubernetes v1.34.1")


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [(401, "Unauthorized t0ken-of-ours", "does not accept our credentials"), (403, "pods is forbidden", "forbidden")],
)
def test_check_fails_with_the_reason_and_without_the_token(
    kube: KubeServer, status: int, message: str, words: str
) -> None:
    kube.refused["/api/v1/pods"] = (status, message)
    health = toolset(kube).check(Deadline.after(5))
    assert health.state is HealthState.FAILED
    assert words in health.reason
    assert "t0ken-of-ours" not in health.reason


def test_a_cluster_that_is_not_there_is_an_error_result_and_a_failed_check() -> None:
    gone = KubeServer(url="http://127.0.0.1:9")
    result = call(gone, "get", kind="pods")
    assert result.status is ResultStatus.ERROR
    assert "no answer from the cluster's API" in result.error
    assert toolset(gone).check(Deadline.after(5)).state is HealthState.FAILED


def test_a_connection_that_is_dropped_once_costs_no_call(kube: KubeServer) -> None:
    kube.drop_next = 1
    assert call(kube, "get", kind="pods").status is ResultStatus.SUCCESS
    kube.drop_next = 2
    assert call(kube, "get", kind="pods").status is ResultStatus.ERROR


def test_a_busy_clusters_cut_does_not_cost_the_events_of_the_object_asked_for(kube: KubeServer) -> None:
    noise = (event(f"a{i:04}", "Pod", f"other-{i}", "Pulled", "m", "2026-05-01T10:00:00Z") for i in range(2_600))
    events = {f"{CORE}/namespaces/shop/events/{one['metadata']['name']}": one for one in noise}
    kube.objects = {**events, **kube.objects}
    found = call(kube, "events", kind="deployment", name="web", namespace="shop")
    assert "ScalingReplicaSet" in found.data
    assert found.data.startswith("PARTIAL: searched 2001 of 2603 events")


def test_a_misspelt_parameter_is_named(kube: KubeServer) -> None:
    with pytest.raises(ToolError, match="no parameter 'label_selector'"):
        call(kube, "get", kind="pods", label_selector="app=web")
