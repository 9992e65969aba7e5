"""The one place where the parts are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING

from agent.deadline import Deadline
from agent.errors import ConfigError, Permanent
from sources.catalog import build_sink, build_source
from sources.port import Destination, Source
from worker.front import Front
from worker.redis_client import connect
from worker.settings import Settings, secrets_of
from worker.store import Store

if TYPE_CHECKING:  # the engine is for workers; the scheduler, the receiver and the command line do without
    from agent.alert import Alert
    from agent.events import Event
    from agent.report import Report
    from worker.loop import LoopBuilder
    from worker.pipeline.investigate import Investigation
    from worker.pipeline.write_back import WriteBack


def redis_url(settings: Settings) -> str:
    """The configured address, or that of the embedded server that runs in the state directory. Raises `ConfigError`."""
    if settings.redis.url:
        return settings.redis.url.get_secret_value()
    from worker.redis_server import address

    return address(settings)


def build_store(settings: Settings, url: str) -> Store:
    limits = settings.limits
    return Store(
        connect(url, settings.redis),
        prefix=settings.redis.prefix,
        retention_seconds=int(settings.redis.retention_days * 86_400),
        lease_seconds=limits.lease_seconds,
        attempts=limits.attempts,
        write_attempts=limits.write_attempts,
        runs_per_alert=limits.runs_per_alert,
    )


def build_front(settings: Settings, url: str | None = None) -> Front:
    from worker.queue import CeleryPublisher, make_app

    url = url or redis_url(settings)
    return Front(
        settings=settings,
        store=build_store(settings, url),
        publisher=CeleryPublisher(make_app(settings, url)),
        sources=build_sources(settings),
    )


def build_sources(settings: Settings) -> dict[str, Source]:
    return {name: build_source(name, config) for name, config in settings.sources.items()}


def build_destinations(settings: Settings, sources: Mapping[str, Source]) -> dict[str, Destination]:
    """Where each source's reports go: the sink it names, else the source itself. Raises `ConfigError`."""
    sinks = {name: build_sink(name, config) for name, config in settings.sinks.items()}
    chosen: dict[str, Destination] = {}
    for name, config in settings.sources.items():
        source = sources[name]
        if config.write_to is not None:
            chosen[name] = sinks[config.write_to]
        elif isinstance(source, Destination):
            chosen[name] = source
        else:
            raise ConfigError("this source can't be written to: name a sink", key=f"sources.{name}.write_to")
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """What one worker process holds. Built after the fork, since neither connections nor threads survive one."""

    front: Front
    investigation: Investigation
    writer: WriteBack

    def investigate(self, key: str, generation: int) -> None:
        self.investigation.run(key, generation)

    def write_back(self, key: str, generation: int) -> None:
        self.writer.run(key, generation)

    def poll(self, source: str) -> None:
        from worker.pipeline.poll import poll

        poll(self.front, source)

    def sweep(self, name: str) -> None:
        from worker.pipeline.poll import sweep

        sweep(self.front, name)


def build_daemon(settings: Settings, url: str) -> Daemon:
    from worker.loop import StoredResults, today
    from worker.pipeline.investigate import Investigation
    from worker.pipeline.write_back import WriteBack

    front = build_front(settings, url)
    store = front.store
    destinations = build_destinations(settings, front.sources)
    loop = build_loop(
        settings,
        results=lambda investigation: StoredResults(store, investigation),
        spent_today=lambda: store.spent(today()),
    )
    return Daemon(
        front=front,
        investigation=Investigation(
            store=store,
            publisher=front.publisher,
            sources=front.sources,
            destinations=destinations,
            run_loop=loop,
            redactor=loop.redactor,
            limits=settings.limits,
        ),
        writer=WriteBack(store=store, destinations=destinations, sources=front.sources),
    )


def build_loop(settings: Settings, **passed_in: Callable[..., object]) -> LoopBuilder:
    from agent.redaction import Redactor
    from worker.loop import LoopBuilder, build_code_mode, build_toolshed

    secrets = secrets_of(settings)
    return LoopBuilder(
        settings=settings,
        toolshed=build_toolshed(settings),
        redactor=lambda: Redactor(secrets).redact,
        code_mode=build_code_mode(settings),
        **passed_in,  # type: ignore[arg-type]
    )


def investigate_once(
    settings: Settings, alert: Alert, *, write: bool = False, on_event: Callable[[Event], None] = lambda _: None
) -> Report:
    """Investigate in this process, without queue or Redis. With `write` the report goes to the alert's ticket.

    Raises `ConfigError`, and `Transient` or `Permanent` of the write-back.
    """
    from agent.case import Case
    from agent.events import Finished
    from agent.spill import MemoryResults

    results = MemoryResults()
    loop = build_loop(settings, results=lambda _: results)
    case = Case(
        alert=alert,
        investigation=f"inv-{token_hex(6)}",
        started_at=datetime.now(UTC),
        deadline=Deadline.after(settings.limits.run_seconds),
        redact=loop.redactor(),
    )
    for event in loop(case, []):
        on_event(event)
        if isinstance(event, Finished):
            if write:
                _write(settings, alert, event.report)
            return event.report
    raise Permanent(f"{alert.key}: the loop ended without a report")


def _write(settings: Settings, alert: Alert, report: Report) -> None:
    destinations = build_destinations(settings, build_sources(settings))
    if alert.source not in destinations:
        raise ConfigError(f"no source named {alert.source!r} to write to")
    destination, deadline = destinations[alert.source], Deadline.after(60)
    previous = destination.find(alert, deadline=deadline)
    destination.publish(alert, report, previous=previous, deadline=deadline)
