"""A call that never returns is left behind; one that does brings back what it gave or raised."""

from __future__ import annotations

import contextvars
import threading

import pytest

from agent.bounded import Lane, start, wait
from agent.deadline import Deadline


def test_what_a_call_gives_or_raises_comes_back() -> None:
    given, raised = start(lambda: 7, "a"), start(lambda: 1 // 0, "b")
    assert wait(given, Deadline.after(5)) is None
    assert given.result() == 7
    assert isinstance(wait(raised, Deadline.never()), ZeroDivisionError)


def test_a_call_out_of_time_is_left_behind_in_a_thread_that_ends_with_the_process() -> None:
    release = threading.Event()
    hung = start(release.wait, "hung-call")
    with pytest.raises(TimeoutError):
        wait(hung, Deadline.after(0.01))
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "hung-call"] == [True]
    release.set()
    assert wait(hung, Deadline.after(5)) is None


def test_a_call_sees_the_context_it_was_made_in() -> None:
    trace = contextvars.ContextVar("trace", default="")
    trace.set("inv-1")
    future = start(trace.get, "a")
    assert wait(future, Deadline.after(5)) is None
    assert future.result() == "inv-1"


def test_a_lane_uses_one_thread_until_a_call_does_not_return_and_ends_it_when_it_is_gone() -> None:
    release = threading.Event()
    lane = Lane("lane-of-this-test")
    threads = [lane.start(threading.current_thread).result(5) for _ in range(3)]
    assert len(set(threads)) == 1
    hung = lane.start(release.wait)
    other = lane.start(threading.current_thread).result(5)
    assert other is not threads[0]
    assert isinstance(wait(lane.start(lambda: 1 // 0), Deadline.after(5)), ZeroDivisionError)
    release.set()
    assert wait(hung, Deadline.after(5)) is None
    del lane
    for thread in {threads[0], other}:
        thread.join(5)
        assert not thread.is_alive()
