"""Runs the demonstration: world, daemon, wait until every incident is settled, compare with what is due."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO

import yaml

from agent.errors import ConfigError, Transient
from worker.cli.terminal import clean
from worker.demo.children import Child, ended_by_sigterm
from worker.demo.configuration import POLL_SECONDS, configuration
from worker.demo.outcome import Outcome, row
from worker.demo.world import Ticket, World
from worker.front import open_front
from worker.record import Record
from worker.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
SETTLE_SECONDS = 120.0
SETTLE_SECONDS_WITH_MODEL = 900.0
LOOK_SECONDS = 0.25
CYCLES = 2  # polls to wait for after the last incident is settled: a double would show by then


class Records(Protocol):
    """What the demonstration reads of the daemon: `Store` gives it."""

    def records(self, *, limit: int) -> list[Record]: ...

    def ping(self) -> None: ...


def _open_store(settings: Settings) -> Records:
    return open_front(settings).store


@dataclass(slots=True, kw_only=True)
class Demo:
    """One demonstration. `out` takes the result, `err` what is for people meanwhile."""

    model: str = "rules"
    keep: bool = False
    as_json: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    daemon: Sequence[str] = ("-m", "worker.cli.main", "run", "--config")  # the file's path is appended
    connect: Callable[[Settings], Records] = _open_store
    root: Path = ROOT
    settle_seconds: float | None = None
    look_seconds: float = LOOK_SECONDS

    def run(self) -> int:
        """0 when every incident has exactly what is due, else 1. Raises `ConfigError` when it can't begin."""
        script = self.root / "deploy" / "demo" / "world.py"
        if not script.is_file():
            raise ConfigError("the demo world is part of the repository, not of the package: run this from a checkout")
        began = self.clock()
        with ended_by_sigterm(), ExitStack() as ending:
            folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="rootcaused-demo-")))
            world = self._start_world(script, folder, ending)
            settings, daemon = self._start_daemon(world, folder, ending)
            try:
                store = self._connected(settings, daemon)
                self._follow(world, store, daemon, began)
                outcome = self._outcome(world, store)
            except (Transient, ConfigError) as error:
                self.say(f"the demonstration broke off: {error}\n--- end of the daemon's log ---\n{daemon.tail()}")
                return 1
            self._tell(world, outcome)
            if not outcome.holds:
                self.say(f"--- end of the daemon's log ---\n{daemon.tail()}")
            if self.keep:
                self._stay(world, settings, folder)
            return 0 if outcome.holds else 1

    def say(self, text: str) -> None:
        print(clean(text), file=self.err, flush=True)

    def _start_world(self, script: Path, folder: Path, ending: ExitStack) -> World:
        arguments = [str(script), "--port", "0", "--state", str(folder / "world")]
        child = Child("the demo world", arguments, folder=self.root, log=folder / "world.log", piped=True)
        ending.callback(child.stop)
        address = json.loads(child.first_line(START_SECONDS))["address"]
        self.say(f"world     {address}")
        world = World(address=address)
        ending.callback(world.close)
        return world

    def _start_daemon(self, world: World, folder: Path, ending: ExitStack) -> tuple[Settings, Child]:
        config = configuration(world.address, folder / "state", _free_port(), self.model)
        path = folder / "rootcaused.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        daemon = Child("the daemon", [*self.daemon, str(path)], folder=self.root, log=folder / "daemon.log")
        ending.callback(daemon.stop)
        self.say(f"daemon    pid {daemon.pid}, configuration {path}")
        return Settings.model_validate(config), daemon

    def _connected(self, settings: Settings, daemon: Child) -> Records:
        """The daemon brings its own Redis, so the first tries may find none."""
        until = self.clock() + START_SECONDS
        while True:
            try:
                store = self.connect(settings)
                store.ping()
                return store
            except (ConfigError, Transient) as error:
                if not daemon.alive or self.clock() > until:
                    raise Transient(f"the daemon's Redis is not there: {error}") from error
            time.sleep(self.look_seconds)

    def _follow(self, world: World, store: Records, daemon: Child, began: float) -> None:
        """One line a change of state, until all are settled or time is up; then a few polls more."""
        tickets, shown = world.tickets(), dict[str, str]()
        patience = self.settle_seconds or (SETTLE_SECONDS if self.model == "rules" else SETTLE_SECONDS_WITH_MODEL)
        until = self.clock() + patience
        while self.clock() < until:
            records = _by_ticket(tickets, store)
            for ticket in tickets:
                self._show(ticket, records.get(ticket.native), shown, self.clock() - began)
            if all(ticket.native in records and records[ticket.native].state.settled for ticket in tickets):
                self._wait_for_polls(world, daemon)
                return
            if not daemon.alive:
                raise Transient("the daemon has ended")
            time.sleep(self.look_seconds)
        self.say(f"not everything was settled after {patience:.0f} s")

    def _show(self, ticket: Ticket, record: Record | None, shown: dict[str, str], seconds: float) -> None:
        state = record.state.value if record else "unseen"
        if record is not None and shown.get(ticket.native) != state:
            shown[ticket.native] = state
            self.say(f"{seconds:6.1f} s  {ticket.source:<12}  {state:<13}  {ticket.title}")

    def _wait_for_polls(self, world: World, daemon: Child) -> None:
        before = world.polls()
        until = self.clock() + 20 * CYCLES * POLL_SECONDS
        while daemon.alive and self.clock() < until:
            # Some are asked twice a poll: for what is open, and for what changed lately.
            if all(count - before[source] >= 2 * (CYCLES + 1) for source, count in world.polls().items()):
                return
            time.sleep(self.look_seconds)
        self.say("the sources are no longer polled")

    def _outcome(self, world: World, store: Records) -> Outcome:
        tickets = world.tickets()
        records = _by_ticket(tickets, store)
        return Outcome(
            rows=[row(one, records.get(one.native), len(world.comments(one))) for one in tickets],
        )

    def _tell(self, world: World, outcome: Outcome) -> None:
        if self.as_json:
            print(json.dumps(outcome.as_json()), file=self.out, flush=True)
            return
        print(f"\n{clean(outcome.table())}\n", file=self.out)
        tickets = sorted(world.tickets(), key=lambda one: one.source == "alertmanager")  # a ticket before a sink
        sample = next(((one, text) for one in tickets for text in world.comments(one)), None)
        if sample is not None:
            ticket, text = sample
            place = "the sink" if ticket.source == "alertmanager" else ticket.source
            print(f"--- {ticket.title}: the comment, read back from {place} ---\n{clean(text)}\n", file=self.out)
        print(f"{outcome.lost} lost, {outcome.doubled} doubled", file=self.out, flush=True)

    def _stay(self, world: World, settings: Settings, folder: Path) -> None:
        server = settings.server
        try:
            self.say(f"world {world.address}   daemon http://{server.host}:{server.port}   files {folder}")
            self.say(f"re-fire: curl -X POST {world.address}/demo/incidents/memory-limit/refire   Ctrl-C ends it")
            while True:
                time.sleep(3_600)
        except KeyboardInterrupt:
            self.say("ending")


def _by_ticket(tickets: list[Ticket], store: Records) -> dict[str, Record]:
    records = store.records(limit=1_000)
    found = ((ticket.native, record) for ticket in tickets for record in records if ticket.is_of(record.alert))
    return dict(found)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
