"""The one place where the parts are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.errors import ConfigError
from sources.catalog import build_sink, build_source
from sources.port import Destination, Source
from worker.front import Front
from worker.pipeline.investigate import Investigation
from worker.pipeline.write_back import WriteBack
from worker.redis_client import connect
from worker.settings import Settings
from worker.store import Store


def redis_url(settings: Settings) -> str:
    """The configured address, or that of the embedded server that runs in the state directory. Raises `ConfigError`."""
    from worker.redis_server import address

    return settings.redis.url.get_secret_value() if settings.redis.url else address(settings)


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
    front = build_front(settings, url)
    destinations = build_destinations(settings, front.sources)
    return Daemon(
        front=front,
        investigation=Investigation(
            store=front.store,
            publisher=front.publisher,
            sources=front.sources,
            destinations=destinations,
            run_loop=build_loop(settings, front.store),
            limits=settings.limits,
        ),
        writer=WriteBack(store=front.store, destinations=destinations),
    )
