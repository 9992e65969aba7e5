"""Exit statuses, and which error means which."""

from __future__ import annotations

from enum import IntEnum

from agent.errors import ConfigError, RootcausedError


class Status(IntEnum):
    """What a script may rely on; also in the help text and docs/cli.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    NO_REDIS = 4
    NOT_FOUND = 5
    PARTIAL = 6


HELP = (
    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 configuration, 4 Redis can't be reached, "
    "5 not found, 6 done in part."
)


class RedisAway(RootcausedError):
    """Raised when a command that needs Redis can't reach it."""


class Absent(RootcausedError):
    """Raised when what was named on the command line does not exist."""


class Misused(RootcausedError):
    """Raised when arguments don't make sense together, or can't be read."""


def status_of(error: RootcausedError) -> Status:
    from worker.front import NotFound
    from worker.redis_server import NotRunning

    match error:
        case RedisAway() | NotRunning():  # `run` starts a process again that ends so
            return Status.NO_REDIS
        case ConfigError():
            return Status.CONFIGURATION
        case Absent() | NotFound():
            return Status.NOT_FOUND
        case Misused():
            return Status.USAGE
        case _:
            return Status.FAILED
