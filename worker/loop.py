"""Which models and tools an investigation gets: by severity, by what answers its check, and by the day's budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from agent.alert import Alert
from agent.budget import RunLimits
from agent.case import Case
from agent.code_mode.tool import CodeMode
from agent.deadline import Clock, Deadline
from agent.events import Event
from agent.loop import Investigator
from agent.model import Model
from agent.rules.analyst import RESULT_TOKENS
from agent.spill import Results
from agent.tools import Health, HealthState, Tool, Toolset
from toolsets.catalog import build_toolset, check_all, gather
from worker.settings import ModelSettings, Settings
from worker.store import Store

CHECK_SECONDS = 10.0
CHECK_AGAIN_SECONDS = 300.0
RULES = "rules"

log = structlog.get_logger("rootcaused.loop")


@dataclass(frozen=True, slots=True)
class StoredResults:
    """The results of one investigation, in Redis; see `agent.spill.Results`."""

    store: Store
    investigation: str

    def put(self, ref: str, text: str) -> None:
        self.store.put_result(self.investigation, ref, text)

    def get(self, ref: str) -> str | None:
        return self.store.get_result(self.investigation, ref)


@dataclass(slots=True, kw_only=True)
class Toolshed:
    """The configured toolsets, checked now and then: one that does not answer is left out, and the model is told."""

    toolsets: tuple[Toolset, ...]
    clock: Clock = time.monotonic
    _health: dict[str, Health] = field(default_factory=dict)
    _checked_at: float | None = None

    def tools(self) -> tuple[Tool, ...]:
        self._check()
        return gather([toolset for toolset in self.toolsets if self._usable(toolset)])

    def guides(self) -> dict[str, str]:
        """Instructions by toolset name; for one that failed its check, why."""
        self._check()
        guides = {}
        for toolset in self.toolsets:
            if not self._usable(toolset):
                guides[toolset.name] = f"not available in this run: {self._health[toolset.name].reason}"
            elif toolset.instructions:
                guides[toolset.name] = toolset.instructions
        return guides

    def _usable(self, toolset: Toolset) -> bool:
        return self._health[toolset.name].state is not HealthState.FAILED

    def _check(self) -> None:
        if self._checked_at is not None and self.clock() - self._checked_at < CHECK_AGAIN_SECONDS:
            return
        self._health = check_all(self.toolsets, Deadline.after(CHECK_SECONDS))
        self._checked_at = self.clock()
        for name, health in self._health.items():
            if health.state is not HealthState.OK:
                log.warning("toolset_check", toolset=name, state=health.state.value, reason=health.reason)


@dataclass(slots=True, kw_only=True)
class LoopBuilder:
    """Builds the loop for one case; see `worker.pipeline.investigate.Investigates`."""

    settings: Settings
    toolshed: Toolshed
    redactor: Callable[[], Callable[[str], str]]  # one a case: it remembers what it replaced
    results: Callable[[str], Results]
    spent_today: Callable[[], float] = lambda: 0.0
    code_mode: CodeMode | None = None
    _models: dict[str, Model] = field(default_factory=dict)

    def __call__(self, case: Case, journal: list[Event]) -> Iterator[Event]:
        models = self.models(case.alert)
        tools = self.toolshed.tools()
        script = self.code_mode.tool(tools) if self.code_mode else None
        investigator = Investigator(
            models=models,
            tools=(*tools, script) if script else tools,
            limits=run_limits(self.settings, rules_only=[model.name for model in models] == [RULES]),
            results=self.results(case.investigation),
            guides=self._guides(),
        )
        return investigator.run(case, journal)

    def models(self, alert: Alert) -> list[Model]:
        """In order of preference; the rules analyst is always last, and alone once the day's money is spent."""
        model = self.settings.model
        names = [model.by_severity.get(alert.severity, model.name), *model.fallbacks]
        if any(name != RULES for name in names) and self.spent_today() >= self.settings.limits.day_cost_usd:
            log.warning("day_budget_spent", alert=alert.key, limit_usd=self.settings.limits.day_cost_usd)
            names = []
        return [self._model(name) for name in dict.fromkeys([*names, RULES])]

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = build_model(name, self.settings.model)
        return self._models[name]

    def _guides(self) -> Mapping[str, str]:
        guides = self.toolshed.guides()
        if self.code_mode and (reason := self.code_mode.unavailable()):
            guides["run_python"] = f"not available in this run: {reason}"
        if self.settings.team.instructions:
            guides["team"] = self.settings.team.instructions
        return guides


def build_model(name: str, settings: ModelSettings) -> Model:
    if name == RULES:
        from agent.rules.analyst import RulesAnalyst

        return RulesAnalyst()
    from agent.llm import LiteLLMModel

    return LiteLLMModel(
        name=name,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        api_base=settings.api_base,
        window=settings.window_tokens,
        max_output_tokens=settings.max_output_tokens,
        temperature=settings.temperature,
        input_usd_per_million=settings.input_usd_per_million,
        output_usd_per_million=settings.output_usd_per_million,
    )


def build_toolshed(settings: Settings) -> Toolshed:
    return Toolshed(toolsets=tuple(build_toolset(name, config) for name, config in settings.toolsets.items()))


def build_code_mode(settings: Settings) -> CodeMode | None:
    """Scripts of the model, where the operator allows them. Build it after the fork: it starts processes of its own."""
    from agent.code_mode.tool import CodeMode

    if not settings.code_mode.enabled:
        return None
    return CodeMode(config=settings.code_mode, tool_seconds=settings.limits.tool_seconds)


def run_limits(settings: Settings, *, rules_only: bool = False) -> RunLimits:
    """The rules analyst reads whole results: it has no window to fill, and a cut result is a line it can't see."""
    limits = settings.limits
    whole = {"result_tokens": RESULT_TOKENS, "turn_tokens": RESULT_TOKENS * 10}
    return RunLimits(
        steps=limits.steps,
        tokens=limits.tokens,
        cost_usd=limits.cost_usd,
        model_seconds=settings.model.call_seconds,
        tool_seconds=limits.tool_seconds,
        **(whole if rules_only else {"result_tokens": limits.result_tokens}),
    )


def today() -> str:
    """The day that money is counted by, in UTC: YYYY-MM-DD."""
    return datetime.now(UTC).date().isoformat()
