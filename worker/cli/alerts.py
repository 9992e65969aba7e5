"""`alerts`, `show`, `requeue`, `sweep`: the records of a running daemon."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli.exits import Absent, Misused, Status
from worker.cli.options import AsJson, ConfigFile, Limit, Since, front_of, settings_for_people
from worker.cli.terminal import age, one_line, say, show, show_json, show_table, since

if TYPE_CHECKING:
    from worker.front import Front
    from worker.record import Admission, Record, State

States = Annotated[
    list[str] | None, typer.Option("--state", help="In this state; may be given again.", show_default=False)
]
FromSource = Annotated[str, typer.Option("--source", help="Of this source.", show_default=False)]

Explain = Annotated[
    str,
    typer.Option(
        "--explain", metavar="SOURCE:ID", help="Every decision on this alert, with its inputs.", show_default=False
    ),
]


def alerts(
    state: States = None,
    source: FromSource = "",
    since_: Since = "",
    limit: Limit = 100,
    explain: Explain = "",
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List alert records, the last changed first.

    With --explain: why one alert was investigated, left to another one's report, or skipped."""
    from worker.records import summary

    front = front_of(settings_for_people(config))
    if explain:
        _explain(front, explain, as_json)
        return
    now = datetime.now(UTC)
    records = front.store.records(_states(state), source=source, since=since(since_, now), limit=limit)
    if as_json:
        show_json([summary(record) for record in records])
    else:
        rows = [_row(record, now) for record in records]
        show_table(("KEY", "STATE", "SEVERITY", "OUTCOME", "CHANGED", "TITLE"), rows)
        counts = front.store.counts()
        say(", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no records")


def show_alert(
    key: Annotated[str, typer.Argument(metavar="SOURCE:ID", show_default=False)],
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show an alert's record, history and report."""
    from worker.records import details

    store = front_of(settings_for_people(config)).store
    record = store.get(key)
    if record is None:
        raise Absent(f"{key}: no such alert; `rootcaused alerts` lists them")
    report, events = store.report(record.investigation), store.events(record.investigation)
    audit = store.audit(key)
    if as_json:
        written = report.model_dump(mode="json", by_alias=True) if report else None
        journal = [event.model_dump(mode="json") for event in events]
        show_json({**details(record), "audit": audit, "report": written, "events": journal})
        return
    show("\n".join(_head(record)))
    show("\nWHAT HAPPENED\n" + "\n".join(_moments(audit)))
    if events:
        from worker.cli.investigate import telling

        show("\nINVESTIGATION\n" + "\n".join(line for event in events if (line := telling(event))))
    if report:
        from worker.cli.investigate import readable

        show("\nREPORT\n" + readable(report))


def requeue(
    keys: Annotated[list[str] | None, typer.Argument(metavar="[SOURCE:ID]...", show_default=False)] = None,
    state: States = None,
    source: FromSource = "",
    since_: Since = "",
    limit: Limit = 100,
    instructions: Annotated[
        str, typer.Option("--instructions", help="Told to the investigator.", show_default=False)
    ] = "",
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Investigate alerts again.

    The ones named, or those that --state, --source and --since select."""
    selecting = bool(state or source or since_)
    if bool(keys) == selecting:
        raise Misused("requeue: name alerts, or select them by --state, --source, --since; one of the two")
    front = front_of(settings_for_people(config))
    if not keys:
        start = since(since_, datetime.now(UTC))
        keys = [record.key for record in front.store.records(_states(state), source=source, since=start, limit=limit)]
    _finish(_requeued(front, keys, instructions), as_json, nothing="nothing matches")


def sweep(
    source: Annotated[str, typer.Argument(help="The configured source.", show_default=False)],
    query: Annotated[str, typer.Option("--query", help="In the source's own query language.", show_default=False)],
    limit: Limit = 50,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Queue the tickets that match a query.

    They wait behind everything else."""
    settings = settings_for_people(config)
    if source not in settings.sources:
        raise Absent(f"there is no source {source!r}; there are: {', '.join(sorted(settings.sources)) or 'none'}")
    front = front_of(settings)
    say(f"asking {source} ...")
    _finish(
        ((one.key, one, "") for one in front.sweep(source, query, limit=limit)), as_json, nothing="no ticket matches"
    )


Outcome = tuple[str, "Admission | None", str]  # key, what became of it, or why nothing did


def _requeued(front: Front, keys: Iterable[str], instructions: str) -> Iterator[Outcome]:
    """One that fails leaves the others alone; Redis being away ends it."""
    from agent.errors import Permanent

    for key in keys:
        try:
            yield key, front.requeue(key, instructions=instructions), ""
        except Permanent as error:
            yield key, None, str(error)


def _finish(outcomes: Iterable[Outcome], as_json: bool, *, nothing: str) -> None:
    """Tell each as it comes. All failed: NOT_FOUND; some: PARTIAL."""
    from worker.records import outcome

    told: list[dict[str, Any]] = []
    for key, admission, why in outcomes:
        told.append(outcome(admission) if admission else {"key": key, "error": why})
        if not as_json:
            show(_told(key, admission, why))
    failed = sum("error" in one for one in told)
    if as_json:
        show_json(told)
    elif not told:
        say(nothing)
    if failed:
        raise typer.Exit(Status.NOT_FOUND if failed == len(told) else Status.PARTIAL)


def _told(key: str, admission: Admission | None, why: str) -> str:
    if admission is None:
        return one_line(f"{key}  not done: {why}")
    reason = f" ({admission.reason})" if admission.reason else ""
    return one_line(f"{key}  {admission.verdict}, now {admission.state}{reason}, generation {admission.generation}")


def _states(names: list[str] | None) -> list[State]:
    from worker.record import State

    known = [state.value for state in State]
    for name in names or []:
        if name not in known:
            raise Misused(f"--state {name}: there are {', '.join(known)}")
    return [State(name) for name in names or []]


def _row(record: Record, now: datetime) -> tuple[str, ...]:
    reason = f" ({record.reason})" if record.reason else ""
    return (
        record.key,
        record.state.value,
        record.alert.severity.value,
        record.outcome or "-",
        age(record.updated_at, now),
        f"{record.alert.title}{reason}",
    )


def _explain(front: Front, key: str, as_json: bool) -> None:
    """What was decided when the alert was seen, and what would be decided now."""
    from worker.front import NotFound
    from worker.records import explanation

    try:
        told = explanation(key, front.explain(key))
    except NotFound as error:
        raise Absent(str(error)) from error
    if as_json:
        show_json(told)
        return
    reason = f" ({told['reason']})" if told["reason"] else ""
    show(one_line(f"{key}  {told['state'] or 'not recorded'}{reason}"))
    if told["then"]:
        show(f"\nDECIDED WHEN IT WAS SEEN (fired {one_line(told['then']['at'])})")
        show("\n".join(_rulings(told["then"]["rulings"])))
    show("\nIF IT WERE SEEN FOR THE FIRST TIME NOW")
    show("\n".join(_rulings(told["now"]["rulings"])))


def _rulings(rulings: Iterable[dict[str, Any]]) -> Iterator[str]:
    for one in rulings:
        inputs = json.dumps(one["inputs"], ensure_ascii=False)
        yield one_line(f"{'->' if one['applies'] else '  '} {one['rule']:<12}{one['says']}  {inputs}")


def _head(record: Record) -> Iterator[str]:
    yield f"{one_line(record.alert.title)}"
    reason = f" ({record.reason})" if record.reason else ""
    pairs = {
        "key": record.key,
        "state": f"{record.state.value}{reason}",
        "severity": record.alert.severity.value,
        "status": record.alert.status.value,
        "generation": str(record.generation),
        "attempts": f"{record.attempts}, write {record.write_attempts}",
        "lead": record.lead,
        "outcome": f"{record.outcome}, confidence {record.confidence}" if record.outcome else "",
        "investigation": record.investigation,
        "cost": f"{record.tokens} tokens, {record.cost_usd:.4f} USD" if record.tokens else "",
        "url": record.url,
    }
    yield from (f"{name + ':':<15}{one_line(value)}" for name, value in pairs.items() if value)


def _moments(audit: Iterable[dict[str, Any]]) -> Iterator[str]:
    for entry in audit:
        at = datetime.fromtimestamp(int(entry["at"]) / 1000, UTC)
        reason = f" ({entry['reason']})" if entry.get("reason") else ""
        yield one_line(f"{at:%Y-%m-%d %H:%M:%S} UTC  generation {entry.get('generation')}  {entry['state']}{reason}")
