"""Fulfilment: new pods of the shipping service never get ready."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import Container, Event, Part, Pod, Saying, Spoken, Workload, renewed
from deploy.demo.parts import REGISTRY, about_pod, calm, healthy, pod, pods, revision, rollout, started
from deploy.demo.scene import Clock, Incident, Rule

NAME = "shipping-api"


def build(clock: Clock) -> Incident:
    workload = _workload(clock)
    unready = [one for one in workload.alive if one.unready_since is not None]
    bystander = healthy(clock, "fulfilment", "label-printer", deployed=clock.ago(minutes=48), version="0.4.4", count=1)
    events = [*rollout(workload, up=1), *rollout(bystander)]
    for one in unready:
        events += [*started(workload, one), _unhealthy(clock, workload, one)]
    return Incident(
        id="probe-port",
        source="github",
        title="Deployment fulfilment/shipping-api has too few replicas",
        fired=clock.ago(minutes=18),
        severity="warning",
        rule=Rule(
            name="KubeDeploymentReplicasMismatch",
            expr='kube_deployment_spec_replicas{namespace="fulfilment"} > kube_deployment_status_replicas_available{namespace="fulfilment"}',
            hold_seconds=600,
            labels={"severity": "warning", "namespace": "fulfilment", "deployment": NAME, "job": "kube-state-metrics"},
            annotations={
                "summary": "Deployment has not matched the expected number of replicas.",
                "description": f"Deployment fulfilment/{NAME} has not matched the expected number of replicas for longer than 10 minutes.",
            },
        ),
        part=Part(workloads=(workload, bystander), events=tuple(events)),
    )


def _workload(clock: Clock) -> Workload:
    before = Container(name=NAME, image=f"{REGISTRY}/{NAME}:5.9.0", env={"SERVER_PORT": "8080"})
    old = revision(NAME, 16, clock.ago(days=10), before)
    after = renewed(before, image=f"{REGISTRY}/{NAME}:6.0.0", port=9090, probe_port=8080, env={"SERVER_PORT": "9090"})
    new = revision(NAME, 17, clock.ago(minutes=29), after, "release 6.0.0: management and API ports split")
    created = clock.ago(minutes=29)
    fresh = pod(NAME, new, 0, unready_since=created)
    return Workload(
        namespace="fulfilment",
        name=NAME,
        replicas=3,
        revisions=(old, new),
        pods=(*pods(NAME, old, 2), pod(NAME, old, 2, deleted=clock.ago(minutes=28)), fresh),
        created=clock.ago(days=290),
        target_port=8080,
        says=(Saying(texts=('level=info ts=$t msg="parcel booked" parcel=$n carrier=alpha',), every=7, until=None),),
        spoken=(
            Spoken(after=2, text='level=info ts=$t msg="Starting ShippingApplication"'),
            Spoken(after=7, text='level=info ts=$t msg="Tomcat started on port $port (http)"'),
        ),
        traffic=calm(clock, 20.0),
    )


def _unhealthy(clock: Clock, workload: Workload, one: Pod) -> Event:
    probe = f'Readiness probe failed: Get "http://{one.ip}:8080/healthz": dial tcp {one.ip}:8080: connect: connection refused'
    return about_pod(workload, one, "Unhealthy", probe, one.created + 14, clock.ago(seconds=6), count=169)
