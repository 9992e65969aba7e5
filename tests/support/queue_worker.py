"""A real Celery worker process whose tasks do what their key says: `python -m tests.support.queue_worker REDIS_URL`."""

from __future__ import annotations

import os
import signal
import sys

import redis

from worker.handover import Handover
from worker.queue import INVESTIGATE, consume, make_app, register
from worker.settings import Settings


class Unpicklable(Exception):
    """Like many clients' errors: needs arguments that pickling does not keep."""

    def __init__(self, message: str, *, response: object) -> None:
        super().__init__(message)
        self.response = response


class Daemon:
    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url)

    def investigate(self, key: str, generation: int) -> None:
        times = self.redis.incr(f"ran:{key}")
        match key:
            case "memory":
                raise MemoryError
            case "exit":
                raise SystemExit(3)
            case "interrupt":
                raise KeyboardInterrupt
            case "unpicklable":
                raise Unpicklable("429", response=object())
            case "killed" if times == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                self.redis.rpush("done", key)


def main(url: str) -> None:
    app = make_app(Settings(), url)
    daemons: dict[int, Daemon] = {}
    register(app, lambda: daemons.setdefault(os.getpid(), Daemon(url)), Handover())
    consume(app, INVESTIGATE, 2)


if __name__ == "__main__":
    main(sys.argv[1])
