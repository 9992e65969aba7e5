"""All connections to a database are taken: in the client's pool, or at the server."""

from __future__ import annotations

import re

from agent.report import NextStep
from agent.rules.changes import trigger
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Hypothesis, Match, Rule, Sign
from agent.rules.mechanisms.wrong_address import look_at_settings
from agent.rules.observation import Fact, Observation, Thing
from agent.rules.scene import Scene, target
from agent.rules.settings import database_of

_POOL = re.compile(
    r"Connection is not available, request timed out|QueuePool limit of size (?P<size>\d{1,6})|pool (?:is )?exhausted"
    r"|[Tt]imeout (?:waiting|exceeded).{0,40}connection.{0,30}pool|connection pool (?:is )?(?:exhausted|full|timeout)"
    r"|(?:unable|failed|could not|cannot) (?:to )?(?:acquire|obtain|get|check ?out) (?:a |JDBC )?[Cc]onnection"
    r"|Timed out fetching a new connection from the connection pool|pool timeout|PoolTimeout|pool error Timeout",
)
_SERVER = re.compile(
    r"remaining connection slots are reserved|too many clients already|[Tt]oo many connections|max_connections"
    r"|max number of clients reached|ORA-00020|no more connections allowed",
)


def _waiting(observation: Observation, _match: Match, _scene: Scene) -> bool:
    return observation.values.get("measure") == "pool_pending" and (observation.number("max") or 0.0) > 0


def _full(observation: Observation, _match: Match, scene: Scene) -> bool:
    limit = _limit(observation, scene)
    return limit is not None and (observation.number("max") or 0.0) >= limit > 0


def _spare(observation: Observation, _match: Match, scene: Scene) -> bool:
    limit = _limit(observation, scene)
    return limit is not None and (observation.number("max") or 0.0) < 0.5 * limit


def _limit(used: Observation, scene: Scene) -> float | None:
    """The size of the pool that `used` counts, where `used` counts a pool."""
    if used.values.get("measure") != "pool_used":
        return None
    same = (
        limit.number("last")
        for limit in scene.of(Fact.SERIES)
        if limit.values.get("measure") == "pool_max" and limit.about == used.about
    )
    return next((size for size in same if size), None)


def _database(observation: Observation, _match: Match, scene: Scene) -> Thing:
    host, _ = target(observation.text)
    return scene.host(host) if host else database_of(scene.owner(observation.about), scene)


def _tell(hypothesis: Hypothesis, scene: Scene) -> Account:
    at_server = any(finding.sign == SERVER_SIGN for finding in hypothesis.findings)
    if at_server:
        return Account(did="refuses connections", because="its connection limit is reached", trigger="load")
    did = "times out waiting for a database connection"
    began = trigger(hypothesis.component.name, scene, "load")
    return Account(did=did, because="its connection pool is exhausted", trigger=began)


def _steps(hypothesis: Hypothesis, scene: Scene) -> list[NextStep]:
    return [
        steps.look(
            "See who holds the connections",
            "SELECT client_addr, state, count(*), max(now() - state_change) FROM pg_stat_activity GROUP BY 1, 2",
            "idle in transaction points to a leak, active to slow queries",
        ),
        steps.history(hypothesis, scene),
        *steps.roll_back(hypothesis, scene, "if the exhaustion began with the last roll-out"),
        steps.change(
            "Raise the pool size within the server's limit, or free leaked connections by a restart",
            "requests wait until a connection is free",
            risk="a larger pool loads the database more; a restart drops requests in flight",
            undo="set the former size again",
        ),
    ]


SERVER_SIGN = "the server has no connection left"

CONNECTION_POOL = Rule(
    name="connection_pool_exhausted",
    title="a connection pool is exhausted",
    depth=26,
    signs=(
        Sign(name="a request got no connection from the pool", weight="decisive", facts=(Fact.LOG,), pattern=_POOL),
        Sign(name=SERVER_SIGN, weight="decisive", facts=(Fact.LOG, Fact.EVENT), pattern=_SERVER, component=_database),
        Sign(
            name="all connections of the pool are in use",
            weight="decisive",
            facts=(Fact.SERIES,),
            holds=_full,
            dated=False,
        ),
        Sign(name="requests wait for a connection", weight="supporting", facts=(Fact.SERIES,), holds=_waiting),
        Sign(name="the pool has spare connections", weight="contradicting", facts=(Fact.SERIES,), holds=_spare),
    ),
    looks=(
        look_at_settings,
        looks.series("pool_used", "pool_max", "pool_pending"),
        looks.logs,
        looks.describe_revisions,
    ),
    tells=_tell,
    steps=_steps,
)
