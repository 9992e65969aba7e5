"""Next steps that several mechanisms share: what to look at, and what would undo a change."""

from __future__ import annotations

from agent.report import NextStep
from agent.rules.mechanisms.looks import revisions, workload_kind
from agent.rules.mechanisms.port import Hypothesis
from agent.rules.names import is_object_name
from agent.rules.scene import Scene


def flag(scene: Scene) -> str:
    namespace = scene.subject.namespace
    return f" -n {namespace}" if is_object_name(namespace) else ""


def look(title: str, command: str, why: str = "") -> NextStep:
    return NextStep(title=title, command=command, why=why, kind="diagnostic")


def history(hypothesis: Hypothesis, scene: Scene) -> NextStep:
    name = hypothesis.component.name
    return look("See what the last roll-outs changed", f"kubectl rollout history deployment/{name}{flag(scene)}")


def roll_back(hypothesis: Hypothesis, scene: Scene, why: str) -> list[NextStep]:
    """Only where there is an earlier revision to go back to."""
    name = hypothesis.component.name
    if len(revisions(name, scene)) < 2 or workload_kind(name, scene) != "deployment":
        return []
    return [
        NextStep(
            title="Roll back to the revision before",
            why=why,
            command=f"kubectl rollout undo deployment/{name}{flag(scene)}",
            kind="mitigation",
            mutating=True,
            risk="replaces the pods and takes back whatever else that roll-out changed",
            undo=f"kubectl rollout undo deployment/{name}{flag(scene)}",
        )
    ]


def change(title: str, why: str, risk: str, undo: str, command: str = "") -> NextStep:
    return NextStep(title=title, why=why, command=command, kind="fix", mutating=True, risk=risk, undo=undo)
