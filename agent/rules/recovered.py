"""The alert's own condition no longer holds, and nothing else is wrong: a false alarm, or one that is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.rules.observation import Fact, Observation
from agent.rules.scene import Scene
from agent.rules.subject import Comparison, comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """What the alert's own metric says. `now` and `ever` are None where it could not be read."""

    seen: tuple[Observation, ...]
    now: bool | None
    ever: bool | None


def alert_condition(scene: Scene) -> tuple[str, Comparison | None]:
    """The alert's expression: as the alert carries it, else as the rule of its name has it."""
    expression = scene.subject.expression
    if not expression:
        name = scene.subject.alertname
        expressions = (rule.values["expr"] for rule in scene.of(Fact.RULE) if rule.about.name == name)
        expression = next(expressions, "") if name else ""
    return expression, comparison(expression)


def symptom(scene: Scene) -> Symptom:
    """Whether the condition held in the window, and holds at its end, over the series the alert's labels select."""
    expression, condition = alert_condition(scene)
    if condition is None:
        return Symptom(seen=(), now=None, ever=None)
    seen = tuple(_own_series(expression, condition, scene))
    if not seen:
        return Symptom(seen=(), now=None, ever=None)
    extreme = "max" if condition.operator in (">", ">=") else "min"
    now = any(condition.holds(value) for value in _numbers(seen, "last"))
    return Symptom(seen=seen, now=now, ever=now or any(condition.holds(value) for value in _numbers(seen, extreme)))


def _own_series(expression: str, condition: Comparison, scene: Scene) -> Iterator[Observation]:
    for series in scene.of(Fact.SERIES):
        query = " ".join(series.values.get("query", "").split())
        if query in (" ".join(condition.left.split()), " ".join(expression.split())) and _selected(series, scene):
            yield series


def _selected(series: Observation, scene: Scene) -> bool:
    """Labels that alert and series share must agree: another service's series says nothing of this alert."""
    labels = scene.subject.labels
    shared = (key for key in labels if f"label_{key}" in series.values)
    return all(series.values[f"label_{key}"] == labels[key] for key in shared)


def _numbers(seen: Iterable[Observation], key: str) -> Iterator[float]:
    for observation in seen:
        if (value := observation.number(key)) is not None:
            yield value


def pods_healthy(scene: Scene) -> bool | None:
    """Whether every pod of the alert's workload (or, without one, of those listed) is ready and did not restart;
    None where none was seen."""
    pods = scene.pods_of(scene.focus.name) if scene.focus.name else []
    pods = pods or list(scene.pods.values())
    return all(pod.healthy for pod in pods) if pods else None


def warnings(scene: Scene) -> list[Observation]:
    """Warning events that belong to the alert's time and concern a pod that is not well."""
    found = []
    for event in scene.of(Fact.EVENT):
        pod = scene.pods.get(event.about.name)
        if event.values.get("type") == "Warning" and scene.since(event) and not (pod and pod.healthy):
            found.append(event)
    return found
