"""A repository that changes between page requests, with limits and resets: no open issue lost, none under two keys."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from agent.alert import Alert, Status
from agent.deadline import Deadline
from agent.errors import RootcausedError
from sources.github.config import GitHubConfig
from sources.github.source import GitHub
from tests.support.github_api import NOW, REPOSITORY, TOKEN, GitHubApiFake, as_pull_request, issue, label, labels_of
from tests.support.http_server import HttpServer, Reply, Request

EXAMPLES = int(os.environ.get("ROOTCAUSED_EXAMPLES", "12"))
PAGE = 12
MAX_ISSUES = 40
LONG_AGO = 100_000  # seconds: no window of recent changes makes up for an issue that was passed over
SOON = Deadline.never()

CHANGES = ("open", "open unlabelled", "open a pull request", "edit", "close", "reopen", "label", "unlabel", "comment")
FAULTS: dict[str, Reply] = {
    "limit": Reply(429, {"message": "slow down"}, {"Retry-After": "30"}),
    "secondary limit": Reply(403, {"message": "You have exceeded a secondary rate limit."}),
    "reset": Reply(cut="before"),
    "cut": Reply(200, [{"padding": "x" * 100}], cut="body"),
    "outage": Reply(502, b"<html>"),
    "rubbish": Reply(200, b"<html>"),
}
change = st.tuples(st.sampled_from(CHANGES), st.integers(0, MAX_ISSUES), st.integers(0, 2))
fault = st.sampled_from([None, None, None, *sorted(FAULTS)])


class Repository(RuleBasedStateMachine):
    """Either changes are a second apart, and each poll by itself sees all that is open from its start to its end; or
    many share a second, and an issue that a shifted page number hides must come with the next poll."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.api = GitHubApiFake(per_page_cap=PAGE, now=NOW - timedelta(hours=2))
        self.seconds = 0.0
        self.apart = 0
        self.cursor = ""
        self.seen: dict[str, Alert] = {}
        self.last_poll: set[str] = set()
        self.due: set[str] = set()  # open and labelled since this poll began
        self.keys: dict[str, set[str]] = {}
        self.between: Iterator[tuple[str, int, int]] = iter(())
        self.faults: Iterator[str | None] = iter(())
        self.api.before = lambda request: FAULTS[kind] if (kind := next(self.faults, None)) else None
        self.api.after = self.move
        server = self.stack.enter_context(HttpServer(self.api))
        config = GitHubConfig(token=TOKEN, url=server.url, repositories=[REPOSITORY], labels=["alert"])
        self.github = GitHub("gh", config, clock=lambda: self.seconds, wall=lambda: 0.0, sleep=self.tick)

    def teardown(self) -> None:
        with self.stack:
            self.quiet()

    @initialize(
        issues=st.sampled_from([0, 5, 30]), inclusive=st.booleans(), stale=st.booleans(), apart=st.integers(0, 1)
    )
    def begin(self, issues: int, inclusive: bool, stale: bool, apart: int) -> None:
        self.apart = apart
        self.api.since_inclusive, self.api.sorted_by_stale_times = inclusive, stale
        for _ in range(issues):
            self.act("open", 0, 0)
        self.tick(LONG_AGO)

    @rule(changes=st.lists(change, min_size=1, max_size=8))
    def people_work(self, changes: list[tuple[str, int, int]]) -> None:
        for one in changes:
            self.act(*one)

    @rule(between=st.lists(change, max_size=12))
    def poll(self, between: list[tuple[str, int, int]]) -> None:
        self.poll_through([], between)

    @rule(faults=st.lists(fault, min_size=1, max_size=6), between=st.lists(change, max_size=12))
    def poll_through(self, faults: list[str | None], between: list[tuple[str, int, int]]) -> None:
        self.between, self.faults = iter(between), iter(faults)
        self.tick(60)
        self.due = self.alarming()
        self.last_poll = set()
        if self.read() is None and self.apart:
            assert self.due <= self.last_poll, "open all the while, and passed over"

    @rule(seconds=st.sampled_from([0, 1, 90, 1_500]))
    def time_passes(self, seconds: int) -> None:
        self.tick(seconds)

    def quiet(self) -> None:
        """Nothing changes any more; then every open labelled issue has been seen, as it is."""
        self.between, self.faults = iter(()), iter(())
        self.tick(120)
        assert self.read() is None
        for item in self.api.issues[REPOSITORY]:
            key = f"gh:{REPOSITORY}#{item['number']}"
            alarming = "alert" in labels_of(item) and "pull_request" not in item
            if alarming and item["state"] == "open":
                assert self.seen[key].status is Status.OPEN
            elif alarming and key in self.seen:
                assert self.seen[key].status is Status.RESOLVED
            if "pull_request" in item:
                assert key not in self.seen
        assert all(len(keys) == 1 for keys in self.keys.values())

    def read(self) -> RootcausedError | None:
        """As the worker polls: what comes is kept, and the cursor only moves when nothing was raised."""
        moved = ""
        try:
            for page in self.github.poll(self.cursor, deadline=SOON):
                assert page.broken == ()
                moved = page.cursor or moved
                for alert in page.alerts:
                    self.keys.setdefault(alert.fingerprint, set()).add(alert.key)
                    self.seen[alert.key] = alert
                    self.last_poll.add(alert.key)
        except RootcausedError as error:
            return error
        self.cursor = moved
        return None

    def move(self, request: Request, reply: Reply) -> Reply:
        for one in itertools.islice(self.between, 1):
            self.act(*one)
        return reply

    def alarming(self) -> set[str]:
        items = [i for i in self.api.issues[REPOSITORY] if i["state"] == "open" and "pull_request" not in i]
        return {f"gh:{REPOSITORY}#{item['number']}" for item in items if "alert" in labels_of(item)}

    def tick(self, seconds: float) -> None:
        self.seconds += seconds
        self.api.now += timedelta(seconds=seconds)

    def act(self, kind: str, which: int, seconds: int) -> None:
        self.tick(max(seconds, self.apart))
        items = self.api.issues[REPOSITORY]
        if kind.startswith("open"):
            if len(items) < MAX_ISSUES:
                labels = () if kind == "open unlabelled" else ("alert",)
                new = issue(len(items) + 1, age=NOW - self.api.now, labels=labels)
                items.append(as_pull_request(new) if kind == "open a pull request" else new)
        elif items:
            ACTS[kind](self.api, items[which % len(items)]["number"])
            self.due &= self.alarming()


ACTS: dict[str, Callable[[GitHubApiFake, int], object]] = {
    "edit": lambda api, number: api.change(number, title="edited"),
    "close": lambda api, number: api.change(number, state="closed"),
    "reopen": lambda api, number: api.change(number, state="open"),
    "label": lambda api, number: api.change(number, labels=[label("alert")]),
    "unlabel": lambda api, number: api.change(number, labels=[]),
    "comment": lambda api, number: api.comment(number, "report\n<!-- rootcaused:v1:abc -->", api.me),
}

TestNoneLostNoneTwice = Repository.TestCase
TestNoneLostNoneTwice.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
