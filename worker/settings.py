"""The shape of the configuration file; `worker/config.py` reads it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from agent.alert import Severity
from agent.code_mode.config import CodeModeConfig
from agent.errors import ConfigError
from sources.catalog import SinkConfig, SourceConfig
from toolsets.catalog import ToolsetConfig
from worker.matching import parse_matcher

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
    result_tokens: int = Field(default=800, gt=0)

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


def _readable_crontab(text: str) -> str:
    from worker.crontab import next_time  # imports Celery, which a configuration without crontabs does not need

    try:
        next_time(text, 0.0)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return text


def _readable_matchers(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        parse_matcher(text)
    return texts


class SweepSettings(Section):
    """`crontab` has the five standard fields, in UTC."""

    source: str
    query: str
    crontab: str
    limit: int = Field(default=50, gt=0)

    _readable = field_validator("crontab")(_readable_crontab)


Matchers = Annotated[tuple[str, ...], AfterValidator(_readable_matchers)]


class GroupingSettings(Section):
    """Alerts of one place that fire together are one investigation. A place is the values of `labels`; where the last
    of them is missing, the service stands in for it. Times are those at which the alerts fired: a group is over when
    nothing joined it for `quiet_seconds`, and after `window_seconds` at the latest."""

    enabled: bool = True
    labels: tuple[str, ...] = Field(default=("cluster", "namespace"), min_length=1)
    quiet_seconds: Seconds = 120
    window_seconds: Seconds = 300


class StormSettings(Section):
    """Past `investigations` new ones of one source within `seconds`, further alerts join one investigation, which
    waits `hold_seconds` for them. It takes alerts for `window_seconds` at most; then the next one begins."""

    enabled: bool = True
    investigations: int = Field(default=20, gt=0)
    seconds: Seconds = 600
    hold_seconds: float = Field(default=30, ge=0)
    window_seconds: Seconds = 1_800


class NoiseSettings(Section):
    """`cooldown_seconds` is off by default: a re-fire often means that the first remedy failed. Flapping is the same
    fingerprint `flapping_times` within `flapping_seconds`; 0 turns it off."""

    cooldown_seconds: float = Field(default=0, ge=0)
    flapping_times: int = Field(default=5, ge=0)
    flapping_seconds: Seconds = 1_800


class FilterSettings(Section):
    """Alerts that all `matchers` hold for are recorded and skipped. No `sources`: of every source."""

    matchers: Matchers = Field(min_length=1)
    sources: tuple[str, ...] = ()
    reason: str = ""


class MaintenanceSettings(Section):
    """A window that begins by `crontab` (five fields, UTC). What still fires after it is taken up then."""

    crontab: str
    minutes: float = Field(gt=0)
    matchers: Matchers = ()
    sources: tuple[str, ...] = ()

    _readable = field_validator("crontab")(_readable_crontab)


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
    code_mode: CodeModeConfig = CodeModeConfig()
    grouping: GroupingSettings = GroupingSettings()
    storm: StormSettings = StormSettings()
    noise: NoiseSettings = NoiseSettings()
    filters: tuple[FilterSettings, ...] = ()
    maintenance: dict[str, MaintenanceSettings] = {}
    sources: dict[str, SourceConfig] = {}
    sinks: dict[str, SinkConfig] = {}
    toolsets: dict[str, ToolsetConfig] = {}
    sweeps: dict[str, SweepSettings] = {}

    @model_validator(mode="after")
    def _code_fits(self) -> Self:
        limits = self.limits
        if words := self.code_mode.misfit(tool_seconds=limits.tool_seconds, run_seconds=limits.run_seconds):
            raise ValueError(words)
        return self

    @model_validator(mode="after")
    def _names_resolve(self) -> Self:
        """Every reference names something that exists, and every source has somewhere to write."""
        for name, sweep in self.sweeps.items():
            if sweep.source not in self.sources:
                known = _names(self.sources)
                raise ValueError(f"sweeps.{name}.source: no source named {sweep.source!r}; there are {known}")
        quiet = [(f"filters.{number}", rule.sources) for number, rule in enumerate(self.filters)]
        quiet += [(f"maintenance.{name}", window.sources) for name, window in self.maintenance.items()]
        for where, named in quiet:
            if unknown := sorted(set(named) - set(self.sources)):
                raise ValueError(f"{where}.sources: no source named {unknown[0]!r}; there are {_names(self.sources)}")
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
