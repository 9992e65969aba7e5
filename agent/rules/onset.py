"""When it began: the earliest sign of the cause or of what it explains, never later than the alert."""

from __future__ import annotations

from datetime import datetime

from agent.report import Trigger
from agent.rules.changes import changes
from agent.rules.scene import Scene, earliest
from agent.rules.scoring import Scored, Verdict


def onset(scene: Scene, verdict: Verdict, best: Scored, trigger: Trigger) -> datetime | None:
    """Of the cause's own signs where one is older than the alert; else of what shows its effect.

    Logs are read from their end and a container's last state is only its last, so all that was seen may be younger
    than the alert. Then the change that caused it, else the alert itself, is the nearest that can be told.
    """
    alerted = scene.subject.starts_at
    component = best.hypothesis.component
    same = [s.hypothesis.onset for s in verdict.explained if s.hypothesis.component == component]
    metric = [series.began for series in verdict.symptom.seen]
    signs = earliest([best.hypothesis.onset, *same, *metric])
    if signs is None or alerted is None or signs <= alerted:
        return signs
    if trigger == "change":
        made = [change.at for change in changes(scene) if change.workload == component.name]
        return earliest(at for at in made if at is not None and at <= alerted) or alerted
    return alerted
