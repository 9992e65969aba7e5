"""A roll-out shortly before the alert. Being earlier proves nothing, so alone it never convicts."""

from __future__ import annotations

from collections.abc import Iterable

from agent.report import NextStep
from agent.rules.changes import changes
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Finding, Hypothesis, Want
from agent.rules.observation import Thing
from agent.rules.scene import Scene


class Deploy:
    """Every change of a workload the alert is about or depends on, as context for whatever else is found."""

    name = "recent_change"
    title = "a recent change"
    depth = 2

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        for change in changes(scene):
            component = Thing("workload", change.workload)
            findings = tuple(
                Finding(sign=change.what, weight="context", observation=seen, quote=seen.text[:300])
                for seen in change.seen
            )
            if scene.near(component):
                yield Hypothesis(mechanism=self, component=component, findings=findings)

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        return looks.describe_revisions(hypothesis, scene)

    def account(self, hypothesis: Hypothesis, _scene: Scene) -> Account:
        return Account(did="changed", because=hypothesis.best.sign, trigger="change")

    def next_steps(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        return [steps.history(hypothesis, scene)]


DEPLOY = Deploy()
