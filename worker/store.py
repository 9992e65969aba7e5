"""The alert records in Redis, changed only by compare-and-set scripts.

Keys, all under the configured prefix:
  alert:KEY            hash   the record; expires after the retention once settled
  due                  zset   KEY -> ms at which something is owed: publish again, lease over, back-off over
  state:STATE          zset   KEY -> ms of the last change; the index behind lists and counts
  audit:KEY            list   one JSON line a change of state
  fingerprint:SRC:FP   zset   keys of one kind of alert -> ms at which they fired; the newest 50
  grouping             hash   source -> number of decisions on new alerts; a decision made from an older one is void
  groups:SRC:SCOPE     zset   lead -> ms of the group's begin; the newest 4 of one place, `*` is the storm's
  started:SRC          zset   key -> ms; the newest alerts that were investigated or would have been but for a storm
  followers:KEY        zset   followers of a lead -> ms of joining
  tally:KEY            hash   what joined a lead, in words -> how many
  successor:KEY        string who took the place of a lead that came to nothing
  journal:INV          list   events of one investigation: journal and checkpoint in one
  results:INV          hash   ref -> whole tool result
  report:INV           string the finished report
  cursor:SRC           string where the next poll of a source starts
  polls                hash   source -> JSON of its last poll
  sweeps               hash   sweep -> Unix time of its last start
  lease:NAME           string named leases: scheduler, poll in flight
  delivery:SRC:ID      string webhook deliveries already admitted
  broken               list   quarantined items, newest first, capped
  spend:DAY            hash   source -> USD
Every key but `due`, `state:*`, `grouping`, `cursor:*`, `polls`, `sweeps`, `broken` and unsettled records has a time to
live.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, overload

from agent.alert import Alert
from agent.events import EVENT, Event
from agent.report import Report
from sources.port import Broken, Receipt
from worker.record import Admission, Claim, Claimed, LeaseLost, Record, State, Verdict, Via, queue_for
from worker.redis_client import Client
from worker.triage import Plan, View

SCRIPTS = Path(__file__).parent / "lua"
GRACE_SECONDS = 30  # from recording to the first re-publication
DELIVERY_SECONDS = 3 * 86_400  # PagerDuty retries for 48 h
BROKEN_KEPT = 1_000
MAX_RESULT_CHARS = 2_000_000


class Store:
    """Raises `Transient` when Redis is away or full, `LeaseLost` when a claim no longer holds."""

    def __init__(
        self,
        redis: Client,
        *,
        prefix: str = "rootcaused:",
        retention_seconds: int = 30 * 86_400,
        lease_seconds: float = 60,
        attempts: int = 3,
        write_attempts: int = 12,
        runs_per_alert: int = 20,
    ) -> None:
        self.redis: Any = redis  # redis-py's types don't know that replies are decoded
        self.prefix = prefix
        self._retention = retention_seconds
        self._lease_ms = int(lease_seconds * 1000)
        self._caps = {"investigate": attempts, "write": write_attempts}
        self._runs = runs_per_alert
        common = (SCRIPTS / "common.lua").read_text()
        self._scripts = {
            name: redis.register_script(common + (SCRIPTS / f"{name}.lua").read_text())
            for name in ("claim", "append", "settle", "promote")
        }
        view = common + (SCRIPTS / "view.lua").read_text()
        self._scripts |= {
            name: redis.register_script(view + (SCRIPTS / f"{name}.lua").read_text()) for name in ("admit", "look")
        }
        self._release_lease = redis.register_script((SCRIPTS / "release_lease.lua").read_text())
        self._renew_lease = redis.register_script((SCRIPTS / "renew_lease.lua").read_text())

    # -- admission ---------------------------------------------------------------------------------------------

    @overload
    def admit(self, alert: Alert, *, via: Via, skip: str = "", instructions: str = "") -> Admission: ...

    @overload
    def admit(self, alert: Alert, *, via: Via, plan: Plan) -> Admission | View: ...

    def admit(
        self, alert: Alert, *, via: Via, skip: str = "", instructions: str = "", plan: Plan | None = None
    ) -> Admission | View:
        """Record what was seen. A requeue starts a new generation, unless one is already on its way.

        Without a plan the alert is on its own. With one, nothing is recorded when work would begin and the plan was
        made from another view than the store has now: that view is given back, to decide from.
        """
        updated = str(int(alert.updated_at.timestamp() * 1000)) if alert.updated_at else ""
        queue = queue_for(alert, via)
        verdict, *rest = self._run(
            "admit",
            alert.key,
            "requeue" if via == "requeue" else "see",
            alert.model_dump_json(),
            alert.status.value,
            updated,
            queue,
            f"inv-{secrets.token_hex(6)}",
            plan.skip if plan else skip,
            instructions,
            GRACE_SECONDS * 1000,
            self._retention,
            alert.source,
            alert.fingerprint,
            self._runs,
            via,
            alert.severity.value,
            plan.as_json() if plan else "",
        )
        if verdict == "undecided":
            return View.model_validate_json(rest[0])
        state, reason, generation, queue, late = rest
        return Admission(
            key=alert.key,
            verdict=_verdict(verdict),
            state=State(state),
            reason=reason or "",
            generation=int(generation),
            queue=queue,
            held=plan is not None and plan.hold > 0,
            late=bool(late),
        )

    def look(self, alert: Alert, plan: Plan) -> View:
        """What a decision on this alert would rest on now."""
        return View.model_validate_json(self._run("look", alert.key, alert.source, alert.fingerprint, plan.as_json()))

    def delivered_before(self, source: str, delivery_id: str) -> bool:
        return bool(self.redis.exists(self._key("delivery", source, delivery_id)))

    def remember_delivery(self, source: str, delivery_id: str) -> None:
        """Called after admission, never before: a delivery that failed half-way must be taken again."""
        self.redis.set(self._key("delivery", source, delivery_id), 1, ex=DELIVERY_SECONDS)

    def quarantine(self, source: str, broken: Broken) -> None:
        line = json.dumps({"source": source, "id": broken.id, "reason": broken.reason, "raw": broken.raw[:2_000]})
        pipe = self.redis.pipeline(transaction=False)
        pipe.lpush(self._key("broken"), line)
        pipe.ltrim(self._key("broken"), 0, BROKEN_KEPT - 1)
        pipe.execute()

    def broken(self, limit: int = 100) -> list[dict[str, str]]:
        """Quarantined items, newest first: source, id, reason, raw."""
        return [json.loads(line) for line in self.redis.lrange(self._key("broken"), 0, limit - 1)]

    # -- one investigation, one write ----------------------------------------------------------------------------

    def claim(self, key: str, generation: int, *, stage: str) -> tuple[Claimed, Claim | None]:
        """Take the lease for `investigate` or `write`; the claim is None unless the verdict is taken or parked."""
        fence = secrets.token_hex(8)
        verdict: Claimed = self._run("claim", key, generation, fence, self._lease_ms, self._caps[stage], stage)
        if verdict not in ("taken", "parked"):
            return verdict, None
        record = self.get(key)
        if record is None:
            return "gone", None
        return verdict, Claim(record=record, fence=fence, parked=verdict == "parked")

    def append(self, claim: Claim, events: Sequence[Event] = ()) -> None:
        """Add events to the journal and extend the lease; with no events a heartbeat. Raises `LeaseLost`."""
        lines = [event.model_dump_json() for event in events]
        investigation = claim.record.investigation
        if not self._run(
            "append", claim.key, *self._proof(claim), self._lease_ms, investigation, self._retention, *lines
        ):
            raise LeaseLost(claim.key)

    def settle(
        self,
        claim: Claim,
        state: State,
        reason: str = "",
        *,
        delay: float | None = None,
        give_back: str = "",
        **fields: str | float,
    ) -> None:
        """Leave the stage. `delay` seconds from now the next one is owed; None: nothing is. Raises `LeaseLost`.

        `give_back` names the counter (`attempts`, `write_attempts`) of a try that does not count.
        """
        pairs = [part for pair in fields.items() for part in pair]
        due = "" if delay is None else int(delay * 1000)
        args = [*self._proof(claim), state.value, reason, due, self._retention, give_back, *pairs]
        if not self._run("settle", claim.key, *args):
            raise LeaseLost(claim.key)

    def promote(self, claim: Claim, why: str, *, patience: float) -> str:
        """Make a follower of its lead's place, or a follower of who took it: `promoted` or `repointed`.

        Raises `LeaseLost`.
        """
        done: str = self._run("promote", claim.key, *self._proof(claim), int(patience * 1000), self._retention, why)
        if done == "lost":
            raise LeaseLost(claim.key)
        return done

    def followers(self, key: str, limit: int = 20) -> list[Record]:
        """Those of one lead, the first to join first."""
        keys = self.redis.zrange(self._key("followers", key), 0, limit - 1)
        return [record for record in self._many(keys) if record.lead == key]

    def tally(self, key: str) -> dict[str, int]:
        """What joined a lead, in words, and how often."""
        counted = self.redis.hgetall(self._key("tally", key))
        return {label: int(count) for label, count in counted.items()}

    def keep_report(self, report: Report) -> None:
        """Stored before it is posted: the analysis is paid for."""
        self.redis.set(
            self._key("report", report.run.investigation), report.model_dump_json(by_alias=True), ex=self._retention
        )

    def put_result(self, investigation: str, ref: str, text: str) -> None:
        name = self._key("results", investigation)
        pipe = self.redis.pipeline(transaction=False)
        pipe.hset(name, ref, text[:MAX_RESULT_CHARS])
        pipe.expire(name, self._retention)
        pipe.execute()

    def get_result(self, investigation: str, ref: str) -> str | None:
        text: str | None = self.redis.hget(self._key("results", investigation), ref)
        return text

    # -- what the scheduler needs --------------------------------------------------------------------------------

    def due(self, limit: int = 200) -> list[str]:
        """Keys for which something is owed by now, the longest overdue first."""
        now = int(self._now() * 1000)
        keys: list[str] = self.redis.zrangebyscore(self._key("due"), "-inf", now, start=0, num=limit)
        return keys

    def postpone(self, key: str, seconds: float) -> None:
        """Look at the key again later, unless it is no longer owed anything."""
        self.redis.zadd(self._key("due"), {key: int((self._now() + seconds) * 1000)}, xx=True)

    def published(self, key: str) -> None:
        self.redis.hdel(self._key("alert", key), "unpublished")

    def forget_due(self, key: str) -> None:
        self.redis.zrem(self._key("due"), key)

    def queue_length(self, queue: str) -> int:
        return int(self.redis.llen(queue))

    def trim_indexes(self) -> int:
        """Drop index entries of settled records that have expired. Returns how many."""
        oldest = int((self._now() - self._retention) * 1000)
        settled = (self._key("state", state.value) for state in State if state.settled)
        return sum(int(self.redis.zremrangebyscore(name, "-inf", oldest)) for name in settled)

    def renew_lease(self, name: str, token: str, seconds: float) -> bool:
        """Take or extend a named lease."""
        return bool(self._renew_lease(keys=[self._key("lease", name)], args=[token, int(seconds * 1000)]))

    def release_lease(self, name: str, token: str) -> None:
        self._release_lease(keys=[self._key("lease", name)], args=[token])

    def cursor(self, source: str) -> str:
        return self.redis.get(self._key("cursor", source)) or ""

    def move_cursor(self, source: str, cursor: str) -> None:
        self.redis.set(self._key("cursor", source), cursor)

    def remember_poll(self, source: str, *, seen: int, error: str = "") -> None:
        """What the last poll gave, so that a source that fails is told from one that has no alerts."""
        self.redis.hset(self._key("polls"), source, json.dumps({"at": self._now(), "seen": seen, "error": error}))

    def polls(self) -> dict[str, dict[str, Any]]:
        """By source: `at` (Unix time), `seen` (alerts), `error` ("" when it went well)."""
        return {source: json.loads(text) for source, text in self.redis.hgetall(self._key("polls")).items()}

    def last_sweep(self, name: str) -> float | None:
        """Unix time of the sweep's last start; None when it never ran."""
        at = self.redis.hget(self._key("sweeps"), name)
        return float(at) if at is not None else None

    def remember_sweep(self, name: str, at: float) -> None:
        self.redis.hset(self._key("sweeps"), name, at)

    def spend(self, day: str, source: str, usd: float) -> None:
        name = self._key("spend", day)
        pipe = self.redis.pipeline(transaction=False)
        pipe.hincrbyfloat(name, source, usd)
        pipe.expire(name, 3 * 86_400)
        pipe.execute()

    def spent(self, day: str) -> float:
        """USD spent on `day` (YYYY-MM-DD) by all sources."""
        return sum(float(usd) for usd in self.redis.hvals(self._key("spend", day)))

    # -- reading ---------------------------------------------------------------------------------------------------

    def get(self, key: str) -> Record | None:
        fields = self.redis.hgetall(self._key("alert", key))
        return Record.from_hash(fields) if fields else None

    def records(
        self, states: Iterable[State] = (), *, source: str = "", since: datetime | None = None, limit: int = 100
    ) -> list[Record]:
        """Records by last change, newest first."""
        oldest = int(since.timestamp() * 1000) if since else "-inf"
        keys: list[tuple[str, float]] = []
        for state in states or State:
            name = self._key("state", State(state).value)
            span = -1 if source else limit
            keys += self.redis.zrevrangebyscore(name, "+inf", oldest, start=0, num=span, withscores=True)
        keys.sort(key=lambda pair: pair[1], reverse=True)
        wanted = [key for key, _ in keys if not source or key.startswith(f"{source}:")][:limit]
        return self._many(wanted)

    def counts(self) -> dict[str, int]:
        """How many records are in each state."""
        pipe = self.redis.pipeline(transaction=False)
        for state in State:
            pipe.zcard(self._key("state", state.value))
        return {state.value: int(count) for state, count in zip(State, pipe.execute(), strict=True)}

    def report(self, investigation: str) -> Report | None:
        text = self.redis.get(self._key("report", investigation))
        return Report.model_validate_json(text) if text else None

    def events(self, investigation: str) -> list[Event]:
        return [EVENT.validate_json(line) for line in self.redis.lrange(self._key("journal", investigation), 0, -1)]

    def audit(self, key: str) -> list[dict[str, Any]]:
        """One entry a change of state: at (ms), state, reason, generation."""
        return [json.loads(line) for line in self.redis.lrange(self._key("audit", key), 0, -1)]

    def family(self, source: str, fingerprint: str) -> list[str]:
        """Keys of alerts of the same kind, newest first."""
        keys: list[str] = self.redis.zrevrange(self._key("fingerprint", source, fingerprint), 0, 9)
        return keys

    def ping(self) -> None:
        self.redis.ping()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _key(self, *parts: str) -> str:
        return self.prefix + ":".join(parts)

    def _many(self, keys: Sequence[str]) -> list[Record]:
        """The records there are of these."""
        pipe = self.redis.pipeline(transaction=False)
        for key in keys:
            pipe.hgetall(self._key("alert", key))
        return [Record.from_hash(fields) for fields in pipe.execute() if fields] if keys else []

    def _run(self, script: str, key: str, *args: Any) -> Any:
        return self._scripts[script](args=[self.prefix, key, *args])

    def _proof(self, claim: Claim) -> tuple[int, str]:
        return claim.record.generation, claim.fence

    def _now(self) -> float:
        """The server's clock: workers' own may differ or jump."""
        seconds, micros = self.redis.time()
        return float(seconds) + float(micros) / 1e6


def receipt_json(receipt: Receipt) -> str:
    return json.dumps(asdict(receipt))


def _verdict(text: str) -> Verdict:
    return text  # type: ignore[return-value]  # the script's closed set
