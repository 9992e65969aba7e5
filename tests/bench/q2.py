"""Q2, triage: the rules analyst through the whole loop over recorded tools, and how often it names the cause."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from agent.alert import Alert
from agent.budget import RunLimits
from agent.case import Case
from agent.deadline import Deadline
from agent.events import Finished
from agent.loop import Investigator
from agent.model import Message, Reply, ToolSchema
from agent.report import Outcome, Report
from agent.rules.analyst import RESULT_TOKENS, RulesAnalyst
from agent.spill import MemoryResults
from agent.tools import Tool
from tests.bench.cloudopsbench.cases import Answer, Place, load, places
from tests.bench.cloudopsbench.labels import label
from tests.bench.cloudopsbench.toolset import recorded_tools
from tests.bench.figure import Bound, Figure, Options
from tests.bench.opensre.scenarios import HEALTHY, MECHANISMS, scenarios
from tests.bench.opensre.toolset import scenario_tools

A1_TARGETS = {"boutique": 0.95, "trainticket": 0.75}
CAUSE = (Outcome.CONFIRMED, Outcome.LIKELY)
CHUNK = 4


@dataclass(slots=True)
class Watched:
    """The rules analyst, and the conversation it last saw."""

    analyst: RulesAnalyst = field(default_factory=RulesAnalyst)
    messages: Sequence[Message] = ()
    tools: Sequence[ToolSchema] = ()
    name: str = "rules"

    @property
    def window_tokens(self) -> int:
        return self.analyst.window_tokens

    def reply(self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, deadline: Deadline) -> Reply:
        self.messages, self.tools = messages, tools
        return self.analyst.reply(messages, tools, deadline=deadline)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What came of one case. `suspects` begins with the answer, where there is one."""

    place: Place
    wanted: Answer
    answered: bool
    suspects: tuple[Answer, ...]
    headline: str
    seconds: float

    @property
    def right(self) -> bool:
        return self.answered and self.suspects[:1] == (self.wanted,)

    def among(self, most: int) -> bool:
        return self.wanted in self.suspects[:most]


def run(options: Options) -> Iterator[Figure]:
    if options.data is None:
        raise SystemExit("q2 needs --data DIR")
    cases = list(places(options.data, limit=options.limit, seed=options.seed))
    if not cases:
        raise SystemExit(f"no cases under {options.data}/benchmark")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(triage, cases, chunksize=CHUNK))
    if options.verbose:
        tell(results)
    for system in sorted({result.place.system for result in results}):
        mine = [result for result in results if result.place.system == system]
        yield from figures(f"q2.{system}", mine, A1_TARGETS.get(system))
        yield from figures(f"q2.{system}.odd", [one for one in mine if one.place.odd], None)
        yield from figures(f"q2.{system}.even", [one for one in mine if not one.place.odd], None)
    yield from figures("q2.all", results, None)
    yield from synthetic(options, options.data)
    yield Figure(name="q2.case_seconds", value=_mean(r.seconds for r in results), n=len(results), unit="s")


def triage(place: Place) -> Triage:
    case = load(place)
    model = Watched()
    report = investigate(case.alert(), recorded_tools(case), model)
    suspects = [
        label(category, component) for component, category in model.analyst.suspects(model.messages, model.tools)
    ]
    answered = report.root_cause is not None and report.outcome in CAUSE
    if report.root_cause is not None and answered:
        suspects.insert(0, label(report.root_cause.category, report.root_cause.component))
    return Triage(
        place=place,
        wanted=case.answer,
        answered=answered,
        suspects=tuple(dict.fromkeys(suspects)),
        headline=report.headline,
        seconds=report.run.duration_s,
    )


def investigate(alert: Alert, tools: Sequence[Tool], model: Watched) -> Report:
    limits = RunLimits(result_tokens=RESULT_TOKENS, turn_tokens=RESULT_TOKENS * 10)
    investigator = Investigator(models=[model], tools=tools, limits=limits, results=MemoryResults())
    work = Case(
        alert=alert, investigation=f"bench-{alert.id}", started_at=datetime.now(UTC), deadline=Deadline.after(60)
    )
    return next(event.report for event in investigator.run(work) if isinstance(event, Finished))


def synthetic(options: Options, data: Path) -> Iterator[Figure]:
    """Scenarios in which nothing is wrong must convict nobody; the others are told without a target."""
    told = [(one, investigate(one.alert(), scenario_tools(one), Watched())) for one in scenarios(data)]
    healthy = [report for scenario, report in told if scenario.mode == HEALTHY]
    faulty = [(MECHANISMS[one.mode], report) for one, report in told if one.mode in MECHANISMS]
    if options.verbose:
        for scenario, report in told:
            print(scenario.name, scenario.mode, report.outcome.value, report.headline, file=sys.stderr)
    if told:
        convicted = sum(report.outcome in CAUSE for report in healthy)
        yield Figure(name="q2.healthy.convicted", value=convicted, n=len(healthy), unit="cases", target=0, bound="==")
        named = [
            report.root_cause is not None and report.root_cause.category.partition(".")[0] in wanted
            for wanted, report in faulty
        ]
        yield Figure(name="q2.synthetic.mechanism", value=_mean(named), n=len(faulty))


def figures(name: str, results: Sequence[Triage], target: float | None) -> Iterator[Figure]:
    if not results:
        return
    answered = [result for result in results if result.answered]
    judged = target is not None

    def figure(part: str, value: float, n: int, wanted: float | None = None, bound: Bound = ">=") -> Figure:
        return Figure(name=f"{name}.{part}", value=value, n=n, target=wanted, bound=bound)

    yield figure("a1", _mean(result.right for result in results), len(results), target)
    yield figure("a3", _mean(result.among(3) for result in results), len(results))
    right = _mean(result.right for result in answered)
    yield figure("precision", right, len(answered), 0.95 if judged else None)
    yield figure("coverage", len(answered) / len(results), len(results), 0.80 if judged else None)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def tell(results: Sequence[Triage]) -> None:
    """What was missed, by the cause that was to be found."""
    for one in sorted(results, key=lambda r: (r.place.system, r.wanted.cause, r.place)):
        if not one.right:
            said = one.headline if one.answered else f"(no answer) {one.suspects[:2]}"
            print(f"{one.place.folder} {one.wanted.cause} {one.wanted.object} => {said}", file=sys.stderr)
