"""What a report says and in which order, independent of any markup; each target turns this into its own."""

from __future__ import annotations

import urllib.parse
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.report import Evidence, NextStep, Outcome, Report, Stop
from sources.port import marker
from sources.render.prose import Block, Code, Paragraph, Span, bullets, parse_prose

FOLD_CHARS = 900
MAX_QUOTE_LINES = 12

OUTCOMES = {
    Outcome.CONFIRMED: "Confirmed cause",
    Outcome.LIKELY: "Likely cause",
    Outcome.INCONCLUSIVE: "Inconclusive",
    Outcome.NOT_AN_ISSUE: "Not an issue",
    Outcome.DUPLICATE_OF: "Duplicate",
    Outcome.RESOLVED_BEFORE_START: "Resolved before the investigation started",
}
STOPS = {
    Stop.STEP_LIMIT: "Incomplete: the limit of steps was reached.",
    Stop.TOKEN_LIMIT: "Incomplete: the limit of tokens was reached.",
    Stop.TIME_LIMIT: "Incomplete: the time limit was reached.",
    Stop.COST_LIMIT: "Incomplete: the cost limit was reached.",
    Stop.MODEL_FAILED: "Incomplete: the language model failed.",
}


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """`title` and `above` (at most 900 characters together) tell it in 20 seconds; the rest can be folded away."""

    title: str
    above: tuple[Block, ...]
    below: tuple[Section, ...]
    footer: tuple[str, ...]
    marker: str
    hosts: frozenset[str]  # where links may go


def compose(report: Report, hosts: Collection[str] = ()) -> Document:
    """The document of a report. Links may go to `hosts` and to where the report's own evidence was read."""
    if report.outcome is Outcome.DUPLICATE_OF:
        return _pointer(report, hosts)
    title = f"{OUTCOMES[report.outcome]}: {_clip(_one_line(report.headline) or report.alert.title, 160)}"
    sections = [
        Section("Cause", tuple(_cause(report))),
        Section("Analysis", tuple(parse_prose(report.body))),
        Section("Next steps", tuple(_steps(report.next_steps))),
        Section("Timeline (UTC)", _bullets(_timeline(report))),
        Section("Recent changes", _bullets(_changes(report))),
        Section("Evidence", tuple(_evidence(report.evidence))),
        Section("Ruled out", _bullets(_ruled_out(report))),
        Section("Not checked", _bullets(_not_checked(report))),
        Section("Related", _bullets(_related(report))),
    ]
    return Document(
        title=title,
        above=tuple(_above(report, FOLD_CHARS - len(title))),
        below=tuple(section for section in sections if section.blocks),
        footer=tuple(_footer(report)),
        marker=marker(report.run.investigation),
        hosts=frozenset(host.lower() for host in hosts) | _evidence_hosts(report),
    )


def _pointer(report: Report, hosts: Collection[str]) -> Document:
    """An alert that belongs to another one's investigation gets one line and the link, which is the address that a
    ticket system gave our own note: not hostile."""
    urls = [item.url for item in report.related if item.url]
    links = [Paragraph((Span("See "), Span("its report", url=url))) for url in urls]
    return Document(
        title=f"{OUTCOMES[report.outcome]}: {_clip(_one_line(report.headline), 160)}",
        above=tuple(links[:1]),
        below=(),
        footer=(f"Wrong? Run: rootcaused requeue {_clip(_one_line(report.alert.key), 120)}",),
        marker=marker(report.run.investigation),
        hosts=frozenset(host.lower() for host in hosts) | _hosts_of(urls),
    )


def moment(at: datetime | None, fired_at: datetime | None = None) -> str:
    """`2031-02-03 04:05:06 UTC (3 min before the alert)`; "" for no time."""
    if at is None:
        return ""
    at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    text = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    if fired_at is None:
        return text
    seconds = (at - fired_at).total_seconds()
    if abs(seconds) < 1:
        return f"{text} (at the alert)"
    return f"{text} ({_duration(abs(seconds))} {'after' if seconds > 0 else 'before'} the alert)"


def confidence(report: Report) -> str:
    """`medium confidence (2 decisive, 0 contradicting; held down: tool errors)`."""
    reasons = "; ".join(filter(None, (report.confidence.basis, _prefixed("held down: ", report.confidence.capped_by))))
    return f"{report.confidence.level} confidence" + (f" ({reasons})" if reasons else "")


def _above(report: Report, room: int) -> Iterable[Block]:
    """One short paragraph a question; each has its share of the room, so that a long one can't push out the others."""
    state = " ".join(filter(None, (f"{confidence(report).capitalize()}.", STOPS.get(report.stop, ""))))
    yield Paragraph((Span(_clip(state, 150)),))
    room -= 150
    parts = [
        ("Impact", _impact(report), 0.24),
        ("Why", _why(report), 0.34),
        ("Ruled out", "; ".join(_ruled_out(report, short=True)), 0.1),
        ("Not checked", "; ".join(_not_checked(report)), 0.1),
        ("Next", _next(report), 0.22),
    ]
    for name, text, share in parts:
        if text:
            yield Paragraph((Span(f"{name}: ", "strong"), Span(_clip(text, int(room * share) - len(name) - 4))))


def _impact(report: Report) -> str:
    impact = report.impact
    if impact == type(impact)():
        return ""
    facing = {"yes": "users notice", "no": "users do not notice", "unknown": ""}[impact.user_facing]
    symptom = "symptom confirmed" if impact.symptom_confirmed else "symptom not confirmed"
    since = _prefixed("since ", moment(impact.since, report.alert.fired_at))
    until = _prefixed("until ", moment(impact.until, report.alert.fired_at))
    return ", ".join(filter(None, (_one_line(impact.affected), _one_line(impact.scope), since, until, facing, symptom)))


def _why(report: Report) -> str:
    cause = report.root_cause
    if cause is None:
        return "no cause established" if report.outcome is Outcome.INCONCLUSIVE else ""
    cited = list(dict.fromkeys([*cause.evidence, *(ref for link in report.causal_chain for ref in link.evidence)]))
    text = _one_line(": ".join(filter(None, (cause.component, cause.mechanism))))
    return f"{_clip(text, 190)}{_refs(tuple(cited[:6]))}" if text else ""


def _next(report: Report) -> str:
    return "; ".join(f"{_mark(step)}{_one_line(step.title)}" for step in _ordered(report.next_steps)[:3])


def _cause(report: Report) -> Iterable[Block]:
    cause = report.root_cause
    if cause is None:
        return
    text = ": ".join(filter(None, (cause.component, cause.mechanism))) or "not named"
    yield Paragraph((Span(f"{_one_line(text)}{_refs(cause.evidence)}"),))
    kind = ", ".join(
        filter(None, (cause.category, "" if cause.trigger == "unknown" else f"triggered by {cause.trigger}"))
    )
    onset = _prefixed("began ", moment(cause.onset_at, report.alert.fired_at))
    if facts := "; ".join(filter(None, (kind, onset))):
        yield Paragraph((Span(_one_line(facts)),))
    links = [f"{i.source} → {i.target}{_prefixed(': ', i.relation)}{_refs(i.evidence)}" for i in report.causal_chain]
    yield from _bullets(map(_one_line, links))


def _steps(steps: Iterable[NextStep]) -> Iterable[Block]:
    for number, step in enumerate(_ordered(steps), 1):
        why = _prefixed(" — ", _one_line(step.why))
        yield Paragraph((Span(f"{number}. {_mark(step)}"), Span(_one_line(step.title), "strong"), Span(why)))
        if step.command.strip():
            yield Code(step.command.strip())
        facts = [_prefixed("risk: ", step.risk), _undo(step)]
        if step.mutating and not step.precondition_checked:
            facts.append("its precondition was not checked")
        if text := "; ".join(filter(None, facts)):
            yield Paragraph((Span(_one_line(text)),))


def _undo(step: NextStep) -> str:
    if step.mutating:
        return f"undo: {step.undo}" if step.undo.strip() else "no undo known"
    return ""


def _mark(step: NextStep) -> str:
    """Mutating commands are never run by us, and nobody should run one by mistake."""
    return "[CHANGES THINGS] " if step.mutating else ""


def _ordered(steps: Iterable[NextStep]) -> list[NextStep]:
    """Read-only first."""
    return sorted(steps, key=lambda step: step.mutating)


def _timeline(report: Report) -> Iterable[str]:
    for item in sorted(report.timeline, key=lambda item: item.at.timestamp() if item.at else 0.0):
        at = moment(item.at, report.alert.fired_at) or "time unknown"
        yield f"{at}: {_one_line(item.what)}{_refs(item.evidence)}"


def _changes(report: Report) -> Iterable[str]:
    for change in report.recent_changes:
        at = _prefixed(" at ", moment(change.at, report.alert.fired_at))
        yield f"{_one_line(change.what)}{at}; {change.relation}{_prefixed(': ', change.url)}"


def _evidence(evidence: Iterable[Evidence]) -> Iterable[Block]:
    for item in evidence:
        proof = "" if item.verified else " [not verified]"
        about = ", ".join(filter(None, (item.kind, item.weight, item.tool, moment(item.captured_at))))
        link = (Span(" "), Span("open", url=item.url)) if item.url else ()
        yield Paragraph((Span(item.id, "strong"), Span(f"{proof} ({about})"), *link))
        if item.query:
            yield Paragraph((Span("query: "), Span(_clip(_one_line(item.query), 500), "code")))
        if item.quote.strip():
            yield Code("\n".join(item.quote.strip().splitlines()[:MAX_QUOTE_LINES]))


def _ruled_out(report: Report, *, short: bool = False) -> Iterable[str]:
    for item in report.ruled_out:
        why = "" if short else _prefixed(" — ", item.why)
        yield f"{_one_line(item.hypothesis + why)}{_refs(item.evidence)}"


def _not_checked(report: Report) -> Iterable[str]:
    yield from (f"{_one_line(item.what)} ({_one_line(item.reason).replace('_', ' ')})" for item in report.not_checked)
    yield from (f"{_one_line(name)} (could not be reached)" for name in report.sources_failed)


def _related(report: Report) -> Iterable[str]:
    for item in report.related:
        kind = item.kind.replace("_", " ")
        yield f"{kind} {_one_line(item.id)}{_prefixed(': ', _one_line(item.why))}{_prefixed(' ', item.url)}"


def _footer(report: Report) -> Iterable[str]:
    run = report.run
    if run.mode == "rules":
        yield "Rules analysis: no language model was used."
    else:
        yield f"AI-generated analysis{_prefixed(' by ', _clip(run.model, 80))}; check it before you act on it."
    cost = "" if run.cost_usd is None else f", ${run.cost_usd:.2f}"
    tokens = f", {run.tokens_in:,} tokens in and {run.tokens_out:,} out" if run.tokens_in or run.tokens_out else ""
    yield f"{run.steps} steps, {run.tool_calls} tool calls{tokens}{cost}, {_duration(run.duration_s)}."
    checks = report.checks
    failed = {
        "claims without evidence dropped": checks.claims_uncited,
        "quotes not found in the recorded results": checks.quotes_failed,
        "times outside the window dropped": checks.times_out_of_window,
        "secrets redacted": checks.secrets_redacted,
    }
    if counted := ", ".join(f"{count} {what}" for what, count in failed.items() if count):
        yield f"Checks: {counted}."
    yield f"Wrong or incomplete? Say so here, then run: rootcaused requeue {_clip(_one_line(report.alert.key), 120)}"


def _evidence_hosts(report: Report) -> frozenset[str]:
    """Evidence links are built by the tools from the operator's own configuration."""
    return _hosts_of(item.url for item in report.evidence)


def _hosts_of(urls: Iterable[str]) -> frozenset[str]:
    found = set()
    for url in urls:
        try:
            found.add(urllib.parse.urlsplit(url).netloc.lower())
        except ValueError:
            continue
    return frozenset(found - {""})


def _bullets(lines: Iterable[str]) -> tuple[Block, ...]:
    return tuple(bullets((Span(line),) for line in lines))


def _refs(ids: tuple[str, ...]) -> str:
    return f" [{', '.join(map(_one_line, ids))}]" if ids else ""


def _prefixed(prefix: str, text: str) -> str:
    return f"{prefix}{text}" if text.strip() else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(0, limit - 1)].rstrip()}…"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(seconds / 3600)
    return f"{hours} h" if hours < 48 else f"{round(seconds / 86400)} d"
