"""What every destination must hold; a test module subclasses `DestinationContract` for its system."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator

import pytest

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from sources.port import Destination
from tests.support.alerts import alert
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.reports import hostile, report

SOON = Deadline.never()
WRITES = ("POST", "PUT", "PATCH")
STATUSES: list[tuple[int, type[RootcausedError]]] = [
    (301, Permanent), (302, Permanent), (307, Permanent), (400, Permanent), (401, Permanent), (403, Permanent),
    (404, Permanent), (408, Transient), (413, Permanent), (422, Permanent), (429, Transient), (500, Transient),
    (502, Transient), (503, Transient), (504, Transient),
]  # fmt: skip


class DestinationContract:
    """`secrets` may show in no error; the first is sent, so a system may echo it. `reads_back`: `find` finds.

    `subject` is the alert reports are about, with an id of the form the system has.
    """

    secrets: tuple[str, ...] = ()
    reads_back = False
    subject: Alert = alert()

    def make(self, url: str) -> Destination:
        raise NotImplementedError

    def system(self) -> Callable[[Request], Reply]:
        """A fresh, healthy system."""
        raise NotImplementedError

    def written(self, server: HttpServer) -> list[str]:
        """What people see of us there, or the identities a receiver tells repeats by."""
        raise NotImplementedError

    @pytest.fixture
    def server(self) -> Iterator[HttpServer]:
        with HttpServer(self.system()) as running:
            yield running

    @pytest.fixture
    def destination(self, server: HttpServer) -> Destination:
        return self.make(server.url)

    @staticmethod
    def on_write(server: HttpServer, reply: Reply, *, act_first: bool = False) -> None:
        """The next write gets `reply`; the one after is served."""
        healthy = server.answer

        def answer(request: Request) -> Reply:
            if request.method not in WRITES:
                return healthy(request)
            server.answer = healthy
            if act_first:
                healthy(request)
            return reply

        server.answer = answer

    @staticmethod
    def writes(server: HttpServer) -> list[Request]:
        return [request for request in server.requests if request.method in WRITES]

    def publish_as_the_pipeline_does(self, destination: Destination) -> None:
        previous = destination.find(self.subject, deadline=SOON)
        destination.publish(self.subject, report(), previous=previous, deadline=SOON)

    @pytest.mark.parametrize(("status", "kind"), STATUSES)
    def test_the_status_of_a_write_decides_who_must_act(self, server, destination, status, kind) -> None:
        self.on_write(server, Reply(status, {"error": "refused"}, {"Location": "http://elsewhere.example/"}))
        with pytest.raises(kind):
            destination.publish(self.subject, report(), previous=None, deadline=SOON)
        assert len(self.writes(server)) == 1

    def test_a_rate_limit_says_how_long_to_wait(self, server, destination) -> None:
        self.on_write(server, Reply(429, b"slow down", {"Retry-After": "17"}))
        with pytest.raises(Transient) as caught:
            destination.publish(self.subject, report(), previous=None, deadline=SOON)
        assert caught.value.retry_after == 17

    @pytest.mark.parametrize("fault", ["echo", "cut", 500, 401, 403, 302])
    def test_no_error_holds_a_secret(self, server, destination, fault) -> None:
        echo = self.secrets[0]
        self.on_write(
            server,
            Reply(500, echo.encode())
            if fault == "echo"
            else Reply(cut="before")
            if fault == "cut"
            else Reply(int(fault), echo.encode(), {"Location": f"http://x.example/?{echo}"}),
        )
        with pytest.raises(RootcausedError) as caught:
            destination.publish(self.subject, report(), previous=None, deadline=SOON)
        shown = "".join(traceback.format_exception(caught.value)) + repr(destination)
        assert [secret for secret in self.secrets if secret in shown] == []

    def test_an_error_can_be_pickled(self, server, destination) -> None:
        self.on_write(server, Reply(429, b"", {"Retry-After": "17"}))
        with pytest.raises(Transient) as caught:
            destination.publish(self.subject, report(), previous=None, deadline=SOON)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.retry_after) == (str(caught.value), 17)

    @pytest.mark.parametrize("act_first", [False, True], ids=["before it acted", "after it acted"])
    @pytest.mark.parametrize("cut", ["before", "body"])
    def test_a_lost_reply_is_transient_and_the_next_try_leaves_one_report(
        self, server, destination, act_first, cut
    ) -> None:
        self.on_write(server, Reply(200, {"padding": "x" * 1000}, cut=cut), act_first=act_first)
        with pytest.raises(Transient):
            self.publish_as_the_pipeline_does(destination)
        assert len(self.writes(server)) == 1
        self.publish_as_the_pipeline_does(destination)
        assert len(set(self.written(server))) == 1
        if self.reads_back:
            assert len(self.written(server)) == 1

    def test_what_was_written_is_found_again(self, server, destination) -> None:
        assert destination.find(self.subject, deadline=SOON) is None
        receipt = destination.publish(self.subject, report(), previous=None, deadline=SOON)
        assert receipt.investigation == report().run.investigation
        found = destination.find(self.subject, deadline=SOON)
        if self.reads_back:
            assert found == receipt
        else:
            assert found is None

    def test_nothing_is_sent_when_no_time_is_left(self, server, destination) -> None:
        with pytest.raises(Transient):
            destination.publish(self.subject, report(), previous=None, deadline=Deadline.after(-1))
        assert self.writes(server) == []

    def test_hostile_text_arrives_inert(self, server, destination) -> None:
        destination.publish(self.subject, hostile(), previous=None, deadline=SOON)
        self.assert_inert(server)

    def assert_inert(self, server: HttpServer) -> None:
        raise NotImplementedError
