"""Accounts: a latency alert that is over before anybody looks."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from dataclasses import replace

from deploy.demo.cluster import Part
from deploy.demo.parts import healthy, traffic
from deploy.demo.scene import Clock, Incident, Rule

NAME = "profile-api"


def build(clock: Clock) -> Incident:
    start = clock.ago(days=2)
    mean = ((start, 0.07), (clock.ago(minutes=17), 0.6), (clock.ago(minutes=13), 0.07))
    calm = healthy(clock, "accounts", NAME, count=3, version="11.2.0")
    workload = replace(calm, traffic=traffic(clock, {"200": ((start, 31.0),)}, mean))
    return Incident(
        id="latency-blip",
        source="pagerduty",
        title="profile-api: p99 latency above 1 s",
        fired=clock.ago(minutes=14),
        service="accounts",
        urgency="low",
        severity="warning",
        rule=Rule(
            name="LatencyHigh",
            expr=f'histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket{{service="{NAME}"}}[3m]))) > 1',
            hold_seconds=120,
            labels={"severity": "warning", "namespace": "accounts", "service": NAME, "team": "accounts"},
            annotations={"summary": "profile-api p99 above 1 s"},
        ),
        details={"namespace": "accounts", "service": NAME},
        part=Part(workloads=(workload,)),
        due=0,
        resolved_on_read=True,
    )
