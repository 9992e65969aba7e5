"""`doctor`: everything the daemon needs, checked by a read, each finding with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import typer

from agent.errors import ConfigError, RootcausedError
from worker.cli.exits import RedisAway, Status
from worker.cli.options import AsJson, ConfigFile, file_of, front_of, settings_for_people
from worker.cli.terminal import say, show_json, show_table
from worker.cli.toolsets import CHECK_SECONDS, schema_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from sources.port import Source
    from worker.settings import Settings

READ_SECONDS = 15.0
OLDEST_REDIS = (6, 2)
STOP_SECONDS = 25.0  # what `rootcaused run` gives its processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    what: str
    state: Literal["ok", "warning", "failed"] = "ok"
    words: str = ""
    remedy: str = ""


def doctor(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Check everything the daemon needs.

    Configuration, Redis, sources, sinks, toolsets and model; nothing is written anywhere.

    Exits with 0 when nothing failed (warnings may remain), 4 when Redis can't be reached, else 1.
    """
    file, settings = file_of(config), settings_for_people(config)
    findings: list[Finding] = []
    for finding in examine(settings, file):
        findings.append(finding)
        say(f"{finding.state:<8} {finding.what}")
    if as_json:
        show_json([asdict(finding) for finding in findings])
    else:
        rows = [(one.what, one.state, "; ".join(part for part in (one.words, one.remedy) if part)) for one in findings]
        show_table(("CHECK", "STATE", "FOUND, AND WHAT TO DO"), rows)
    failed = [finding.what for finding in findings if finding.state == "failed"]
    if failed:
        raise typer.Exit(Status.NO_REDIS if "redis" in failed else Status.FAILED)


def examine(settings: Settings, file: Path | None) -> Iterator[Finding]:
    yield Finding(what="configuration", words=str(file or "no file, so the defaults"))
    yield from _times(settings)
    yield from _server(settings)
    yield from _redis(settings)
    yield from _sources(settings)
    yield from _sinks(settings)
    yield from _toolsets(settings)
    yield from _model(settings)
    yield from _code_mode(settings)


def _times(settings: Settings) -> Iterator[Finding]:
    """Loading the settings has refused any other order; what remains is the time to stop."""
    limits = settings.limits
    order = f"tool {limits.tool_seconds:g} < run {limits.run_seconds:g} < soft {limits.soft_seconds:g} < hard "
    yield Finding(
        what="time limits", words=f"{order}{limits.hard_seconds:g} < visibility {limits.visibility_seconds:g}"
    )
    if settings.worker.soft_shutdown_seconds >= STOP_SECONDS:
        yield Finding(
            what="worker.soft_shutdown_seconds",
            state="warning",
            words=f"is {settings.worker.soft_shutdown_seconds:g}, but `rootcaused run` waits {STOP_SECONDS:g} s",
            remedy="make it less, or tasks are killed instead of handed back",
        )


def _server(settings: Settings) -> Iterator[Finding]:
    from worker.receiver import check_bind

    try:
        check_bind(settings.server)
    except ConfigError as error:
        yield Finding(what="server", state="failed", words=str(error))
    else:
        yield Finding(what="server", words=f"{settings.server.host}:{settings.server.port}")


def _redis(settings: Settings) -> Iterator[Finding]:
    import redis

    try:
        client = front_of(settings).store.redis
        server, memory, persistence = (client.info(part) for part in ("server", "memory", "persistence"))
    except RedisAway as error:
        yield Finding(what="redis", state="failed", words=str(error))
        return
    except (RootcausedError, redis.RedisError) as error:
        yield Finding(what="redis", state="failed", words=str(error), remedy="check redis.url")
        return
    version = str(server.get("redis_version", "?"))
    old = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < OLDEST_REDIS
    yield Finding(
        what="redis",
        state="warning" if old else "ok",
        words=f"version {version}",
        remedy="use 6.2 or newer" if old else "",
    )
    policy = str(memory.get("maxmemory_policy", "unknown"))
    evicts = policy != "noeviction" and int(memory.get("maxmemory", 0)) > 0
    yield Finding(
        what="redis maxmemory-policy",
        state="failed" if evicts else "ok" if policy == "noeviction" else "warning",
        words=policy,
        remedy=""
        if policy == "noeviction"
        else "set it to noeviction: any other drops queued alerts when memory is full",
    )
    kept = int(persistence.get("aof_enabled", 0))
    yield Finding(
        what="redis persistence",
        state="ok" if kept else "warning",
        words="append-only file" if kept else "no append-only file",
        remedy="" if kept else "set appendonly yes, or a restart costs running investigations their progress",
    )


def _sources(settings: Settings) -> Iterator[Finding]:
    """The first page of a poll proves address, credentials and format at once."""
    from agent.deadline import Deadline
    from sources.catalog import build_source

    if not settings.sources:
        yield Finding(what="sources", state="warning", words="none, so no alert will come in", remedy="add one")
    for name, config in settings.sources.items():
        what = f"source {name}"
        if notice := getattr(config, "notice", ""):
            yield Finding(what=what, state="warning", words=notice, remedy="")
        try:
            source = build_source(name, config)
            page = next(iter(source.poll("", deadline=Deadline.after(READ_SECONDS))), None)
        except RootcausedError as error:
            yield Finding(
                what=what, state="failed", words=str(error), remedy=f"check url and credentials in sources.{name}"
            )
            continue
        blind = _visibility(source)
        pushed = "webhooks taken" if config.takes_webhooks else "webhooks refused: no secret is configured"
        read = f"{len(page.alerts)} alerts read" if page else "no alerts"
        broken = len(page.broken) if page else 0
        yield Finding(
            what=what,
            state="warning" if broken or blind else "ok",
            words=f"{read}, {pushed}",
            remedy=f"{broken} could not be read" if broken else blind,
        )


def _visibility(source: Source) -> str:
    """What a source says of itself where an empty list may mean that nothing is visible to us; "" for nothing."""
    from agent.deadline import Deadline

    check = getattr(source, "check", None)
    try:
        return str(check(deadline=Deadline.after(READ_SECONDS))) if check else ""
    except RootcausedError as error:
        return str(error)


def _sinks(settings: Settings) -> Iterator[Finding]:
    """A sink can be tried only by writing, so it is only built."""
    from worker.wiring import build_destinations, build_sources

    try:
        destinations = build_destinations(settings, build_sources(settings))
    except ConfigError as error:
        yield Finding(what="sinks", state="failed", words=str(error))
        return
    for name, destination in destinations.items():
        yield Finding(what=f"reports of {name}", words=f"go to {destination.name}; not tried, since that would write")


def _toolsets(settings: Settings) -> Iterator[Finding]:
    from agent.deadline import Deadline
    from toolsets.catalog import build_toolset, check_all

    try:
        built = [build_toolset(name, one) for name, one in settings.toolsets.items()]
    except ConfigError as error:
        yield Finding(what="toolsets", state="failed", words=str(error))
        return
    if not built:
        yield Finding(what="toolsets", state="warning", words="none: there is nothing to look at", remedy="add some")
    states: dict[str, Literal["ok", "warning", "failed"]] = {"ok": "ok", "degraded": "warning", "failed": "failed"}
    for name, health in check_all(built, Deadline.after(CHECK_SECONDS)).items():
        state = states[health.state.value]
        yield Finding(what=f"toolset {name}", state=state, words=health.reason, remedy=health.remedy)
    window = settings.model.window_tokens
    tokens = sum(schema_tokens(tool) for one in built for tool in one.tools)
    if window and settings.model.name != "rules":
        wide = tokens * 2 > window
        yield Finding(
            what="tool schemas",
            state="failed" if wide else "ok",
            words=f"about {tokens} of the model's {window} tokens",
            remedy="configure fewer toolsets, or a model with a larger window" if wide else "",
        )


def _model(settings: Settings) -> Iterator[Finding]:
    model = settings.model
    if model.name == "rules":
        yield Finding(what="model", words="rules: the built-in analyst, no language model")
    elif model.api_key or model.api_base:
        yield Finding(what="model", words=f"{model.name}; not called, since that would cost money")
    else:
        yield Finding(
            what="model",
            state="warning",
            words=f"{model.name}, without model.api_key",
            remedy="its key must then be in the environment of every worker, under the name LiteLLM gives it",
        )


def _code_mode(settings: Settings) -> Iterator[Finding]:
    """The layers of the sandbox that hold on this host, by a throw-away script."""
    from agent.code_mode.tool import CodeMode

    mode = CodeMode(config=settings.code_mode, tool_seconds=settings.limits.tool_seconds)
    try:
        words, reason = mode.isolation().words(), mode.unavailable()
    finally:
        mode.close()
    if not settings.code_mode.enabled:
        yield Finding(what="code mode", words=f"off; this host would give: {words}")
    elif reason:
        yield Finding(what="code mode", state="failed", words=reason, remedy="see docs/code-mode.md")
    else:
        yield Finding(what="code mode", words=words)
