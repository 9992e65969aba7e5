"""Whatever people, the clock, the index and the network do: every issue is seen, once, and has one report."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import RootcausedError
from sources.jira.source import Jira
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.jira_api import JiraApiFake, jira
from tests.support.reports import report

SOON = Deadline.never()
EXAMPLES = int(os.environ.get("ROOTCAUSED_EXAMPLES", "8"))
PROJECTS = ("OPS", "WEB")
Act = Callable[[], None]


class _Life(RuleBasedStateMachine):
    """`seen` and `cursor` are what the daemon keeps; everything else is Jira's."""

    cloud = True

    def __init__(self) -> None:
        super().__init__()
        self.api = JiraApiFake(cloud=self.cloud, cap=3)
        self.server = HttpServer(self.api)
        self.server.__enter__()
        self.seen: dict[str, Alert] = {}
        self.cursor = ""
        self.meanwhile: list[Act] = []  # happens between two pages
        self.api.after = self._between_pages
        self.source = self._start()

    def teardown(self) -> None:
        """The index catches up, and an hour goes by: then nothing may be missing."""
        for _ in range(3):
            self.api.now += self.api.lag + timedelta(hours=1)
            self._poll()
        self.server.__exit__(None, None, None)
        assert set(self.seen) == {f"jira:{native}" for native in self.api.issues}
        for native, issue in self.api.issues.items():
            told = self.seen[f"jira:{native}"]
            assert told.resolved == (issue["statuscategory"] == "done")
            assert told.labels["key"] == issue["key"]

    @initialize(lag=st.sampled_from([0, 10, 120]), issues=st.integers(0, 8))
    def begins(self, lag: int, issues: int) -> None:
        self.api.lag = timedelta(minutes=lag)
        for _ in range(issues):
            self.api.add()
        self._poll()

    @rule(project=st.sampled_from(PROJECTS), category=st.sampled_from(["new", "done"]), age=st.integers(0, 5))
    def an_issue_is_opened(self, project: str, category: str, age: int) -> None:
        self.api.add(project, age=timedelta(minutes=age), statuscategory=category)

    @precondition(lambda self: self.api.issues)
    @rule(data=st.data(), category=st.sampled_from(["new", "indeterminate", "done"]))
    def an_issue_changes(self, data: st.DataObject, category: str) -> None:
        self.api.change(data.draw(self._some_issue()), statuscategory=category)

    @precondition(lambda self: self.api.issues)
    @rule(data=st.data(), project=st.sampled_from(PROJECTS))
    def an_issue_is_moved(self, data: st.DataObject, project: str) -> None:
        self.api.move(data.draw(self._some_issue()), project)

    @rule(minutes=st.integers(0, 45))
    def time_goes_by(self, minutes: int) -> None:
        self.api.now += timedelta(minutes=minutes)

    @rule(hours=st.sampled_from([-8, 0, 5, 13]))
    def our_users_zone_changes(self, hours: int) -> None:
        self.api.zone = type(self.api.zone)(timedelta(hours=hours, minutes=30))

    @rule()
    def a_poll(self) -> None:
        self._poll()

    @precondition(lambda self: self.api.issues)
    @rule(data=st.data(), act=st.sampled_from(["close", "move", "open"]))
    def a_poll_while_things_change(self, data: st.DataObject, act: str) -> None:
        natives = data.draw(st.lists(self._some_issue(), min_size=1, max_size=4, unique=True))
        self.meanwhile = [lambda: self._happens(act, natives)]
        self._poll()
        self.meanwhile = []

    @rule(page=st.integers(0, 3))
    def a_poll_that_breaks_off(self, page: int) -> None:
        left = iter([None] * page)
        self.api.before = lambda request: next(left, Reply(cut="before")) if "/search" in request.path else None
        self._poll()
        self.api.before = lambda request: None

    @rule()
    def the_daemon_restarts(self) -> None:
        self.source = self._start()

    @precondition(lambda self: self.seen)
    @rule(data=st.data(), fault=st.sampled_from(["", "before it acts", "after it acts"]))
    def a_report_is_written(self, data: st.DataObject, fault: str) -> None:
        alert = self.seen[data.draw(st.sampled_from(sorted(self.seen)))]
        after = self.api.after
        if fault == "before it acts":
            self.api.before = lambda request: Reply(cut="before") if _writes(request) else None
        if fault == "after it acts":
            self.api.after = lambda request, reply: Reply(cut="before") if _writes(request) else reply
        self._publish(alert)
        self.api.before, self.api.after = (lambda request: None), after
        self._publish(alert)
        assert len(self.api.words(alert.id)) == 1

    @invariant()
    def no_issue_has_two_reports(self) -> None:
        assert all(len(comments) <= 1 for comments in self.api.comments.values())

    def _happens(self, act: str, natives: list[str]) -> None:
        for native in natives:
            match act:
                case "close":
                    self.api.change(native, statuscategory="done")
                case "move":
                    self.api.move(native, "WEB")
                case _:
                    self.api.add(age=timedelta(0))

    def _some_issue(self) -> st.SearchStrategy[str]:
        return st.sampled_from(sorted(self.api.issues))

    def _start(self) -> Jira:
        return jira(self.server.url, cloud=self.cloud, projects=PROJECTS)

    def _poll(self) -> None:
        met: list[str] = []
        try:
            for page in self.source.poll(self.cursor, deadline=SOON):
                assert page.broken == ()
                met += [alert.id for alert in page.alerts]
                for alert in page.alerts:
                    self._admit(alert)
                self.cursor = page.cursor or self.cursor
        except RootcausedError:
            return  # the next tick begins at the same cursor
        finally:
            assert len(met) == len(set(met)), "an issue came twice in one poll"

    def _admit(self, alert: Alert) -> None:
        """As the store does: by key; an older state does not replace a newer one."""
        before = self.seen.get(alert.key)
        assert alert.updated_at is not None
        if before is None or before.updated_at is None or alert.updated_at >= before.updated_at:
            self.seen[alert.key] = alert

    def _publish(self, alert: Alert) -> None:
        try:
            previous = self.source.find(alert, deadline=SOON)
            self.source.publish(alert, report(), previous=previous, deadline=SOON)
        except RootcausedError:
            return

    def _between_pages(self, request: Request, reply: Reply) -> Reply:
        if "/search" in request.path and self.meanwhile:
            self.meanwhile.pop(0)()
        return reply


def _writes(request: Request) -> bool:
    return request.method in ("POST", "PUT") and "/comment" in request.path


class _DataCenterLife(_Life):
    cloud = False


TestCloud = _Life.TestCase
TestDataCenter = _DataCenterLife.TestCase
TestCloud.settings = TestDataCenter.settings = settings(max_examples=EXAMPLES, stateful_step_count=15, deadline=None)
