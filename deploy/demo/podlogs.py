"""What containers wrote, from the cluster model: the same lines for the Kubernetes log API and for Loki."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from deploy.demo.cluster import Instance, Part, Pod, Saying, Workload
from deploy.demo.scene import hexadecimal, rfc3339

HISTORY_SECONDS = 24 * 3_600.0  # nothing older is kept

Line = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Stream:
    """The log of one pod's container."""

    workload: Workload
    pod: Pod

    @property
    def labels(self) -> dict[str, str]:
        return {
            "namespace": self.workload.namespace,
            "pod": self.workload.pod_name(self.pod),
            "container": self.workload.revision(self.pod).container.name,
            "app": self.workload.name,
            "node_name": self.pod.node,
            "job": f"{self.workload.namespace}/{self.workload.name}",
        }

    def lines(self, start: float, end: float) -> list[Line]:
        """All lines in [start, end), oldest first."""
        return sorted(line for instance in self.pod.instances for line in self.of(instance, start, end))

    def of(self, instance: Instance, start: float, end: float) -> list[Line]:
        """The lines of one run of the container in [start, end), oldest first."""
        stop = min((edge for edge in (instance.end, self.pod.deleted) if edge is not None), default=math.inf)
        first, last = max(start, instance.start), min(end, stop + 0.001)
        serving = last if self.pod.unready_since is None else min(last, self.pod.unready_since)
        booted = max(first, instance.start + max((one.after for one in self.workload.spoken), default=0.0))
        found = [line for saying in self.workload.says for line in _said(saying, booted, serving, self._phase)]
        found += [line for line in self._spoken(instance, stop) if first <= line[0] < last]
        return sorted(found)

    @property
    def _phase(self) -> float:
        """Pods of one workload do not write at the same moment."""
        return int(hexadecimal(self.workload.pod_name(self.pod), 4), 16) / 65_536

    def _spoken(self, instance: Instance, stop: float) -> Iterator[Line]:
        port = self.workload.revision(self.pod).container.port
        for spoken in self.workload.spoken:
            at = instance.start + spoken.after if spoken.after >= 0 else stop + spoken.after
            if instance.start <= at <= stop and at < math.inf:
                yield at, _filled(spoken.text, at, 0).replace("$port", str(port))


def streams(cluster: Part) -> list[Stream]:
    return [Stream(workload, pod) for workload in cluster.workloads for pod in workload.pods if pod.instances]


def _said(saying: Saying, start: float, end: float, phase: float) -> Iterator[Line]:
    """Lines lie on a grid that does not depend on the asker's window."""
    start = max(start, saying.since)
    end = end if saying.until is None else min(end, saying.until)
    index = math.ceil(start / saying.every - phase)
    while (at := (index + phase) * saying.every) < end:
        yield at, _filled(saying.texts[index % len(saying.texts)], at, index)
        index += 1


def _filled(text: str, at: float, index: int) -> str:
    return text.replace("$t", rfc3339(at, fraction=3)).replace("$n", hexadecimal(f"{text}{index}", 8))
