"""The shape of the configuration file; `worker/config.py` reads it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from agent.alert import Severity
from agent.errors import ConfigError
from sources.catalog import SinkConfig, SourceConfig
from toolsets.catalog import ToolsetConfig

Seconds = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """An unknown key is an error: a misspelt option must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RedisSettings(Section):
    """`url`: redis://, rediss:// (TLS), redis+socket:// or sentinel:// (hosts comma-separated, with `sentinel_master`).
    Unset: a server of our own is started in the state directory."""

    url: SecretStr | None = None
    sentinel_master: str = "mymaster"
    sentinel_password: SecretStr | None = None
    prefix: str = "rootcaused:"
    retention_days: float = Field(default=30, gt=0)
    timeout_seconds: Seconds = 10


class ModelSettings(Section):
    """`name` is any LiteLLM name, `rules` for the built-in analyst. `fallbacks` are tried in order, the rules last."""

    name: str = "rules"
    fallbacks: tuple[str, ...] = ()
    api_key: SecretStr | None = None
    api_base: str | None = None
    window_tokens: int | None = Field(default=None, gt=0)
    max_output_tokens: int = Field(default=8_000, gt=0)
    temperature: float | None = None
    input_usd_per_million: float | None = Field(default=None, ge=0)
    output_usd_per_million: float | None = Field(default=None, ge=0)
    by_severity: dict[Severity, str] = {}
    call_seconds: Seconds = 180


class Limits(Section):
    """Ceilings of one investigation, and of a day. The order of the times is checked at start-up."""

    steps: int = Field(default=40, gt=0)
    tokens: int = Field(default=1_000_000, gt=0)
    cost_usd: float = Field(default=5.0, gt=0)
    run_seconds: Seconds = 1_200
    tool_seconds: Seconds = 60
    soft_seconds: Seconds = 1_260
    hard_seconds: Seconds = 1_320
    visibility_seconds: Seconds = 3_600
    lease_seconds: Seconds = 60
    attempts: int = Field(default=3, gt=0)
    write_attempts: int = Field(default=12, gt=0)
    day_cost_usd: float = Field(default=100.0, gt=0)
    runs_per_alert: int = Field(default=20, gt=0)
    result_tokens: int = Field(default=1_500, gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        """Each layer must be able to end before the one around it ends it."""
        names = ("tool_seconds", "run_seconds", "soft_seconds", "hard_seconds", "visibility_seconds")
        for inner, outer in pairwise(names):
            shorter, longer = getattr(self, inner), getattr(self, outer)
            if shorter >= longer:
                raise ValueError(f"limits.{inner} ({shorter:g}) must be less than limits.{outer} ({longer:g})")
        return self


class WorkerSettings(Section):
    concurrency: int = Field(default=2, gt=0)
    max_tasks_per_child: int = Field(default=200, gt=0)
    max_memory_mb_per_child: int = Field(default=1_000, gt=0)
    soft_shutdown_seconds: Seconds = 15


class SweepSettings(Section):
    """`crontab` has the five standard fields, in UTC."""

    source: str
    query: str
    crontab: str
    limit: int = Field(default=50, gt=0)

    @field_validator("crontab")
    @classmethod
    def _readable(cls, text: str) -> str:
        from worker.crontab import next_time  # imports Celery, which a configuration without sweeps does not need

        try:
            next_time(text, 0.0)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return text


class ServerSettings(Section):
    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65_535)
    public_url: str = ""
    token: SecretStr | None = None
    max_body_bytes: int = Field(default=2_000_000, gt=0)


class TeamSettings(Section):
    """What every investigation is told."""

    instructions: str = ""


class LogSettings(Section):
    level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    format: str = Field(default="json", pattern="^(json|console)$")


class Settings(Section):
    state_dir: Path = Path("/var/lib/rootcaused")
    redis: RedisSettings = RedisSettings()
    model: ModelSettings = ModelSettings()
    limits: Limits = Limits()
    worker: WorkerSettings = WorkerSettings()
    server: ServerSettings = ServerSettings()
    team: TeamSettings = TeamSettings()
    log: LogSettings = LogSettings()
    sources: dict[str, SourceConfig] = {}
    sinks: dict[str, SinkConfig] = {}
    toolsets: dict[str, ToolsetConfig] = {}
    sweeps: dict[str, SweepSettings] = {}

    @model_validator(mode="after")
    def _names_resolve(self) -> Self:
        """Every reference names something that exists, and every source has somewhere to write."""
        for name, sweep in self.sweeps.items():
            if sweep.source not in self.sources:
                known = _names(self.sources)
                raise ValueError(f"sweeps.{name}.source: no source named {sweep.source!r}; there are {known}")
        for name, source in self.sources.items():
            target, known = source.write_to, _names(self.sinks)
            if target is None and source.kind == "alertmanager":
                raise ValueError(f"sources.{name}.write_to: Alertmanager has no tickets, so name a sink: {known}")
            if target is not None and target not in self.sinks:
                raise ValueError(f"sources.{name}.write_to: no sink named {target!r}; there are {known}")
        return self


def _names(mapping: Iterable[str]) -> str:
    return ", ".join(sorted(mapping)) or "none"


def secrets_of(settings: BaseModel) -> set[str]:
    """Every secret value in the settings, so that it can be kept out of logs, prompts and comments."""
    found: set[str] = set()
    _collect(settings, found)
    return found


def _collect(value: object, found: set[str]) -> None:
    if isinstance(value, SecretStr):
        found.add(value.get_secret_value())
    elif isinstance(value, BaseModel):
        for item in dict(value).values():
            _collect(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, found)
