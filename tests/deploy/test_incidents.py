"""The incidents are coherent: what the three read sides say of one fits together."""

from __future__ import annotations

import re

import pytest

from deploy.demo import catalog, exporters, objects, podlogs
from deploy.demo.promql.evaluator import Database, instant
from deploy.demo.scene import Clock

START = 1_800_000_000.0
CLOCK = Clock(START)
SOURCES = ("pagerduty", "alertmanager", "opsgenie", "jsm", "jira", "github")
SCENE = catalog.incidents(CLOCK)
CLUSTER = catalog.cluster(CLOCK, SCENE)
OBJECTS = objects.everything(CLUSTER)
DATABASE = Database(exporters.everything(CLUSTER))
STREAMS = podlogs.streams(CLUSTER)

each = pytest.mark.parametrize("incident", SCENE, ids=lambda incident: incident.id)


def named(kind):
    return {(one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in OBJECTS if one["kind"] == kind}


def test_every_source_has_two_incidents():
    assert [sum(one.source == source for one in SCENE) for source in SOURCES] == [2] * 6


def test_one_incident_is_due_nothing_and_every_other_one_comment():
    assert {one.id: one.due for one in SCENE if one.due != 1} == {"latency-blip": 0}


def test_object_names_are_unique():
    keys = [(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in OBJECTS]
    assert len(keys) == len(set(keys))


def test_no_two_running_pods_share_an_address():
    addresses = [pod.ip for workload in CLUSTER.workloads for pod in workload.alive]
    assert len(addresses) == len(set(addresses))


@each
def test_every_event_is_about_something_that_exists(incident):
    for event in incident.part.events:
        where = "" if event.kind == "Node" else event.namespace
        assert (where, event.name) in named(event.kind), event


@each
def test_events_lie_in_order_before_the_start_and_within_an_hour(incident):
    for event in incident.part.events:
        assert START - 3_600 <= event.first <= event.last <= START, event


@each
def test_it_fired_before_the_start_and_after_its_first_sign(incident):
    assert START - 1_800 < incident.fired < START


@each
def test_runs_of_containers_follow_each_other(incident):
    for workload in incident.part.workloads:
        for pod in workload.pods:
            edges = [edge for run in pod.instances for edge in (run.start, run.end) if edge is not None]
            assert edges == sorted(edges)
            assert all(pod.created <= edge <= START for edge in edges)


@each
def test_pods_run_on_nodes_that_exist(incident):
    for workload in incident.part.workloads:
        for pod in workload.pods:
            assert ("", pod.node) in named("Node")


@each
def test_the_alert_labels_name_what_exists(incident):
    labels = incident.labels
    for label, kind in (("pod", "Pod"), ("deployment", "Deployment"), ("service", "Service")):
        if label in labels:
            assert (labels["namespace"], labels[label]) in named(kind)


@each
def test_the_rule_that_paged_was_true_when_it_fired(incident):
    assert instant(DATABASE, incident.rule.expr, incident.fired)


@each
def test_the_rule_was_not_true_long_before(incident):
    assert not instant(DATABASE, incident.rule.expr, START - 6 * 3_600)


@each
def test_the_rule_is_still_true_unless_it_is_over(incident):
    over = incident.id in {"latency-blip", "tight-threshold"}
    assert bool(instant(DATABASE, incident.rule.expr, START)) != over


@each
def test_containers_that_ever_ran_wrote_something(incident):
    for stream in STREAMS:
        if stream.workload in incident.part.workloads and stream.pod.deleted is None:
            assert stream.lines(START - 3_600, START)


def test_no_line_was_written_while_no_container_ran():
    for stream in STREAMS:
        for at, line in stream.lines(START - 7_200, START):
            runs = [(run.start, run.end or START) for run in stream.pod.instances]
            assert any(start <= at <= end for start, end in runs), line


def test_a_run_begins_with_what_a_program_says_when_it_starts():
    for stream in STREAMS:
        greetings = sorted(one.after for one in stream.workload.spoken if one.after >= 0)
        for run in stream.pod.instances:
            if run.start > START - 7_200:
                times = [at for at, _ in stream.of(run, run.start, START)]
                assert times[: len(greetings)] == [run.start + after for after in greetings]


def test_a_waiting_pod_is_named_in_its_own_message():
    for workload in CLUSTER.workloads:
        for pod in workload.alive:
            if pod.waiting == "CrashLoopBackOff":
                assert f"pod={workload.pod_name(pod)}_{workload.namespace}(" in pod.waiting_message


def test_lines_do_not_depend_on_the_window_they_are_read_by():
    stream = STREAMS[0]
    whole = stream.lines(START - 2_400, START)
    halves = stream.lines(START - 2_400, START - 1_207.5) + stream.lines(START - 1_207.5, START)
    assert whole == halves
    assert len(whole) > 10


def test_restarts_are_the_same_in_the_object_and_in_the_series():
    for workload in CLUSTER.workloads:
        for pod in workload.alive:
            query = f'kube_pod_container_status_restarts_total{{pod="{workload.pod_name(pod)}"}}'
            found = instant(DATABASE, query, START)
            assert isinstance(found, dict)
            assert list(found.values()) == [pod.restarts]


def test_available_replicas_are_the_same_in_the_object_and_in_the_series():
    for one in OBJECTS:
        if one["kind"] == "Deployment":
            about = one["metadata"]
            where = f'namespace="{about["namespace"]}",deployment="{about["name"]}"'
            found = instant(DATABASE, f"kube_deployment_status_replicas_available{{{where}}}", START)
            assert isinstance(found, dict)
            assert list(found.values()) == [one["status"]["availableReplicas"]], about["name"]


def test_memory_stays_under_the_limit():
    ratio = (
        "container_memory_working_set_bytes / on(namespace, pod, container) "
        'kube_pod_container_resource_limits{resource="memory"} > 1'
    )
    for minutes in range(0, 60, 5):
        assert instant(DATABASE, ratio, START - 60 * minutes) == {}


def test_nothing_the_tools_can_read_is_named_like_an_incident_of_the_catalogue():
    """Ids such as `memory-limit` would give the answer away."""
    lines = [line for stream in STREAMS for _, line in stream.lines(START - 1_800, START)]
    labels = [dict(one.labels) for one in DATABASE.select([])]
    tickets = [(one.title, one.labels, one.rule.annotations, one.details, one.notes) for one in SCENE]
    text = str(OBJECTS) + str(lines) + str(labels) + str(tickets)
    for incident in SCENE:
        if "-" in incident.id:  # a single word (certificate) may occur anywhere
            assert not re.search(rf"\b{incident.id}\b", text), incident.id


def test_an_incident_reads_the_same_whenever_the_world_begins():
    later = catalog.incidents(Clock(START + 86_400))
    assert [one.fired - START - 86_400 for one in later] == [one.fired - START for one in SCENE]
    assert [one.title for one in later] == [one.title for one in SCENE]


def test_a_seed_moves_incidents_apart_and_is_repeatable():
    shifts = [one.fired - other.fired for one, other in zip(catalog.incidents(CLOCK, 7), SCENE, strict=True)]
    assert len(set(shifts)) > 6
    assert all(-catalog.MAX_SHIFT_SECONDS <= shift <= 0 for shift in shifts)
    assert [one.fired for one in catalog.incidents(CLOCK, 7)] == [one.fired for one in catalog.incidents(CLOCK, 7)]


@pytest.mark.parametrize(("start", "seed"), [(START + 17, 0), (START + 29, 1), (START + 3, 2)])
def test_rules_are_true_when_they_fire_wherever_the_scrapes_lie(start, seed):
    clock = Clock(start)
    scene = catalog.incidents(clock, seed)
    database = Database(exporters.everything(catalog.cluster(clock, scene)))
    for incident in scene:
        assert instant(database, incident.rule.expr, incident.fired), incident.id
