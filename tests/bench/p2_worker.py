"""A worker process for P2: `python -m tests.bench.p2_worker noop|investigate|io REDIS_URL ADDRESS`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import redis

from agent.loop import Investigator
from agent.scripted import ScriptedModel, says
from agent.spill import MemoryResults
from tests.bench.p2 import PROCESSES, settings_for
from worker.handover import Handover
from worker.loop import run_limits
from worker.queue import INVESTIGATE, consume, make_app, register
from worker.wiring import Daemon, build_daemon


def main(role: str, redis_url: str, address: str) -> None:
    settings = settings_for(address or "http://127.0.0.1:1", redis_url)
    app = make_app(settings, redis_url)
    with redis.Redis.from_url(redis_url) as client:
        client.set(f"bench:{role}", 0)
    if role == "noop":
        clients: dict[int, redis.Redis] = {}

        def noop() -> None:
            clients.setdefault(os.getpid(), redis.Redis.from_url(redis_url)).incr("bench:noop")

        app.task(noop, name="rootcaused.noop")
    daemons: dict[int, Daemon] = {}
    register(
        app,
        lambda: daemons.get(os.getpid()) or daemons.setdefault(os.getpid(), _daemon(settings, redis_url)),
        Handover(),
    )
    consume(app, INVESTIGATE if role != "io" else "io", PROCESSES)


def _daemon(settings, redis_url: str) -> Daemon:
    """The real daemon with a scripted model that answers at once."""
    daemon = build_daemon(settings, redis_url)
    investigator = Investigator(
        models=[ScriptedModel(lambda request: says("The queue is deep because a consumer is slow."))],
        tools=(),
        limits=run_limits(settings),
        results=MemoryResults(),
    )
    return replace(daemon, investigation=replace(daemon.investigation, run_loop=investigator.run))


if __name__ == "__main__":
    main(*sys.argv[1:4])
