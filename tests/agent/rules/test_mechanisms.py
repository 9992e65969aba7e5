# ruff: noqa: E501  (recorded lines are as long as they are)
"""Each mechanism: what proves it, what contradicts it, and where it stays silent."""

from __future__ import annotations

import pytest

from agent.rules.mechanisms.catalog import ALL
from agent.rules.scene import Scene
from agent.rules.scoring import Finding, Verdict, judge, weigh
from tests.agent.rules.test_more_mechanisms import PROVED as MORE_PROVED
from tests.support.rules_world import ALERT, described, events, listed, logs, measured, pods, scene_of

POD = "basket-6d5f7c9b84-x7k2p"
READY = pods(f"""
NAME                      READY   STATUS    RESTARTS   AGE   IP          NODE
{POD}   1/1     Running   0          5d    10.1.0.12   node-b
""")
WAITING = pods(f"""
NAME                      READY   STATUS             RESTARTS      AGE   IP          NODE
{POD}   0/1     CrashLoopBackOff   4 (40s ago)   9m    10.1.0.12   node-b
""")


def container(last: str = "", state: str = "Running", extra: str = "", memory: str = "64Mi") -> str:
    return f"""
Name:             {POD}
Namespace:        shop
Controlled By:    ReplicaSet/basket-6d5f7c9b84
Containers:
  web:
    Image:          registry.example/basket:2.4.1
    Port:           8080/TCP
    State:          {state}
{last}    Ready:          False
    Limits:
      cpu:     500m
      memory:  {memory}
{extra}    Environment:    <none>
Conditions:
  Type   Status
  Ready  False
Events:  <none>
"""


def ended(reason: str, code: int) -> str:
    return (
        f"    Last State:     Terminated\n      Reason:       {reason}\n      Exit Code:    {code}\n"
        "      Finished:     Sun, 01 Mar 2026 11:58:00 +0200\n"
    )


def event(reason: str, message: str, about: str = f"Pod/{POD}", kind: str = "Warning") -> str:
    return f"LAST SEEN             TYPE     REASON   OBJECT   COUNT  MESSAGE\n2026-03-01T09:59:00Z  {kind}  {reason}  {about}  3 since 2026-03-01T09:50:00Z  {message}"


def conclude(scene: Scene) -> Verdict:
    return judge(scene, weigh(scene, ALL))


def verdict(*told, alert=ALERT) -> Verdict:
    return conclude(scene_of(*told, alert=alert))


def cause(*told, alert=ALERT) -> tuple[str, str] | None:
    """Mechanism and component that are convicted."""
    best = verdict(*told, alert=alert).best
    return (best.hypothesis.mechanism.name, best.hypothesis.component.name) if best else None


def sentence(scene: Scene) -> str:
    best = conclude(scene).best
    assert best is not None
    account = best.hypothesis.mechanism.account(best.hypothesis, scene)
    return f"{best.hypothesis.component.name} {account.did} because {account.because} [{account.trigger}]"


MEMORY = 'max by (namespace, pod, container) (container_memory_working_set_bytes{container!="",namespace="shop"})'
LIMIT = 'max by (namespace, pod, container) (kube_pod_container_resource_limits{resource="memory",namespace="shop"})'
FREE = 'min by (instance, mountpoint) (node_filesystem_avail_bytes{a="b"} / node_filesystem_size_bytes{a="b"})'
THROTTLED = (
    "sum by (pod) (rate(container_cpu_cfs_throttled_periods_total[5m]))"
    " / sum by (pod) (rate(container_cpu_cfs_periods_total[5m]))"
)
CERTIFICATE = "min by (instance) (probe_ssl_earliest_cert_expiry - time())"
REFUSED = "2026-03-01T09:59:10Z ERROR dial tcp: lookup {host} on 10.96.0.10:53: {said}"
DEPLOYMENTS = "NAME   READY   UP-TO-DATE   AVAILABLE   AGE\n"

PROVED = {
    "oom by describe": (
        ("memory_limit", "basket"),
        [WAITING, described("pod", POD, container(ended("OOMKilled", 137), "Waiting\n      Reason:       CrashLoopBackOff"))],
    ),
    "oom by our own describe": (
        ("memory_limit", "basket"),
        [
            described(
                "pod",
                POD,
                f"Pod shop/{POD}, created 2026-03-01T09:40:00Z\nowned by: ReplicaSet/basket-6d5f7c9b84, Deployment/basket\n"
                "container web: registry.example/basket:2.4.1\n"
                "  state: waiting CrashLoopBackOff; ready False; restarts 4\n"
                "  last state: terminated OOMKilled, exit code 137, 2026-03-01T09:57:01Z to 2026-03-01T09:58:00Z\n"
                "  requests: memory=32Mi; limits: memory=64Mi",
            )
        ],
    ),
    "image tag": (
        ("image_pull", "basket"),
        [
            pods(f"NAME   READY   STATUS   RESTARTS   AGE\n{POD}   0/1   ImagePullBackOff   0   3m"),
            events(
                event(
                    "Failed",
                    'Failed to pull image "registry.example/basket:2.4.l": rpc error: code = NotFound desc ='
                    " registry.example/basket:2.4.l: not found",
                )
            ),
        ],
    ),
    "full disk in the log": (
        ("disk_full", "basket"),
        [WAITING, logs(POD, "2026-03-01T09:58:00Z FATAL could not write block 7: No space left on device")],
    ),
    "full volume by metric": (
        ("disk_full", "data-basket-0"),
        [
            measured(
                "min by (namespace, persistentvolumeclaim) (kubelet_volume_stats_available_bytes{namespace=\"shop\"}"
                " / kubelet_volume_stats_capacity_bytes{namespace=\"shop\"})",
                '{namespace="shop",persistentvolumeclaim="data-basket-0"} first=0.4 last=0.001 min=0.001 max=0.4 avg=0.2',
            )
        ],
    ),
    "expired certificate": (
        ("certificate_expired", "ledger"),
        [
            logs(
                POD,
                '2026-03-01T09:58:00Z error Post "https://ledger.shop.svc:8443/v1": tls: failed to verify certificate:'
                " x509: certificate has expired or is not yet valid: current time 2026-03-01 is after 2026-02-28",
            )
        ],
    ),
    "certificate by probe": (
        ("certificate_expired", "pay.example.com"),
        [measured(CERTIFICATE, '{instance="https://pay.example.com"} first=1200 last=-2400 min=-2400 max=1200 avg=-600')],
    ),
    "pool of the client": (
        ("connection_pool_exhausted", "basket"),
        [
            READY,
            logs(
                POD,
                "2026-03-01T09:58:00Z ERROR HikariPool-1 - Connection is not available, request timed out after 30000ms",
            ),
        ],
    ),
    "connections of the server": (
        ("connection_pool_exhausted", "orders-db"),
        [
            READY,
            logs(
                POD,
                'connection to server at "orders-db" (10.1.2.3), port 5432 failed: FATAL: sorry, too many clients already'
                "  postgres://app@orders-db:5432/shop",
            ),
        ],
    ),
    "pool by metric": (
        ("connection_pool_exhausted", "basket"),
        [
            measured("max by (pod) (db_pool_connections_max)", f'{{pod="{POD}"}} constant 20'),
            measured("max by (pod) (db_pool_connections_active)", f'{{pod="{POD}"}} first=3 last=20 min=3 max=20 avg=15'),
        ],
    ),
    "own cpu limit": (
        ("cpu_throttling", "basket"),
        [measured(THROTTLED, f'{{namespace="shop",pod="{POD}"}} first=0.02 last=0.71 min=0.01 max=0.8 avg=0.4')],
    ),
    "noisy neighbour": (
        ("noisy_neighbour", "transcoder"),
        [
            pods(
                "NAME   READY   STATUS   RESTARTS   AGE   IP   NODE\n"
                f"{POD}   1/1   Running   0   5d   10.1.0.12   node-b\n"
                "transcoder-7f6b9c8d5-q2w4r   1/1   Running   0   40m   10.1.0.13   node-b"
            ),
            ("kubernetes_top", {"kind": "nodes"}, "NODE    CPU   CPU ALLOCATABLE   MEMORY\nnode-b  3.9   4 (98%)   3Gi"),
            (
                "kubernetes_top",
                {"kind": "pods"},
                f"POD   CONTAINER   CPU   MEMORY\ntranscoder-7f6b9c8d5-q2w4r   main   3.4   1Gi\n{POD}   web   0.2   90Mi",
            ),
        ],
    ),
    "unknown name": (
        ("dns_failure", "basket"),
        [WAITING, logs(POD, REFUSED.format(host="ledgr.shop.svc", said="no such host"))],
    ),
    "resolver down": (
        ("dns_failure", "basket"),
        [WAITING, logs(POD, REFUSED.format(host="ledger.shop.svc", said="server misbehaving"))],
    ),
    "missing secret": (
        ("missing_reference", "basket"),
        [
            pods(f"NAME   READY   STATUS   RESTARTS   AGE\n{POD}   0/1   CreateContainerConfigError   0   3m"),
            events(event("Failed", 'Error: secret "basket-db" not found')),
        ],
    ),
    "missing config map on mount": (
        ("missing_reference", "basket"),
        [
            events(
                event("FailedMount", 'MountVolume.SetUp failed for volume "cfg" : configmap "basket-settings" not found')
            )
        ],
    ),
    "probe on the wrong port": (
        ("probe_failure", "basket"),
        [
            pods(f"NAME   READY   STATUS   RESTARTS   AGE\n{POD}   0/1   Running   0   3m"),
            described(
                "pod",
                POD,
                container(extra="    Readiness:  http-get http://:9090/ready delay=0s timeout=1s period=10s #success=1\n"),
            ),
            events(
                event(
                    "Unhealthy",
                    'Readiness probe failed: Get "http://10.1.0.12:9090/ready": dial tcp 10.1.0.12:9090:'
                    " connect: connection refused",
                )
            ),
        ],
    ),
    "quota": (
        ("quota_exceeded", "shop"),
        [
            events(
                event(
                    "FailedCreate",
                    'Error creating: pods "basket-6d5f7c9b84-" is forbidden: exceeded quota: compute,'
                    " requested: limits.cpu=500m, used: limits.cpu=4, limited: limits.cpu=4",
                    "ReplicaSet/basket-6d5f7c9b84",
                )
            )
        ],
    ),
    "unschedulable": (
        ("unschedulable", "basket"),
        [
            pods(f"NAME   READY   STATUS   RESTARTS   AGE\n{POD}   0/1   Pending   0   3m"),
            events(event("FailedScheduling", "0/3 nodes are available: 3 Insufficient memory.")),
        ],
    ),
    "dependency without ready pods": (
        ("dependency_down", "ledger"),
        [
            READY,
            listed("deployments", f"{DEPLOYMENTS}basket   1/1   1   1   5d\nledger   0/1   1   0   5d"),
            logs(POD, "2026-03-01T09:58:00Z ERROR connect ECONNREFUSED ledger:8080"),
        ],
    ),
    "outside service": (
        ("dependency_down", "api.pay.example.com"),
        [READY, logs(POD, "2026-03-01T09:58:00Z ERROR connect ECONNREFUSED api.pay.example.com:443")],
    ),
    "crash loop": (
        ("crash_loop", "basket"),
        [WAITING, described("pod", POD, container(ended("Error", 3), "Waiting\n      Reason:       CrashLoopBackOff"))],
    ),
    "scaled to zero": (
        ("scaled_to_zero", "ledger"),
        [
            listed("deployments", f"{DEPLOYMENTS}ledger   0/0   0   0   5d"),
            logs(POD, "2026-03-01T09:58:00Z ERROR connect ECONNREFUSED ledger:8080"),
        ],
    ),
    "node lost": (
        ("node_not_ready", "node-b"),
        [READY, listed("nodes", "NAME   STATUS   ROLES   AGE   VERSION\nnode-b   NotReady   worker   90d   v1.31.2")],
    ),
    "wrong password": (
        ("invalid_credentials", "basket"),
        [WAITING, logs(POD, '2026-03-01T09:58:00Z FATAL: password authentication failed for user "app"')],
    ),
    "port taken": (
        ("port_conflict", "basket"),
        [WAITING, logs(POD, "2026-03-01T09:58:00Z Error: listen EADDRINUSE: address already in use :::8080")],
    ),
    "read-only database": (
        ("database_read_only", "basket"),
        [WAITING, logs(POD, "ERROR: cannot execute INSERT in a read-only transaction")],
    ),
    "permission": (
        ("permission_denied", "basket"),
        [WAITING, logs(POD, "fatal: open /data/lock: permission denied")],
    ),
}  # fmt: skip

REFUTED = {
    "memory far below its limit": (
        "memory_limit",
        [
            measured(MEMORY, f'{{namespace="shop",pod="{POD}",container="web"}} first=2e7 last=3e7 min=2e7 max=3e7 avg=2e7'),
            measured(LIMIT, f'{{namespace="shop",pod="{POD}",container="web"}} constant 268435456'),
        ],
    ),
    "the container ended otherwise": ("memory_limit", [described("pod", POD, container(ended("Error", 3)))]),
    "room on the disk": (
        "disk_full",
        [measured(FREE, '{instance="node-b:9100",mountpoint="/"} first=0.5 last=0.5 min=0.5 max=0.5 avg=0.5')],
    ),
    "certificate valid for weeks": (
        "certificate_expired",
        [measured(CERTIFICATE, '{instance="https://pay.example.com"} constant 5184000')],
    ),
    "spare connections": (
        "connection_pool_exhausted",
        [
            measured("max by (pod) (db_pool_connections_max)", f'{{pod="{POD}"}} constant 20'),
            measured("max by (pod) (db_pool_connections_active)", f'{{pod="{POD}"}} first=3 last=4 min=3 max=5 avg=4'),
        ],
    ),
    "hardly throttled": (
        "cpu_throttling",
        [measured(THROTTLED, f'{{pod="{POD}"}} first=0.0 last=0.01 min=0 max=0.02 avg=0.01')],
    ),
    "restarts are flat": (
        "crash_loop",
        [measured(f'kube_pod_container_status_restarts_total{{pod="{POD}"}}', f'{{pod="{POD}"}} constant 2')],
    ),
    "the probe passes again": (
        "probe_failure",
        [READY, events(event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"))],
    ),
    "the dependency is ready": (
        "dependency_down",
        [
            listed("deployments", f"{DEPLOYMENTS}ledger   2/2   2   2   5d"),
            logs(POD, "ERROR connect ECONNREFUSED ledger:8080"),
        ],
    ),
    "the queue was worked off": (
        "queue_lag",
        [
            measured(
                "sum by (consumergroup, topic) (kafka_consumergroup_lag)",
                '{consumergroup="mailer",topic="mails"} first=10 last=12 min=8 max=9000 avg=500',
            )
        ],
    ),
    "the node is ready": (
        "node_not_ready",
        [listed("nodes", "NAME   STATUS   ROLES   AGE   VERSION\nnode-b   Ready   worker   90d   v1.31.2")],
    ),
}  # fmt: skip

SILENT = {
    "a log line that speaks of an OOM kill": [READY, logs(POD, "ERROR previous job said: Reason: OOMKilled, exit 137")],
    "a log line in the form of an event": [
        READY,
        logs(POD, f"2026-03-01T09:59:00Z  Warning  FailedScheduling  Pod/{POD}  0/3 nodes are available: error"),
    ],
    "an image pull that succeeded": [
        READY,
        events(event("Pulled", 'Successfully pulled image "registry.example/basket:2.4.1"', kind="Normal")),
    ],
    "a warning about space": [READY, logs(POD, "WARN free space is below the limit of 30%, cleaning up")],
    "a restart long ago": [
        pods(f"NAME   READY   STATUS   RESTARTS   AGE\n{POD}   1/1   Running   2 (8d ago)   9d"),
        described("pod", POD, container(ended("Error", 3).replace("01 Mar", "20 Feb"))),
    ],
    "a start that took some attempts": [
        pods(f"NAME   READY   STATUS   RESTARTS   AGE\n{POD}   1/1   Running   3 (14m ago)   15m"),
        events(event("BackOff", "Back-off restarting failed container web in pod")),
    ],
    "one refused connection to something unknown": [READY, logs(POD, "ERROR connect ECONNREFUSED ledger:8080")],
    "an address that may be anything": [READY, logs(POD, "ERROR dial tcp 10.96.7.8:8080: connect: connection refused")],
    "a pod that waits for no stated reason": [
        pods(f"NAME   READY   STATUS   RESTARTS   AGE   IP   NODE\n{POD}   0/1   Pending   0   3m   <none>   <none>"),
        listed("deployments", f"{DEPLOYMENTS}basket   0/1   1   0   5d"),
    ],
    "a fault that nothing leads to": [READY, events(event("Failed", 'Error: secret "x" not found', "Pod/other-0"))],
    "a workload that nobody calls is at zero": [
        READY,
        listed("deployments", f"{DEPLOYMENTS}basket   1/1   1   1   5d\nbatch-import   0/0   0   0   5d"),
    ],
    "a roll-out alone": [
        READY,
        events(event("ScalingReplicaSet", "Scaled up replica set basket-6d5f7c9b84 to 1", "Deployment/basket", "Normal")),
    ],
    "growing lag alone": [
        measured(
            "sum by (consumergroup, topic) (kafka_consumergroup_lag)",
            '{consumergroup="mailer",topic="mails"} first=10 last=9000 min=8 max=9000 avg=500',
        )
    ],
    "a quota with room": [listed("resourcequotas", "NAME   AGE   REQUEST   LIMIT\ncompute   9d   pods: 3/10   cpu: 1/4")],
    "a busy node without a culprit": [
        READY,
        ("kubernetes_top", {"kind": "nodes"}, "NODE    CPU   CPU ALLOCATABLE   MEMORY\nnode-b  3.9   4 (98%)   3Gi"),
    ],
    "a service account missing for a moment": [
        READY,
        events(
            event("FailedCreate", 'Error creating: serviceaccount "basket" not found', "ReplicaSet/basket-6d5f7c9b84")
        ),
    ],
    "nothing at all": [],
}  # fmt: skip


@pytest.mark.parametrize("case", PROVED)
def test_a_mechanism_is_proved(case):
    expected, told = PROVED[case]
    assert cause(*told) == expected


@pytest.mark.parametrize("case", REFUTED)
def test_a_mechanism_is_contradicted(case):
    mechanism, told = REFUTED[case]
    found = verdict(*told)
    assert mechanism in {scored.hypothesis.mechanism.name for scored in found.refuted}
    assert found.best is None


@pytest.mark.parametrize("case", SILENT)
def test_the_rules_abstain(case):
    assert cause(*SILENT[case]) is None


def test_every_mechanism_is_proved_by_some_case():
    proved = {name.partition(".")[0] for (name, _), _ in [*PROVED.values(), *MORE_PROVED.values()]}
    weak = {"queue_lag", "recent_change", "scheduler_silent"}  # never more than supporting
    assert {mechanism.name for mechanism in ALL} - proved == weak


def test_a_roll_out_that_cut_the_limit_is_named_as_the_trigger():
    scene = scene_of(
        WAITING,
        described("pod", POD, container(ended("OOMKilled", 137))),
        listed(
            "replicasets",
            "NAME   READY   REVISION   CREATED   OWNER\n"
            "basket-6d5f7c9b84  0/1  8  2026-03-01T09:48:00Z  Deployment/basket\n"
            "basket-5c4d8b7f96  0/0  7  2026-02-11T08:00:00Z  Deployment/basket",
        ),
        described("replicaset", "basket-6d5f7c9b84", container(memory="64Mi").replace(POD, "basket-6d5f7c9b84")),
        described("replicaset", "basket-5c4d8b7f96", container(memory="512Mi").replace(POD, "basket-5c4d8b7f96")),
    )
    assert sentence(scene) == (
        "basket is OOM-killed because a roll-out cut it: memory limit lowered from 512Mi to 64Mi [change]"
    )


def test_the_change_that_describe_reports_is_named_as_the_trigger():
    scene = scene_of(
        described("pod", POD, container(ended("OOMKilled", 137))),
        described(
            "deployment",
            "basket",
            "Deployment shop/basket, created 2025-06-01T08:00:00Z\n"
            "rollout history (revision, first created, name, size, images):\n"
            "  #8  2026-03-01T09:48:00Z  basket-6d5f7c9b84  1 replicas  registry.example/basket:2.4.1\n"
            "  #7  2026-02-11T08:00:00Z  basket-5c4d8b7f96  0 replicas  registry.example/basket:2.4.0\n"
            "changed from #7 to #8:\n"
            "  containers[web].resources.limits.memory: 512Mi -> 64Mi\n"
            "condition Available=False since 2026-03-01T09:50:00Z MinimumReplicasUnavailable",
        ),
    )
    assert "memory limit lowered from 512Mi to 64Mi [change]" in sentence(scene)


@pytest.mark.parametrize(
    ("said", "because"),
    [
        ("manifest unknown", "there is no such image or tag"),
        ("401 Unauthorized", "the registry refuses the credentials (or none are given)"),
        ("dial tcp: lookup registry.example on 10.96.0.10:53: no such host", "the registry's name does not resolve"),
        ("429 Too Many Requests", "the registry limits the rate of pulls"),
        ("dial tcp 192.0.2.7:443: i/o timeout", "the registry can't be reached"),
    ],
)
def test_why_an_image_can_not_be_pulled_is_told_from_the_registrys_answer(said, because):
    scene = scene_of(events(event("Failed", f'Failed to pull image "registry.example/basket:2.4.1": {said}')))
    assert because in sentence(scene)


@pytest.mark.parametrize(
    ("said", "because"),
    [
        ("3 Insufficient cpu", "CPU"),
        ("3 node(s) didn't match Pod's node affinity/selector", "selector"),
        ("3 node(s) had untolerated taint {team: data}", "taints"),
        ("pod has unbound immediate PersistentVolumeClaims", "volume claim"),
        ("3 node(s) were unschedulable", "cordoned"),
    ],
)
def test_why_no_node_takes_a_pod_is_told_from_the_schedulers_answer(said, because):
    scene = scene_of(events(event("FailedScheduling", f"0/3 nodes are available: {said}.")))
    assert because in sentence(scene)


def test_the_cause_lies_in_the_dependency_that_the_errors_lead_to():
    found = verdict(
        READY,
        logs(POD, "2026-03-01T09:58:00Z ERROR connect ECONNREFUSED ledger:8080"),
        listed("deployments", f"{DEPLOYMENTS}basket   1/1   1   1   5d\nledger   0/1   1   0   5d"),
        events(event("Failed", 'Error: secret "ledger-db" not found', "Pod/ledger-7f6b9c8d5-q2w4r")),
    )
    assert found.best is not None
    assert (found.best.hypothesis.mechanism.name, found.best.hypothesis.component.name) == (
        "missing_reference",
        "ledger",
    )
    assert "dependency_down" in {scored.hypothesis.mechanism.name for scored in found.explained}


def test_a_distant_fault_is_not_blamed_for_an_alert_whose_condition_never_held():
    alert = ALERT | {"annotations": {"expr": 'error_ratio{service="basket"} > 0.05'}}
    found = verdict(
        READY,
        events(event("Failed", 'Error: secret "other" not found', "Pod/other-7f6b9c8d5-q2w4r")),
        measured('error_ratio{service="basket"}', '{service="basket"} first=0.01 last=0.01 min=0 max=0.02 avg=0.01'),
        alert=alert,
    )
    assert found.best is None
    assert found.finding is not Finding.ROOT_CAUSE
