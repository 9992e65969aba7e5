"""The demonstration from end to end, with a small program in the daemon's place."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.alert import Alert
from agent.errors import ConfigError
from worker.demo.children import descendants
from worker.demo.run import Demo
from worker.demo.world import World
from worker.record import Record, State
from worker.settings import Settings

DAEMON = Path(__file__).with_name("daemon.py")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Store:
    """Every ticket of the world is settled once all comments that are due are there."""

    def __init__(self, settings: Settings, *, settles: bool = True) -> None:
        source = settings.sources["pagerduty"]
        assert source.kind == "pagerduty"
        self._world = World(address=source.url.removesuffix("/pagerduty"))
        self._settles = settles

    def ping(self) -> None:
        pass

    def records(self, *, limit: int) -> list[Record]:
        tickets = self._world.tickets()
        done = self._settles and all(self._world.comments(one) for one in tickets if one.due)
        self._world.close()
        state = State.WRITTEN if done else State.INVESTIGATING
        return [self._record(one, state) for one in tickets]

    @staticmethod
    def _record(ticket, state):
        native, starts = ticket.native, ticket.fired_at
        alert = Alert(source=ticket.source, id=native, title=ticket.title, fingerprint=native, starts_at=starts)
        return Record(key=alert.key, source=alert.source, state=state, alert=alert, first_seen_at=NOW, updated_at=NOW)


def demo(count, **more):
    more.setdefault("connect", Store)
    return Demo(daemon=(str(DAEMON), count), out=io.StringIO(), err=io.StringIO(), look_seconds=0.02, **more)


def told(one):
    return one.out.getvalue(), one.err.getvalue()


def test_one_comment_an_incident_is_success_and_only_the_result_is_on_stdout(capsys):
    one = demo("1", as_json=True)
    assert one.run() == 0
    assert capsys.readouterr().out == ""
    out, err = told(one)
    result = json.loads(out)
    assert (len(result["incidents"]), result["lost"], result["doubled"]) == (12, 0, 0)
    assert "investigating" in err or "written" in err
    folder = re.search(r"configuration (\S+)/rootcaused.yaml", err)
    assert folder is not None
    assert not Path(folder.group(1)).exists()


def test_two_comments_an_incident_are_told_and_fail():
    one = demo("2")
    assert one.run() == 1
    out, _ = told(one)
    assert out.startswith("\nalert")
    assert "0 lost, 11 doubled" in out
    assert "It is the disk.\n" in out
    assert "\x1b" not in out  # the comment tries to turn the terminal red


def test_what_is_never_settled_fails_after_the_deadline():
    one = demo("0", as_json=True, settle_seconds=0.3, connect=lambda settings: Store(settings, settles=False))
    assert one.run() == 1
    out, err = told(one)
    assert json.loads(out)["lost"] == 11
    assert "not everything was settled" in err


def test_a_daemon_that_ends_is_told_with_the_end_of_its_log():
    one = demo("crash", as_json=True)
    assert one.run() == 1
    out, err = told(one)
    assert out == ""
    assert "redis-server: not found" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_children_and_removes_the_files(number):
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from tests.worker.demo.test_run import DAEMON, Store; from worker.demo.run import Demo;"
        "sys.exit(Demo(daemon=(str(DAEMON), '0'), connect=Store).run())"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=DAEMON.parents[3], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = "".join(iter_until(process.stderr, "investigating"))
        children = [process.pid, *descendants(process.pid)]
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode != 0
    assert len(children) == 3
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
    folder = re.search(r"configuration (\S+)/rootcaused.yaml", told)
    assert folder is not None
    assert not Path(folder.group(1)).exists()


def iter_until(lines, word):
    """Lines up to the first that has the word."""
    for line in lines:
        yield line
        if word in line:
            return


def test_without_the_repository_there_is_no_demo_and_it_says_why(tmp_path):
    with pytest.raises(ConfigError, match="run this from a checkout"):
        demo("1", root=tmp_path).run()
