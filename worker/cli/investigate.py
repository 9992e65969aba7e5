"""`ask` and `investigate`: one investigation in the foreground, without queue or Redis."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.exits import Absent, Misused, Status
from worker.cli.options import AsJson, ConfigFile, settings_for_people
from worker.cli.terminal import one_line, say, show, show_json

if TYPE_CHECKING:
    from agent.alert import Alert
    from agent.events import Event
    from agent.report import Report
    from worker.settings import Settings

FETCH_SECONDS = 30.0
MAX_FILE_BYTES = 5_000_000
MAX_SHOWN_CHARS = 200_000
MAX_PROGRESS_CHARS = 160


def ask(
    question: Annotated[str, typer.Argument(help='Such as "why is checkout slow since noon?"', show_default=False)],
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Investigate a question, without any ticket.

    The report is printed; progress goes to stderr."""
    from datetime import UTC, datetime
    from secrets import token_hex

    from agent.alert import Alert

    if not question.strip():
        raise Misused("ask: the question is empty")
    settings = settings_for_people(config)
    now = datetime.now(UTC)
    _run(settings, Alert(source="ask", id=token_hex(4), title=question, body=question, starts_at=now), False, as_json)


def investigate(
    key: Annotated[str, typer.Argument(metavar="[SOURCE:ID]", help="The alert, fetched from its source.")] = "",
    file: Annotated[
        Path | None, typer.Option("--file", help="An alert as JSON instead; - is stdin.", show_default=False)
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the report back to the ticket.")] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Investigate one alert here and now.

    The report is printed; progress goes to stderr."""
    if bool(key) == bool(file):
        raise Misused("investigate: give SOURCE:ID or --file, one of them")
    settings = settings_for_people(config)
    alert = _read(file) if file else _fetch(settings, key)
    _run(settings, alert, write, as_json)


def _run(settings: Settings, alert: Alert, write: bool, as_json: bool) -> None:
    """Exits with PARTIAL when a limit or a failed model ended the run before an answer."""
    from agent.report import Stop
    from worker.wiring import investigate_once

    report = investigate_once(settings, alert, write=write, on_event=_progress)
    if as_json:
        show_json(report.model_dump(mode="json", by_alias=True))
    else:
        show(readable(report))
    raise typer.Exit(Status.OK if report.stop is Stop.ANSWERED else Status.PARTIAL)


def readable(report: Report) -> str:
    from sources.render.plain import plain

    return plain(report, MAX_SHOWN_CHARS)


def _progress(event: Event) -> None:
    if line := telling(event):
        say(line)


def telling(event: Event) -> str:
    """One line for a person about what just happened; "" where nothing is worth telling."""
    from agent import events

    match event:
        case events.Started():
            return f"model {event.model}"
        case events.ToolStarted():
            parameters = ", ".join(f"{name}={value}" for name, value in event.params.items())
            return f"{event.ref:>4}  {event.tool}({one_line(parameters)[:MAX_PROGRESS_CHARS]})"
        case events.ToolFinished():
            return f"{event.ref:>4}  {event.status}, {event.result_chars} characters, {event.seconds:.1f} s"
        case events.ModelFailed():
            return f"model {event.model} failed: {one_line(event.error)[:MAX_PROGRESS_CHARS]}"
        case events.LimitReached():
            return f"stopped: {event.limit}"
        case _:
            return ""


def _fetch(settings: Settings, key: str) -> Alert:
    from agent.deadline import Deadline
    from sources.catalog import build_source

    name, colon, native_id = key.partition(":")
    if not colon or not native_id:
        raise Misused(f"{key}: write SOURCE:ID, such as pagerduty:Q1ABC")
    if name not in settings.sources:
        raise Absent(f"there is no source {name!r}; there are: {', '.join(sorted(settings.sources)) or 'none'}")
    source = build_source(name, settings.sources[name])
    alert = source.fetch(native_id, deadline=Deadline.after(FETCH_SECONDS))
    if alert is None:
        raise Absent(f"{key}: {name} has no such alert, or no longer")
    return alert


def _read(file: Path) -> Alert:
    from pydantic import ValidationError

    from agent.alert import Alert

    try:
        if str(file) == "-":
            text = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with file.open("rb") as stream:
                text = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Misused(f"{file}: {error.strerror}") from error
    if len(text) > MAX_FILE_BYTES:
        raise Misused(f"{file}: larger than {MAX_FILE_BYTES} bytes")
    try:
        return Alert.model_validate_json(text)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ")
            for one in error.errors(include_input=False, include_url=False)
        ]
        raise Misused(f"{file}: not an alert: {'; '.join(faults)}") from None
