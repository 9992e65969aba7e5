"""Notify: mails are delayed, a pod does not start."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from deploy.demo.cluster import Container, Document, Event, Part, Pod, Saying, Spoken, Workload, renewed
from deploy.demo.parts import REGISTRY, about_pod, calm, healthy, pod, revision, rollout, started
from deploy.demo.scene import Clock, Incident, Rule

NAME = "mailer"


def build(clock: Clock) -> Incident:
    workload = _workload(clock)
    stuck = next(one for one in workload.alive if one.waiting)
    bystander = healthy(clock, "notify", "push-sender", deployed=clock.ago(minutes=35), version="3.3.3")
    settings = Document(
        namespace="notify",
        name="mailer-config",
        data={"SMTP_HOST": "smtp.internal", "SMTP_PORT": "587", "BATCH": "50"},
        created=clock.ago(days=330),
    )
    return Incident(
        id="config-name",
        source="jira",
        title="Container of notify/mailer waits",
        fired=clock.ago(minutes=12),
        severity="warning",
        rule=Rule(
            name="KubeContainerWaiting",
            expr='kube_pod_container_status_waiting_reason{namespace="notify"} > 0',
            hold_seconds=600,
            labels={
                "severity": "warning",
                "namespace": "notify",
                "pod": workload.pod_name(stuck),
                "container": NAME,
                "reason": "CreateContainerConfigError",
                "job": "kube-state-metrics",
            },
            annotations={
                "summary": "Pod container waiting longer than 10 minutes",
                "description": f"pod/{workload.pod_name(stuck)} in namespace notify on container {NAME} has been in waiting state.",
            },
        ),
        part=Part(
            workloads=(workload, bystander),
            documents=(settings,),
            events=(*rollout(workload, up=1), *rollout(bystander), *_events(clock, workload, stuck)),
        ),
    )


def _workload(clock: Clock) -> Workload:
    before = Container(name=NAME, image=f"{REGISTRY}/{NAME}:1.20.0", env_from="mailer-config")
    old = revision(NAME, 7, clock.ago(days=15), before)
    after = renewed(before, image=f"{REGISTRY}/{NAME}:1.21.0", env_from="mailer-settings")
    new = revision(NAME, 8, clock.ago(minutes=23), after, "chart 4.0: settings renamed")
    stuck = pod(
        NAME,
        new,
        0,
        instances=(),
        waiting="CreateContainerConfigError",
        waiting_message='configmap "mailer-settings" not found',
    )
    return Workload(
        namespace="notify",
        name=NAME,
        replicas=2,
        revisions=(old, new),
        pods=(pod(NAME, old, 0), pod(NAME, old, 1, deleted=clock.ago(minutes=22)), stuck),
        created=clock.ago(days=330),
        says=(
            Saying(texts=('level=info ts=$t msg="mail sent" id=$n',), every=3),
            Saying(texts=('level=error ts=$t msg="recipient mailbox full" id=$n code=452',), every=35),
        ),
        spoken=(Spoken(after=2, text='level=info ts=$t msg="mailer 1.20.0 started" smtp=smtp.internal:587'),),
        traffic=calm(clock, 3.0),
    )


def _events(clock: Clock, workload: Workload, stuck: Pod) -> tuple[Event, ...]:
    at, last = stuck.created + 2, clock.ago(seconds=9)
    image = workload.current.container.image
    return (
        started(workload, stuck)[0],
        about_pod(
            workload,
            stuck,
            "Pulled",
            f'Container image "{image}" already present on machine',
            at,
            last,
            count=104,
            type="Normal",
        ),
        about_pod(workload, stuck, "Failed", 'Error: configmap "mailer-settings" not found', at, last, count=104),
    )
