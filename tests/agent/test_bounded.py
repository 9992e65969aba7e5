"""A call that never returns is left behind; one that does brings back what it gave or raised."""

from __future__ import annotations

import contextvars
import threading

import pytest

from agent.bounded import start, wait
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
