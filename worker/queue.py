"""Celery: the app, its tasks and the worker process. Nothing else knows which queue this is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import structlog
from billiard.process import active_children
from celery import Celery, signals
from celery.exceptions import Reject
from kombu.entity import Queue
from kombu.exceptions import OperationalError
from redis import RedisError

from agent.errors import Transient
from worker.handover import HandOver, Handover, ask_later
from worker.record import CRITICAL, DEFAULT, POLL, SWEEP, WRITEBACK
from worker.redis_client import sentinel_password
from worker.settings import Settings

PUBLISH_SECONDS = 10  # the bound on one publication, connection included
INVESTIGATE, IO = "investigate", "io"  # the two kinds of worker process
INVESTIGATE_QUEUES = (CRITICAL, DEFAULT, SWEEP)
IO_QUEUES = (WRITEBACK, POLL)
IO_CONCURRENCY = 2

log = structlog.get_logger("rootcaused.queue")


def make_app(settings: Settings, url: str) -> Celery:
    """A Celery app for producers and workers alike. Nothing is connected yet."""
    limits = settings.limits
    app = Celery("rootcaused", broker=_broker_url(url), set_as_current=False)
    app.conf.update(
        # A message is a reference (key, generation) and a copy too many is harmless, so: never lose one.
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        task_ignore_result=True,  # our own records are the result; Celery's would leak keys and connections
        task_serializer="json",
        accept_content=["json"],
        task_queues=[Queue(name) for name in (*INVESTIGATE_QUEUES, *IO_QUEUES)],
        task_default_queue=DEFAULT,
        task_create_missing_queues=False,
        task_soft_time_limit=limits.soft_seconds,
        task_time_limit=limits.hard_seconds,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport(settings),
        task_publish_retry_policy={"max_retries": 2, "interval_start": 0, "interval_step": 0.5, "interval_max": 1},
        worker_max_tasks_per_child=settings.worker.max_tasks_per_child,
        worker_max_memory_per_child=settings.worker.max_memory_mb_per_child * 1_000,
        worker_enable_remote_control=False,  # its reply queues leave keys behind, and nothing here uses it
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_disable_rate_limits=True,
        # The lease makes a task that runs on after a broken connection harmless; killing it would waste paid steps.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        timezone="UTC",
    )
    return app


def _broker_url(url: str) -> str:
    """kombu wants every sentinel as an address of its own, separated by semicolons."""
    if url.startswith("unix://"):
        return "redis+socket://" + url.removeprefix("unix://")
    if not url.startswith("sentinel://"):
        return url
    parts = urlsplit(url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    return ";".join(f"sentinel://{credentials}{at}{host}{parts.path}" for host in hosts.split(","))


def _transport(settings: Settings) -> dict[str, Any]:
    seconds = settings.redis.timeout_seconds
    return {
        "visibility_timeout": settings.limits.visibility_seconds,
        "socket_timeout": seconds,
        "socket_connect_timeout": min(5.0, seconds),
        "socket_keepalive": True,
        "retry_on_timeout": False,
        "health_check_interval": 30,
        # By name, so critical, default, sweep; "priority" would follow the chance order of a set.
        "queue_order_strategy": "sorted",
        "master_name": settings.redis.sentinel_master,
        "sentinel_kwargs": {"password": sentinel_password(settings.redis), "socket_timeout": seconds},
    }


@dataclass(frozen=True, slots=True)
class CeleryPublisher:
    """Publishes references; see `worker.publisher.Publisher`."""

    app: Celery

    def investigate(self, key: str, generation: int, queue: str) -> None:
        self._send("rootcaused.investigate", queue, [key, generation])

    def write_back(self, key: str, generation: int) -> None:
        self._send("rootcaused.write_back", WRITEBACK, [key, generation])

    def poll(self, source: str, *, expires: float) -> None:
        self._send("rootcaused.poll", POLL, [source], expires=expires)

    def sweep(self, name: str, *, expires: float) -> None:
        self._send("rootcaused.sweep", POLL, [name], expires=expires)

    def _send(self, task: str, queue: str, args: list[Any], expires: float | None = None) -> None:
        try:
            self.app.send_task(task, args, queue=queue, expires=expires)
        except (OperationalError, RedisError, OSError) as error:
            raise Transient(f"publish {task}: {type(error).__name__}") from error


class TaskFailed(Exception):
    """Raised out of a task in place of anything else, so that what crosses to the parent process always pickles."""


def register(app: Celery, daemon: Callable[[], Any], handover: Handover) -> None:
    """Define the tasks. `daemon()` gives this process's `worker.wiring.Daemon`, built after the fork."""

    def investigate(key: str, generation: int) -> None:
        with handover.allowed():
            daemon().investigate(key, generation)

    app.task(_task("investigate", investigate), name="rootcaused.investigate")
    for verb in ("write_back", "poll", "sweep"):
        app.task(_task(verb, _verb(verb, daemon)), name=f"rootcaused.{verb}")


def _verb(verb: str, daemon: Callable[[], Any]) -> Callable[..., None]:
    def act(*args: Any) -> None:
        getattr(daemon(), verb)(*args)

    return act


def _task(verb: str, act: Callable[..., None]) -> Callable[..., None]:
    """Whatever happens is logged and leaves as a plain picklable error: MemoryError or SystemExit out of a task
    blocks a whole prefork pool, and many clients' exceptions can't be unpickled. The alert stays owed work."""

    def run(*args: Any) -> None:
        with structlog.contextvars.bound_contextvars(task=verb, args=list(args)):
            try:
                act(*args)
            except HandOver:  # asked before the work began: the message goes back to its queue
                raise Reject(requeue=True) from None
            except BaseException as error:
                log.exception("task_crashed")
                raise TaskFailed(f"{type(error).__name__}: {error}"[:500]) from None

    return run


def run_worker(settings: Settings, *, role: str = INVESTIGATE) -> int:
    """Run one Celery worker process tree until it is told to stop. `role`: `investigate` or `io` (polls, write-backs).

    They are two, so that a page's poll and a finished report never wait behind twenty-minute investigations.
    """
    from worker import telemetry, wiring

    url = wiring.redis_url(settings)
    app = make_app(settings, url)
    daemons: dict[int, wiring.Daemon] = {}

    def daemon() -> wiring.Daemon:
        """One a process: neither connections nor threads survive a fork."""
        pid = os.getpid()
        if pid not in daemons:
            daemons.clear()
            daemons[pid] = wiring.build_daemon(settings, url)
        return daemons[pid]

    def configure_logging(**_: Any) -> None:
        telemetry.configure(settings)

    handover = Handover()
    register(app, daemon, handover)
    signals.setup_logging.connect(configure_logging, weak=False)
    hand_over_on_shutdown(handover, settings.worker.soft_shutdown_seconds)
    consume(app, role, settings.worker.concurrency if role == INVESTIGATE else IO_CONCURRENCY)
    return 0


def hand_over_on_shutdown(handover: Handover, seconds: float) -> None:
    """On SIGTERM Celery waits for running tasks; after `seconds` they are asked to leave."""

    def arm(**_: Any) -> None:
        handover.arm()

    def ask(**_: Any) -> None:
        ask_later(lambda: [child.pid for child in active_children()], seconds)

    signals.worker_process_init.connect(arm, weak=False)
    signals.worker_shutting_down.connect(ask, weak=False)


def consume(app: Celery, role: str, concurrency: int) -> None:
    """Run Celery's worker in this process, with `concurrency` children, until it is told to stop."""
    queues = INVESTIGATE_QUEUES if role == INVESTIGATE else IO_QUEUES
    name = f"{role}-{os.getpid()}@%h"
    options = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-O", "fair", "--loglevel", "WARNING"]
    app.worker_main(["--quiet", "worker", "-Q", ",".join(queues), "-c", str(concurrency), "-n", name, *options])
