"""While alerts are created, updated, closed and re-ordered between page requests: none lost, none twice."""

from __future__ import annotations

import os
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sources.opsgenie.client import OpsApi
from sources.opsgenie.config import OpsGenieConfig
from sources.opsgenie.paging import OPEN, Walk
from sources.opsgenie.v2 import OpsGenieDialect
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.opsgenie_api import API_KEY, NOW, OpsGenieApiFake, ops_alert, stamp
from tests.support.opsgenie_sources import SOON, ids, opsgenie

EXAMPLES = int(os.environ.get("ROOTCAUSED_EXAMPLES", "25"))
PAGE = 4


def walk_of(url: str) -> Walk:
    dialect = OpsGenieDialect(OpsGenieConfig.model_validate({"api_key": API_KEY, "url": url}))
    return Walk(OpsApi(dialect), dialect, SOON, page=PAGE)


class WhileWePage(RuleBasedStateMachine):
    """A page is asked for, then the world moves, then the next page. Up to two alerts share a millisecond."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.api = OpsGenieApiFake()
        self.server = self.stack.enter_context(HttpServer(self.api))
        self.walk: Iterator[list[object]] | None = None
        self.due: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.clock = NOW - timedelta(hours=1)
        self.random = random.Random(7)

    def teardown(self) -> None:
        with self.stack:  # the server ends also when the rest of the list fails us
            self.finish()

    @initialize(shares=st.lists(st.booleans(), min_size=20, max_size=40))
    def begin(self, shares: list[bool]) -> None:
        self.arrive(shares)
        self.start()

    def arrive(self, shares: list[bool]) -> None:
        """Each a millisecond after the one before, or in the same one: two at most, so that a page holds them."""
        alone = False
        for share in shares:
            alone = not (share and alone)
            self.clock += timedelta(milliseconds=alone)
            self.api.alerts.append(ops_alert(f"A{len(self.api.alerts)}", createdAt=stamp(self.clock)))

    def start(self) -> None:
        self.seen = Counter()
        self.due = {one["id"] for one in self.open()}  # what is open from the start to the end must be seen
        self.walk = walk_of(self.server.url).run(OPEN)

    def open(self) -> list[dict[str, Any]]:
        return [one for one in self.api.alerts if one["status"] == "open"]

    @precondition(lambda self: self.walk is not None)
    @rule(closing=st.integers(0, 9))
    def read_a_page(self, closing: int = 0) -> None:
        """After `closing` of the oldest were closed: those were read, and an offset would now skip as many."""
        assert self.walk is not None
        for one in self.open()[:closing]:
            one["status"] = "closed"
            self.due.discard(one["id"])
        page = next(self.walk, None)
        if page is None:
            self.walk = None
            assert self.due <= set(self.seen)
            return
        self.seen.update(str(one["id"]) for one in page if isinstance(one, dict))

    @precondition(lambda self: self.walk is None)
    @rule()
    def poll_again(self) -> None:
        self.start()

    @rule(shares=st.lists(st.booleans(), min_size=1, max_size=12))
    def alerts_arrive(self, shares: list[bool]) -> None:
        self.arrive(shares)

    @rule(data=st.data())
    def some_close(self, data: st.DataObject) -> None:
        """Any of them, also those already read, which moves every later one forward."""
        now_open = self.open()
        for one in data.draw(st.lists(st.sampled_from(now_open), max_size=15)) if now_open else ():
            one["status"] = "closed"
            self.due.discard(one["id"])

    @rule(data=st.data())
    def some_change(self, data: st.DataObject) -> None:
        for one in data.draw(st.lists(st.sampled_from(self.api.alerts), max_size=5)) if self.api.alerts else ():
            one.update(updatedAt=stamp(NOW), count=one["count"] + 1, priority="P1")

    @rule()
    def those_of_one_moment_change_places(self) -> None:
        self.api.tie = lambda alert: self.random.random()

    @invariant()
    def none_comes_twice(self) -> None:
        assert [native for native, times in self.seen.items() if times > 1] == []

    def finish(self) -> None:
        """The rest of the list, while the world goes on: an example alone seldom gets beyond its first pages."""
        while self.walk is not None:
            self.read_a_page(closing=self.random.randrange(6))
            self.none_comes_twice()


TestWhileWePage = WhileWePage.TestCase
TestWhileWePage.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    derandomize=EXAMPLES <= 25,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # making a failure smaller would take minutes over HTTP
)

MANY = 25_000
FIRST = NOW - timedelta(days=30)


def made(number: int) -> dict[str, Any]:
    at: datetime = FIRST + timedelta(seconds=number)
    return {"id": f"A{number:05d}", "message": "x", "status": "open", "createdAt": stamp(at), "description": "known"}


def endless(request: Request) -> Reply | None:
    """25,000 alerts a second apart, each made when it is asked for; as strict about offsets as the original."""
    query, offset = request.query["query"][0], int(request.query.get("offset", ["0"])[0])
    if offset + 100 > 20_000:
        return Reply(422, {"message": "The sum of offset and limit should be lower than 20000"})
    since = int(query.rpartition("createdAt >= ")[2]) if "createdAt" in query else 0
    start = offset + max(0, -(-(since - int(FIRST.timestamp() * 1_000)) // 1_000))
    page = [made(number) for number in range(start, min(start + 100, MANY))]
    paging = {"next": f"https://api.opsgenie.com/v2/alerts?offset={offset + 100}"} if start + 100 < MANY else {}
    return Reply(200, {"data": page, "paging": paging, "took": 0.1, "requestId": "r"})


@pytest.mark.scale
def test_twenty_five_thousand_open_alerts_are_polled_whole_in_flat_memory() -> None:
    """Tracing costs most of the time, so it watches the last 5,000 alone: what grows then is the ids we remember."""
    seen: Counter[str] = Counter()
    with HttpServer(OpsGenieApiFake(before=endless)) as server:
        for page in opsgenie(server.url).poll("2031-02-03T12:00:00Z", deadline=SOON):
            seen.update(ids([page]))
            if len(seen) >= MANY - 5_000 and not tracemalloc.is_tracing():
                tracemalloc.start()
        grown, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(seen) == MANY
    assert set(seen.values()) == {1}
    assert grown < peak < 6_000_000
