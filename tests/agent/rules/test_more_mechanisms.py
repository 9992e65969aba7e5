# ruff: noqa: E501  (recorded lines are as long as they are)
"""Mechanisms that compare objects with each other: what proves each, what contradicts it, and where it stays silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.rules.mechanisms.catalog import ALL
from agent.rules.mechanisms.port import category
from agent.rules.scene import Scene
from agent.rules.scoring import judge, weigh
from tests.support.rules_world import (
    ALERT,
    called,
    described,
    events,
    listed,
    logs,
    manifest,
    pods,
    reported,
    scene_of,
    unit,
)

Told = tuple[str, Mapping[str, Any], str]

# An alert that names nothing but the namespace, as most complaints of people do.
VAGUE = ALERT | {"title": "People can't pay", "labels": {"namespace": "shop"}}

TILL = "till-6d5f7c9b84-x7k2p"
LEDGER = "ledger-7f6b9c8d5-q2w4r"
RUNNING = pods(f"""
NAME                     READY   STATUS    RESTARTS   AGE   IP          NODE
{TILL}    1/1     Running   0          5d    10.1.0.12   node-b
{LEDGER}   1/1     Running   0          5d    10.1.0.13   node-c
""")
DEPLOYED = listed(
    "deployments",
    "NAME    READY  UP-TO-DATE  AVAILABLE  AGE\ntill    1/1    1           1          5d\nledger  1/1    1           1          5d",
)
SERVICES = """
NAME    TYPE       CLUSTER-IP  EXTERNAL-IP  PORT(S)   AGE  SELECTOR
till    ClusterIP  10.96.0.20  <none>       80/TCP    5d   app=till
ledger  ClusterIP  10.96.0.21  <none>       8080/TCP  5d   app=ledger
stock   ClusterIP  10.96.0.22  <none>       9000/TCP  5d   app=stock
"""
REFUSED = logs(TILL, "2026-03-01T09:59:10Z ERROR dial tcp 10.96.0.21:8080: connect: connection refused")
BEHIND = listed("endpoints", "NAME    ENDPOINTS        AGE\ntill    10.1.0.12:80     5d\nledger  10.1.0.13:8080   5d")
NOTHING_BEHIND = listed("endpoints", "NAME    ENDPOINTS      AGE\ntill    10.1.0.12:80   5d\nledger  <none>         5d")


def ledger_pod(label: str = "ledger", port: int = 8080) -> Told:
    text = f"""
Name:             {LEDGER}
Namespace:        shop
Labels:           app={label}
                  pod-template-hash=7f6b9c8d5
Controlled By:    ReplicaSet/ledger-7f6b9c8d5
Containers:
  web:
    Image:          registry.example/ledger:1.0
    Port:           {port}/TCP
    State:          Running
      Started:      Sun, 01 Mar 2026 08:00:00 +0000
    Ready:          True
    Environment:
      STOCK_ADDR:  stock:9000
Conditions:
  Ready  True
Events:  <none>
"""
    return described("pod", LEDGER, text)


def till_pod(setting: str) -> Told:
    text = f"""
Name:             {TILL}
Controlled By:    ReplicaSet/till-6d5f7c9b84
Containers:
  web:
    Image:          registry.example/till:1.0
    State:          Running
    Environment:
      {setting}
Conditions:
  Ready  True
"""
    return described("pod", TILL, text)


PENDING = pods(
    f"NAME   READY   STATUS    RESTARTS   AGE   IP       NODE\n{LEDGER}   0/1     Pending   0          3m    <none>   <none>"
)
UNBOUND = events(
    "LAST SEEN             TYPE     REASON            OBJECT             MESSAGE\n"
    f"2026-03-01T09:59:00Z  Warning  FailedScheduling  Pod/{LEDGER}       0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
)
CLAIMS = listed(
    "persistentvolumeclaims",
    "NAME         STATUS   VOLUME   CAPACITY   ACCESS MODES   STORAGECLASS   AGE\nledger-data  Pending                                      {klass}           3m",
)


def claims(klass: str = "    ") -> Told:
    tool, arguments, text = CLAIMS
    return tool, arguments, text.format(klass=klass)


def volume(
    capacity: str = "5Gi", modes: str = "RWO", status: str = "Available", claim: str = "", klass: str = ""
) -> Told:
    headers = ("NAME", "CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS", "AGE")
    row = ("disk-1", capacity, modes, "Retain", status, claim, klass, "3d")
    widths = [max(len(a), len(b)) for a, b in zip(headers, row, strict=True)]
    table = "\n".join("   ".join(map(str.ljust, line, widths)) for line in (headers, row))
    return "kubernetes_get", {"kind": "persistentvolumes"}, table


def claim(storage: str = "5Gi", mode: str = "ReadWriteOnce", klass: str = "", more: str = "") -> Told:
    text = f"""
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: ledger-data
spec:
  accessModes:
    - {mode}
  resources:
    requests:
      storage: {storage}
  storageClassName: "{klass}"
{more}"""
    return manifest("persistentvolumeclaim", "ledger-data", text)


ROUTES = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: front-routes
data:
  routes.yml: |-
    routes:
      - id: till
        uri: lb://${{TILL_HOST:shop-till}}
        predicates:
          - Path=/v1/till/**
      - id: ledger
        uri: lb://{ledger}
        predicates:
          - Path=/v1/ledger/**
      - id: stock
        uri: lb://shop-stock
        predicates:
          - Path=/v1/stock/**
      - id: mail
        uri: http://shop-mail:9000
        predicates:
          - Path=/v1/mail/**
"""
ALL_SERVICES = listed(
    "services",
    "NAME         TYPE       CLUSTER-IP  PORT(S)  AGE\nshop-till    ClusterIP  10.96.0.1   80/TCP   5d\nshop-ledger  ClusterIP  10.96.0.2   80/TCP   5d\nshop-stock   ClusterIP  10.96.0.3   80/TCP   5d\nshop-mail    ClusterIP  10.96.0.4   80/TCP   5d",
)

TREE = called("till", "[Upstream (Called By)]: front\n[Downstream (Calls)]:\ntill\n├── ledger\n│   └── stock\n└── mail")
DELAYED = '{service="ledger"} LATENCY [Slow Response] | p90latency: Normal=20.00ms -> Current=2020.00ms (+10000.0%)'
CALLER = '{service="till"} LATENCY [Slow Response] | p90latency: Normal=90.00ms -> Current=2190.00ms (+2333.3%)'
HOT = (
    '{service="ledger"} SATURATION [cpu_cfs] | Val: 0.7s (Throttled)\n'
    '{service="ledger"} SATURATION [cpu core] | Normal=0.01 cores -> Current=0.20 cores (+1900.0%)\n'
    '{service="ledger"} LATENCY | p95latency: Normal=5.00ms -> Current=80.00ms (+1500.0%)'
)
STOPPED = "Service: {0}\nStatus: {0}.service\n     Active: inactive (dead) since Sun 2026-03-01 09:50:00 UTC; 9min ago"
NODES = listed(
    "nodes",
    "NAME    STATUS                     ROLES    AGE   VERSION\nhead    Ready,SchedulingDisabled   master   90d   v1.31.2\nnode-b  Ready                      node     90d   v1.31.2\nnode-c  {state}                      node     90d   v1.31.2",
)


def nodes(state: str = "Ready") -> Told:
    tool, arguments, text = NODES
    return tool, arguments, text.format(state=state)


# The mechanism with its variant, the component, and what is told.
PROVED: dict[str, tuple[tuple[str, str], list[Told]]] = {
    "a selector that matches nothing": (("service_selector", "ledger"), [RUNNING, listed("services", SERVICES.replace("app=ledger", "app=ledgers")), NOTHING_BEHIND, ledger_pod(), REFUSED]),
    "a target port nobody listens on": (("service_port", "ledger"), [RUNNING, listed("services", SERVICES), listed("endpoints", BEHIND[2].replace("13:8080", "13:8081")), ledger_pod(), REFUSED]),
    "a target port by a name that no container has": (("service_port", "ledger"), [RUNNING, listed("services", SERVICES), NOTHING_BEHIND, ledger_pod(), REFUSED]),
    "a service for datagrams": (("service_protocol", "ledger"), [RUNNING, listed("services", SERVICES.replace("8080/TCP", "8080/UDP")), BEHIND, ledger_pod(), REFUSED]),
    "a host that does not exist": (("wrong_address", "till"), [RUNNING, listed("services", SERVICES), till_pod("LEDGER_ADDR:  ledgre:8080"), logs(TILL, "ERROR dial tcp: lookup ledgre on 10.96.0.10:53: no such host")]),
    "a port that the service does not have": (("wrong_address", "till"), [RUNNING, listed("services", SERVICES), till_pod("LEDGER_ADDR:  ledger:8081"), logs(TILL, "ERROR dial tcp 10.96.0.21:8081: connect: connection refused")]),
    "a database port from a secret": (
        ("wrong_address.database", "till"),
        [
            RUNNING,
            listed("services", SERVICES + "main-db  ClusterIP  10.96.0.30  <none>       5432/TCP  5d   app=main-db\n"),
            manifest("deployment", "till", "kind: Deployment\nmetadata:\n  name: till\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        envFrom:\n        - secretRef:\n            name: till-db\n---\nkind: Secret\nmetadata:\n  name: till-db\nstringData:\n  TILL_DB_HOST: main-db\n  TILL_DB_PORT: \"15432\"\n"),
            logs(TILL, "FATAL Communications link failure: Connection refused (Connection refused)"),
        ],
    ),
    "a claim of a class that does not exist": (
        ("volume_claim.storage_class", "ledger"),
        [PENDING, UNBOUND, claims("fast"), described("persistentvolumeclaim", "ledger-data", 'Name:          ledger-data\nUsed By:       ' + LEDGER + '\nEvents:\n  Type     Reason              Age   From                         Message\n  Warning  ProvisioningFailed  15s   persistentvolume-controller  storageclass.storage.k8s.io "fast" not found')],
    ),
    "a claim larger than the volume": (("volume_claim.capacity", "ledger"), [PENDING, UNBOUND, claims(), volume(), claim(storage="8Gi")]),
    "a claim for many writers": (("volume_claim.access_mode", "ledger"), [PENDING, UNBOUND, claims(), volume(), claim(mode="ReadWriteMany")]),
    "a claim that selects by labels": (("volume_claim.selector", "ledger"), [PENDING, UNBOUND, claims(), volume(), claim(more="  selector:\n    matchLabels:\n      tier: gold\n")]),
    "a volume that another claim has": (("volume_claim.occupied", "ledger"), [PENDING, UNBOUND, claims(), volume(status="Bound", claim="shop/other"), claim()]),
    "a route to a wrong service": (("misroute", "shop-ledger"), [RUNNING, ALL_SERVICES, manifest("configmap", "front-routes", ROUTES.format(ledger="shop-stock"))]),
    "a slow network of one pod": (("network_delay", "ledger"), [RUNNING, TREE, reported(f"{CALLER}\n{DELAYED}")]),
    "a program at its CPU limit": (("cpu_overload", "ledger"), [RUNNING, TREE, reported(f"{HOT}\n{CALLER}")]),
    "a node that loses packets": (("node_network.loss", "node-c"), [RUNNING, TREE, reported(f'{DELAYED}\n{CALLER}\n{{node="node-b"}} NETWORK [TCP Retransmission] | Normal=0.03retrans -> Current=0.60retrans\n{{node="node-c"}} NETWORK [TCP Retransmission] | Normal=0.00retrans -> Current=9.10retrans (New Spike)')]),
    "a node whose network is slow": (
        ("node_network.delay", "node-c"),
        [
            pods(RUNNING[2] + "stock-7f6b9c8d5-k8k8k    1/1     Running   0          5d    10.1.0.14   node-c\n"),
            reported(DELAYED + "\n" + DELAYED.replace("ledger", "stock") + '\n{node="node-b"} NETWORK [TCP Retransmission] | Normal=0.00retrans -> Current=0.70retrans'),
        ],
    ),
    "a container runtime that is stopped": (("node_component_down.containerd", "node-c"), [RUNNING, nodes("NotReady"), unit("node-c", "containerd", STOPPED.format("containerd"))]),
    "kube-proxy stopped": (("node_component_down.kube-proxy", "node-b"), [RUNNING, nodes(), unit("node-b", "kube-proxy", STOPPED.format("kube-proxy")), logs(TILL, "ERROR dial tcp 10.96.0.21:8080: i/o timeout")]),
    "the runtime's socket is gone": (
        ("node_component_down.containerd", "node-c"),
        [RUNNING, nodes("NotReady"), events("LAST SEEN             TYPE     REASON             OBJECT       MESSAGE\n2026-03-01T09:59:00Z  Warning  ContainerGCFailed  node/node-c  rpc error: dial unix /run/containerd/containerd.sock: connect: no such file or directory")],
    ),
    "the scheduler is stopped": (("node_component_down.kube-scheduler", "head"), [PENDING, nodes(), unit("head", "kube-scheduler", STOPPED.format("kube-scheduler"))]),
    "a quota of services, and one is missing": (
        ("quota_exceeded.services", "shop"),
        [
            RUNNING,
            listed("deployments", "NAME    READY  UP-TO-DATE  AVAILABLE  AGE\ntill    1/1    1           1          5d\nstock   1/1    1           1          5d\nledger  1/1    1           1          5d"),
            listed("services", "NAME   TYPE       CLUSTER-IP  PORT(S)   AGE\ntill   ClusterIP  10.96.0.20  80/TCP    5d\nstock  ClusterIP  10.96.0.22  9000/TCP  5d"),
            listed("resourcequotas", "NAME    AGE   REQUEST         LIMIT\nlimits  9d    services: 2/2   "),
        ],
    ),
}  # fmt: skip

SILENT: dict[str, list[Told]] = {
    "a service that leads to its pods": [RUNNING, listed("services", SERVICES), BEHIND, ledger_pod()],
    "no endpoints while nothing is ready": [pods(f"NAME   READY   STATUS   RESTARTS   AGE\n{LEDGER}   0/1   Running   0   20s"), listed("services", SERVICES), NOTHING_BEHIND],
    "no endpoints, and no labels were seen": [RUNNING, listed("services", SERVICES), NOTHING_BEHIND],
    "a port that a sidecar serves": [RUNNING, listed("services", SERVICES), BEHIND, ledger_pod(port=8080)],
    "a setting that nobody complains of": [RUNNING, listed("services", SERVICES), till_pod("GIFT_ADDR:  wrapping:80"), logs(TILL, "ERROR dial tcp: lookup elsewhere.example.com on 10.96.0.10:53: i/o refused")],
    "a service of another namespace": [RUNNING, listed("services", SERVICES), till_pod("MESH_ADDR:  pilot.mesh.svc:15012"), logs(TILL, "WARN upstream pilot.mesh.svc:15012: connection refused, will try again")],
    "a claim that is bound": [RUNNING, listed("persistentvolumeclaims", "NAME         STATUS   VOLUME   CAPACITY   ACCESS MODES   STORAGECLASS   AGE\nledger-data  Bound    disk-1   5Gi        RWO            fast           3d")],
    "routes that keep to their custom": [RUNNING, ALL_SERVICES, manifest("configmap", "front-routes", ROUTES.format(ledger="shop-ledger"))],
    "a route whose own service does not exist": [RUNNING, ALL_SERVICES, manifest("configmap", "front-routes", ROUTES.replace("- id: stock", "- id: store").format(ledger="shop-ledger"))],
    "throttling alone": [RUNNING, reported('{service="ledger"} SATURATION [cpu_cfs] | Val: 0.3s (Throttled)')],
    "a latency that rose by little": [RUNNING, TREE, reported('{service="ledger"} LATENCY | p90latency: Normal=20.00ms -> Current=30.00ms (+50.0%)')],
    "a few retransmissions": [RUNNING, reported('{node="node-b"} NETWORK [TCP Retransmission] | Normal=0.03retrans -> Current=0.60retrans')],
    "a service that runs": [RUNNING, nodes(), unit("node-c", "kubelet", "     Active: active (running) since Sun 2026-03-01 08:00:00 UTC; 2h ago")],
    "a runtime that was gone for a moment": [RUNNING, nodes(), events("LAST SEEN             TYPE     REASON             OBJECT       MESSAGE\n2026-03-01T09:20:00Z  Warning  ContainerGCFailed  node/node-c  rpc error: dial unix /run/containerd/containerd.sock: connect: no such file or directory")],
    "a pod without a node and without a word": [PENDING, nodes()],
    "a full quota that nothing lacks": [RUNNING, DEPLOYED, listed("services", SERVICES), listed("resourcequotas", "NAME    AGE   REQUEST         LIMIT\nlimits  9d    services: 3/3   ")],
    "an event of a pod that was replaced": [RUNNING, events('LAST SEEN             TYPE     REASON  OBJECT                        MESSAGE\n2026-03-01T09:40:00Z  Warning  Failed  Pod/ledger-7f6b9c8d5-zzzz2  Error: secret "ledger-db" not found')],
    "a left-over of a roll-out that went well": [
        pods("NAME                     READY  STATUS            RESTARTS  CREATED               NODE\nledger-5c4d8b7f96-k8k8k  0/1    CrashLoopBackOff  2         2026-02-01T08:00:00Z  node-b\nledger-7f6b9c8d5-q2w4r   1/1    Running           0         2026-03-01T09:30:00Z  node-c"),
        DEPLOYED,
        described("pod", "ledger-5c4d8b7f96-k8k8k", "Pod shop/ledger-5c4d8b7f96-k8k8k, created 2026-02-01T08:00:00Z\ncontainer web: registry.example/ledger:0.9\n  state: waiting CrashLoopBackOff: back-off 10s; ready False; restarts 2"),
    ],
}  # fmt: skip


def conclude(*told) -> tuple[str, str] | None:
    """The category and the component that are convicted."""
    scene = scene_of(*told, alert=VAGUE, tools=TOOLS)
    best = judge(scene, weigh(scene, ALL)).best
    if best is None:
        return None
    account = best.hypothesis.mechanism.account(best.hypothesis, scene)
    return category(best.hypothesis, account), best.hypothesis.component.name


def tool(name: str) -> dict[str, dict[str, str]]:
    return {"function": {"name": name}}


TOOLS = [
    tool(f"{toolset}_{verb}")
    for toolset, verbs in {
        "kubernetes": ("get", "describe", "events", "logs", "top", "yaml"),
        "prometheus": ("query", "query_range", "rules", "alerts", "labels"),
        "mesh": ("dependencies",),
        "nodes": ("service_status",),
    }.items()
    for verb in verbs
]


@pytest.mark.parametrize("case", PROVED)
def test_a_mechanism_is_proved(case):
    wanted, told = PROVED[case]
    assert conclude(*told) == wanted


@pytest.mark.parametrize("case", SILENT)
def test_the_rules_abstain(case):
    assert conclude(*SILENT[case]) is None


@pytest.mark.parametrize("case", PROVED)
def test_every_conviction_has_an_account_and_next_steps(case):
    scene: Scene = scene_of(*PROVED[case][1], alert=VAGUE, tools=TOOLS)
    best = judge(scene, weigh(scene, ALL)).best
    assert best is not None
    account = best.hypothesis.mechanism.account(best.hypothesis, scene)
    assert account.did
    assert account.because
    assert "  " not in account.because
    told = list(best.hypothesis.mechanism.next_steps(best.hypothesis, scene))
    assert all(step.undo for step in told if step.mutating)


@pytest.mark.parametrize(
    ("said", "variant"),
    [
        ("1 node(s) were unschedulable, 2 Insufficient cpu", "cpu"),
        ("1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector", "affinity"),
        ("1 node(s) didn't match Pod's node affinity/selector, 2 node(s) were unschedulable", "cordoned"),
        ("1 node(s) had untolerated taint {team: data}, 1 node(s) were unschedulable, 1 node(s) didn't match Pod's node affinity/selector", "taint"),
        ("1 node(s) were unschedulable, 2 node(s) didn't match pod anti-affinity rules", "anti_affinity"),
    ],
)  # fmt: skip
def test_the_obstacle_is_what_keeps_a_pod_from_the_nodes_it_is_meant_for(said, variant):
    event = f"LAST SEEN             TYPE     REASON            OBJECT             MESSAGE\n2026-03-01T09:59:00Z  Warning  FailedScheduling  Pod/{LEDGER}       0/3 nodes are available: {said}. preemption: not helpful"
    assert conclude(PENDING, nodes(), events(event)) == (f"unschedulable.{variant}", "ledger")


def test_a_plain_node_selector_is_told_from_an_affinity():
    event = f"LAST SEEN             TYPE     REASON            OBJECT             MESSAGE\n2026-03-01T09:59:00Z  Warning  FailedScheduling  Pod/{LEDGER}       0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    pod = described("pod", LEDGER, f"Name:             {LEDGER}\nNode-Selectors:   disk=fast\nEvents:  <none>")
    assert conclude(PENDING, nodes(), events(event), pod) == ("unschedulable.selector", "ledger")


def test_pods_that_find_no_place_because_a_node_is_lost_are_explained_by_the_node():
    event = f"LAST SEEN             TYPE     REASON            OBJECT             MESSAGE\n2026-03-01T09:59:00Z  Warning  FailedScheduling  Pod/{LEDGER}       0/3 nodes are available: 1 node(s) had untolerated taint {{node.kubernetes.io/unreachable: }}, 2 Insufficient cpu."
    assert conclude(PENDING, nodes("NotReady"), events(event)) == ("node_not_ready", "node-c")


def test_a_callee_that_is_hardly_slower_is_not_what_its_caller_waits_for():
    stock = '{service="stock"} LATENCY | p90latency: Normal=0.50ms -> Current=60.00ms (+11900.0%)'
    assert conclude(RUNNING, TREE, reported(f"{DELAYED}\n{stock}")) == ("network_delay", "ledger")


def test_a_login_that_a_server_refuses_is_the_clients_by_its_address():
    server = logs(
        "main-db-0", "2026-03-01T09:59:00Z [Note] Access denied for user 'app'@'10.1.0.12' (using password: YES)"
    )
    assert conclude(RUNNING, server) == ("invalid_credentials", "till")


def test_an_old_login_of_a_pod_that_is_gone_accuses_nobody():
    server = logs(
        "main-db-0", "2026-03-01T09:59:00Z [Note] Access denied for user 'app'@'10.1.0.99' (using password: YES)"
    )
    assert conclude(RUNNING, server) is None


def test_a_write_that_a_database_relays_is_told_of_the_volume_that_is_full():
    query = 'min by (persistentvolumeclaim) (kubelet_volume_stats_available_bytes{namespace="shop"} / kubelet_volume_stats_capacity_bytes{namespace="shop"})'
    full = (
        "prometheus_query_range",
        {"query": query},
        '{persistentvolumeclaim="data-main-db-0"} first=0.4 last=0.001 min=0.001 max=0.4',
    )
    line = logs(TILL, "ERROR insert failed: pq: could not extend file: No space left on device")
    assert conclude(RUNNING, full, line) == ("disk_full", "data-main-db-0")
