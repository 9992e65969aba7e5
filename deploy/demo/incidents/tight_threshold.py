"""Media: a latency alert of the thumbnail service that stays open."""

# ruff: noqa: E501  # what programs print is not wrapped

from __future__ import annotations

from dataclasses import replace

from deploy.demo.cluster import Part, Saying
from deploy.demo.parts import healthy, traffic
from deploy.demo.scene import Clock, Incident, Rule

NAME = "thumbnail-api"


def build(clock: Clock) -> Incident:
    start = clock.ago(days=2)
    mean = ((start, 0.07), (clock.ago(minutes=25), 0.09), (clock.ago(minutes=18), 0.07))
    noise = Saying(texts=('level=error ts=$t msg="unsupported color profile, used sRGB" image=$n',), every=25)
    calm = healthy(clock, "media", NAME, count=3, version="2.7.0", says=(noise,))
    workload = replace(calm, traffic=traffic(clock, {"200": ((start, 44.0),), "500": ((start, 0.01),)}, mean))
    return Incident(
        id="tight-threshold",
        source="alertmanager",
        title="thumbnail-api p95 latency above 250 ms",
        fired=clock.ago(minutes=21),
        severity="warning",
        rule=Rule(
            name="LatencyHigh",
            expr=f'histogram_quantile(0.95, sum by (le) (rate(http_request_duration_seconds_bucket{{service="{NAME}"}}[3m]))) > 0.25',
            hold_seconds=60,
            keep_seconds=3_600,
            labels={"severity": "warning", "namespace": "media", "service": NAME, "team": "media"},
            annotations={
                "summary": "thumbnail-api p95 above 250 ms",
                "description": "p95 was 0.274 s, threshold 0.25 s",
            },
        ),
        part=Part(workloads=(workload,)),
    )
