from __future__ import annotations

from dataclasses import dataclass

import pytest

from agent.alert import Severity
from agent.deadline import Deadline
from agent.spill import MemoryResults
from agent.tools import Health, HealthState, Tool, ToolResult, Toolset
from tests.support.alerts import alert
from worker.loop import LoopBuilder, StoredResults, Toolshed, build_code_mode, run_limits
from worker.redis_client import connect
from worker.settings import Limits, ModelSettings, RedisSettings, Settings
from worker.store import Store


@dataclass
class Backend:
    """A toolset whose check says what `health` says, and counts how often it was asked."""

    name: str
    health: Health
    checks: int = 0

    def toolset(self) -> Toolset:
        tool = Tool(
            name=f"{self.name}_look",
            description="looks",
            parameters={"type": "object", "properties": {}},
            run=lambda arguments, context: ToolResult.success("seen"),
        )
        return Toolset(name=self.name, tools=(tool,), check=self.check, instructions=f"how to use {self.name}")

    def check(self, deadline: Deadline) -> Health:
        self.checks += 1
        return self.health


def test_a_toolset_that_fails_its_check_is_left_out_and_the_model_is_told_why() -> None:
    good = Backend("prometheus", Health.ok())
    slow = Backend("loki", Health(state=HealthState.DEGRADED, reason="no logs for an hour"))
    bad = Backend("kubernetes", Health.failed("403 Forbidden"))
    shed = Toolshed(toolsets=tuple(backend.toolset() for backend in (good, slow, bad)))
    assert [tool.name for tool in shed.tools()] == ["prometheus_look", "loki_look"]
    guides = shed.guides()
    assert guides["prometheus"] == "how to use prometheus"
    assert guides["kubernetes"] == "not available in this run: 403 Forbidden"


def test_toolsets_are_checked_again_after_a_while_only() -> None:
    now = [0.0]
    backend = Backend("loki", Health.failed("down"))
    shed = Toolshed(toolsets=(backend.toolset(),), clock=lambda: now[0])
    assert not shed.tools()
    backend.health = Health.ok()
    assert not shed.tools()
    assert backend.checks == 1
    now[0] = 301
    assert shed.tools()
    assert backend.checks == 2


def builder(*, spent: float = 0.0, **model: object) -> LoopBuilder:
    settings = Settings(model=ModelSettings.model_validate(model), limits=Limits(day_cost_usd=10))
    return LoopBuilder(
        settings=settings,
        toolshed=Toolshed(toolsets=()),
        redactor=lambda: str,
        results=lambda investigation: MemoryResults(),
        spent_today=lambda: spent,
    )


def names(made: LoopBuilder, severity: Severity = Severity.ERROR) -> list[str]:
    return [model.name for model in made.models(alert(severity=severity))]


def test_the_rules_analyst_is_always_the_last_resort() -> None:
    assert names(builder()) == ["rules"]
    assert names(builder(name="openai/a", fallbacks=["openai/b"])) == ["openai/a", "openai/b", "rules"]


def test_severity_may_choose_the_model() -> None:
    made = builder(name="openai/a", by_severity={"critical": "openai/big"})
    assert names(made, Severity.CRITICAL) == ["openai/big", "rules"]
    assert names(made, Severity.WARNING) == ["openai/a", "rules"]


def test_when_the_day_s_money_is_spent_only_the_rules_are_left() -> None:
    assert names(builder(spent=10.0, name="openai/a")) == ["rules"]
    assert names(builder(spent=9.99, name="openai/a")) == ["openai/a", "rules"]


def test_limits_of_the_settings_reach_the_run() -> None:
    limits = run_limits(Settings(limits=Limits(steps=7, tool_seconds=9), model=ModelSettings(call_seconds=33)))
    assert (limits.steps, limits.tool_seconds, limits.model_seconds) == (7, 9, 33)


def test_the_rules_alone_read_results_uncut() -> None:
    settings = Settings(limits=Limits(result_tokens=700))
    assert run_limits(settings).result_tokens == 700
    assert run_limits(settings, rules_only=True).result_tokens > 100_000


def test_scripts_are_offered_only_where_the_operator_allows_them() -> None:
    assert build_code_mode(Settings()) is None
    allowed = build_code_mode(Settings.model_validate({"code_mode": {"enabled": True, "require": "none"}}))
    assert allowed is not None
    tool = allowed.tool(Backend("prometheus", Health.ok()).toolset().tools)
    allowed.close()
    assert tool is not None
    assert "prometheus_look" in tool.description


def test_a_script_must_have_more_time_than_its_calls_and_less_than_the_run() -> None:
    with pytest.raises(ValueError, match=r"code_mode\.wall_seconds \(30\) must be more than limits\.tool_seconds"):
        Settings.model_validate({"code_mode": {"enabled": True, "wall_seconds": 30}})


def test_whole_results_are_kept_by_investigation(redis_url: str) -> None:
    store = Store(connect(redis_url, RedisSettings()))
    StoredResults(store, "inv-1").put("T1", "the whole text")
    assert StoredResults(store, "inv-1").get("T1") == "the whole text"
    assert StoredResults(store, "inv-2").get("T1") is None
