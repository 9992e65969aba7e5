"""Work piles up because its consumers are slower than its producers."""

from __future__ import annotations

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.scene import Scene

GROWTH = 2.0
MIN_MESSAGES = 100.0


def _growing(observation: Observation, _match: Match, _scene: Scene) -> bool:
    first, last = observation.number("first"), observation.number("last")
    lag = observation.values.get("measure") == "queue_lag" and first is not None and last is not None
    return lag and (last or 0.0) >= max(MIN_MESSAGES, GROWTH * (first or 0.0))


def _drained(observation: Observation, _match: Match, _scene: Scene) -> bool:
    last, most = observation.number("last"), observation.number("max")
    lag = observation.values.get("measure") == "queue_lag" and last is not None and most is not None
    return lag and (last or 0.0) < 0.1 * (most or 0.0)


def _queue(observation: Observation, _match: Match, scene: Scene) -> Thing:
    keys = ("label_consumergroup", "label_group", "label_queue", "label_topic")
    name = next((observation.values[key] for key in keys if observation.values.get(key)), "")
    return Thing("queue", name) if name else scene.owner(observation.about)


def _tell(_hypothesis: Hypothesis, _scene: Scene) -> Account:
    return Account(did="falls behind", because="more is produced than its consumers take", trigger="load")


def _steps(_hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    return [
        steps.look("Check that its consumers run", f"kubectl get pods{steps.flag(scene)}"),
        steps.look("Compare the rates of production and consumption over the last day", ""),
    ]


QUEUE_LAG = Rule(
    name="queue_lag",
    title="a queue is falling behind",
    depth=6,
    signs=(
        Sign(name="the lag keeps growing", weight="supporting", facts=(Fact.SERIES,), holds=_growing, component=_queue),
        Sign(
            name="the lag was worked off",
            weight="contradicting",
            facts=(Fact.SERIES,),
            holds=_drained,
            component=_queue,
        ),
    ),
    looks=(looks.series("queue_lag"), looks.logs),
    tells=_tell,
    steps=_steps,
)
