"""Catalog: a rollout of the search service does not finish."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import Container, Event, Part, Pod, Saying, Spoken, Workload, renewed
from deploy.demo.parts import REGISTRY, about_pod, calm, pod, pods, revision, rollout, started
from deploy.demo.scene import Clock, Incident, Rule

NAME = "search-api"
WRONG = f"{REGISTRY}/{NAME}:3.4.O"  # the letter, not the digit


def build(clock: Clock) -> Incident:
    workload = _workload(clock)
    stuck = next(one for one in workload.alive if one.waiting)
    return Incident(
        id="image-tag",
        source="opsgenie",
        title="Deployment catalog/search-api rollout is stuck",
        fired=clock.ago(minutes=16),
        severity="warning",
        rule=Rule(
            name="KubeDeploymentReplicasMismatch",
            expr='kube_deployment_spec_replicas{namespace="catalog"} > kube_deployment_status_replicas_available{namespace="catalog"}',
            hold_seconds=600,
            labels={"severity": "warning", "namespace": "catalog", "deployment": NAME, "job": "kube-state-metrics"},
            annotations={
                "summary": "Deployment has not matched the expected number of replicas.",
                "description": f"Deployment catalog/{NAME} has not matched the expected number of replicas for longer than 10 minutes.",
            },
        ),
        part=Part(workloads=(workload,), events=(*rollout(workload, up=1), *_events(clock, workload, stuck))),
    )


def _workload(clock: Clock) -> Workload:
    before = Container(name=NAME, image=f"{REGISTRY}/{NAME}:3.3.7")
    old = revision(NAME, 11, clock.ago(days=4), before)
    new = revision(NAME, 12, clock.ago(minutes=27), renewed(before, image=WRONG), "release 3.4.0")
    message = f'Back-off pulling image "{WRONG}": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "{WRONG}": failed to resolve reference "{WRONG}": {WRONG}: not found'
    stuck = pod(NAME, new, 0, instances=(), waiting="ImagePullBackOff", waiting_message=message)
    return Workload(
        namespace="catalog",
        name=NAME,
        replicas=3,
        revisions=(old, new),
        pods=(*pods(NAME, old, 2), pod(NAME, old, 2, deleted=clock.ago(minutes=26)), stuck),
        created=clock.ago(days=200),
        says=(
            Saying(texts=('{"level":"info","ts":"$t","msg":"search","hits":31,"took_ms":12,"id":"$n"}',), every=4),
            Saying(
                texts=('{"level":"error","ts":"$t","msg":"spellcheck dictionary for locale xx missing, skipped"}',),
                every=50,
            ),
        ),
        spoken=(Spoken(after=3, text='{"level":"info","ts":"$t","msg":"search-api 3.3.7 listening"}'),),
        traffic=calm(clock, 48.0),
    )


def _events(clock: Clock, workload: Workload, stuck: Pod) -> tuple[Event, ...]:
    pull = f'Failed to pull image "{WRONG}": rpc error: code = NotFound desc = failed to pull and unpack image "{WRONG}": failed to resolve reference "{WRONG}": {WRONG}: not found'
    at, last = stuck.created + 2, clock.ago(seconds=40)
    return (
        started(workload, stuck)[0],
        about_pod(workload, stuck, "Pulling", f'Pulling image "{WRONG}"', at, last, count=9, type="Normal"),
        about_pod(workload, stuck, "Failed", pull, at + 1, last, count=9),
        about_pod(workload, stuck, "Failed", "Error: ErrImagePull", at + 1, last, count=9),
        about_pod(
            workload, stuck, "BackOff", f'Back-off pulling image "{WRONG}"', at + 15, clock.ago(seconds=12), count=108
        ),
        about_pod(workload, stuck, "Failed", "Error: ImagePullBackOff", at + 15, clock.ago(seconds=12), count=108),
    )
