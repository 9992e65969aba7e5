"""The report: every claim of a draft checked against what was recorded, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from agent.case import Case
from agent.headline import unfounded
from agent.ledger import Ledger, cut
from agent.plain import fold, plain, shorten
from agent.redaction import PLACEHOLDER
from agent.report import (
    MAX_HEADLINE_CHARS,
    MAX_QUOTE_CHARS,
    AlertSummary,
    Checks,
    Confidence,
    Draft,
    Evidence,
    Hypothesis,
    Level,
    Link,
    Moment,
    NextStep,
    Outcome,
    Related,
    Report,
    RootCause,
    Run,
    Stop,
)
from agent.runbooks import Runbook
from agent.safeguards import publishable
from agent.spill import Results
from agent.tools import ResultStatus

MIN_QUOTE_CHARS = 3
LOOK_BACK: Final = timedelta(days=7)  # a cause may lie well before the alert
NOT_VERIFIED = " [not verified]"
NO_UNDO = "no undo known"

Claim = TypeVar("Claim", RootCause, Link, Moment, Hypothesis)


class Record:
    """The recorded results, each read and folded once."""

    def __init__(self, ledger: Ledger, results: Results) -> None:
        self.ledger = ledger
        self._results = results
        self._folded: dict[str, str] = {}

    def text(self, ref: str) -> str:
        """The whole result; what the model was shown, where the whole has expired."""
        if ref not in self._folded:
            call = self.ledger.get(ref)
            shown = call.content if call else ""
            self._folded[ref] = fold(self._results.get(ref) or shown)
        return self._folded[ref]

    def texts(self) -> Iterable[str]:
        """Everything that was seen: shown parts first, because most searches end there."""
        for call in self.ledger:
            yield f"{call.content} {call.params}"
        for call in self.ledger:
            if cut(call):
                yield self.text(call.ref)


@dataclass(frozen=True, slots=True)
class Weighed:
    """The verified evidence of a report by weight."""

    decisive: int
    supporting: int
    contradicting: int

    @property
    def any(self) -> bool:
        return bool(self.decisive or self.supporting)


def problems(draft: Draft, ledger: Ledger, results: Results) -> list[str]:
    """What the model should repair, in words for it."""
    record = Record(ledger, results)
    evidence = _evidence(draft, record)
    found = [
        f"{item.id}: the quote is not in the result of {item.call}: {item.quote[:80]!r}"
        if record.ledger.get(item.call)
        else f"{item.id}: there is no call {item.call!r}"
        for item in evidence
        if item.quote and not item.verified
    ]
    known = _known(evidence)
    if draft.root_cause is not None and not _cited(draft.root_cause, known).evidence:
        found.append("root_cause cites no evidence id of yours")
    return found


def ground(
    draft: Draft, *, case: Case, run: Run, ledger: Ledger, results: Results, stop: Stop, now: datetime
) -> Report:
    """The checked report. Claims without evidence are dropped and counted, what can't be verified is marked."""
    record = Record(ledger, results)
    evidence = _evidence(draft, record)
    known = _known(evidence)
    causes = _kept((draft.root_cause,) if draft.root_cause else (), known)
    chain, timeline, ruled_out = (
        _kept(draft.causal_chain, known),
        _kept(draft.timeline, known),
        _kept(draft.ruled_out, known),
    )
    moments = [_utc(moment, "at") for moment in timeline]
    in_time = tuple(moment for moment in moments if _in_window(moment.at, case, now))
    strange = unfounded(draft.headline, _said(case, evidence, record))
    claimed = len(draft.causal_chain) + len(draft.timeline) + len(draft.ruled_out) + (draft.root_cause is not None)
    kept = len(causes) + len(chain) + len(timeline) + len(ruled_out)
    weighed = _weigh(evidence)
    outcome = _outcome(draft, weighed, bool(causes), bool(strange))
    confidence = _confidence(weighed, evidence, record, bool(strange), outcome)
    checks = Checks(
        claims_uncited=claimed - kept + bool(strange),
        quotes_failed=sum(bool(item.quote) and not item.verified for item in evidence),
        times_out_of_window=len(moments) - len(in_time),
    )
    report = Report(
        alert=summary(case),
        run=run,
        outcome=outcome,
        confidence=confidence,
        headline=_headline(draft, bool(strange)),
        body=draft.body if publishable(draft.body.strip()) else "",
        impact=_utc(draft.impact, "since", "until"),
        root_cause=_utc(causes[0], "onset_at") if causes else None,
        causal_chain=chain,
        evidence=evidence,
        ruled_out=ruled_out,
        not_checked=draft.not_checked,
        timeline=tuple(sorted(in_time, key=lambda moment: moment.at or now)),
        recent_changes=tuple(_utc(change, "at") for change in draft.recent_changes),
        next_steps=tuple(_with_undo(step) for step in draft.next_steps),
        related=(*case.prior, *(_related(runbook) for runbook in case.runbooks)),
        checks=checks,
        sources_failed=ledger.sources_failed(),
        stop=stop,
    )
    return redacted(report, case.redact)


def _related(runbook: Runbook) -> Related:
    return Related(kind="runbook", id=runbook.name, why=runbook.title)


def summary(case: Case) -> AlertSummary:
    alert = case.alert
    return AlertSummary(
        key=alert.key,
        source=alert.source,
        id=alert.id,
        url=alert.url,
        fingerprint=alert.fingerprint,
        title=alert.title,
        severity=alert.severity.value,
        fired_at=alert.starts_at,
        status_at_write=alert.status.value,
    )


def redacted(report: Report, redact: Callable[[str], str]) -> Report:
    """The report without secrets, in any of its texts; the placeholders in it are counted."""
    value = report.model_dump(mode="json", by_alias=True)
    for name in value.keys() - {"schema_version", "outcome", "stop", "alert", "run"}:
        value[name] = _each_text(value[name], lambda text: redact(plain(text)))
    for name in ("title", "url"):  # what identifies the alert stays as it is
        value["alert"][name] = redact(plain(value["alert"][name]))
    hidden = {found for text in _texts(value) for found in PLACEHOLDER.findall(text)}
    value["checks"]["secrets_redacted"] = len(hidden)
    return Report.model_validate(value)


def _evidence(draft: Draft, record: Record) -> tuple[Evidence, ...]:
    return tuple(_checked(citation.id, citation, record) for citation in draft.evidence[:50])


def _checked(identity: str, citation: Any, record: Record) -> Evidence:
    ref = citation.call.strip().upper()
    call = record.ledger.get(ref)
    quote = shorten(citation.quote.strip(), MAX_QUOTE_CHARS)
    verified = (
        call is not None
        and call.status in (ResultStatus.SUCCESS, ResultStatus.NO_DATA)  # what failed shows nothing
        and _stands_in(quote, record.text(ref))
    )
    return Evidence(
        id=identity,
        call=ref,
        kind=citation.kind,
        tool=call.tool if call else "",
        query=call.query if call else "",
        url=call.url if call else "",
        captured_at=call.captured_at if call else None,
        quote=quote,
        result_sha256=call.result_sha256 if call else "",
        weight=citation.weight,
        verified=verified,
    )


def _stands_in(quote: str, text: str) -> bool:
    """Whether the text holds the quote, less the ellipses or quotation marks that models put around it."""
    bare = fold(quote.strip("…").removesuffix("...").removeprefix("..."))
    return any(len(form) >= MIN_QUOTE_CHARS and form in text for form in (bare, bare.strip("`\"'“”")))


def _known(evidence: Iterable[Evidence]) -> dict[str, str]:
    """Ids a claim may cite, and the id each stands for. A claim may also name the call that an evidence quotes."""
    verified = [item for item in evidence if item.verified]
    return {item.call: item.id for item in reversed(verified)} | {item.id: item.id for item in verified}


def _cited(claim: Claim, known: dict[str, str]) -> Claim:
    ids = dict.fromkeys(known[cited] for cited in claim.evidence if cited in known)
    return claim.model_copy(update={"evidence": tuple(ids)})


def _kept(claims: Iterable[Claim], known: dict[str, str]) -> tuple[Claim, ...]:
    return tuple(claim for claim in (_cited(claim, known) for claim in claims) if claim.evidence)


def _weigh(evidence: Iterable[Evidence]) -> Weighed:
    weights = [item.weight for item in evidence if item.verified]
    return Weighed(weights.count("decisive"), weights.count("supporting"), weights.count("contradicting"))


def _confidence(
    weighed: Weighed, evidence: tuple[Evidence, ...], record: Record, strange: bool, outcome: Outcome
) -> Confidence:
    """The table of the report format: the level is capped by what the evidence lacks."""
    basis = f"{weighed.decisive} decisive, {weighed.supporting} supporting, {weighed.contradicting} contradicting"
    calls = [record.ledger.get(item.call) for item in evidence if item.verified and item.weight == "decisive"]
    caps: list[tuple[Level, str, bool]] = [
        ("low", "no verified evidence", not weighed.any),
        ("low", "contradicting evidence", weighed.contradicting > 0),
        ("low", "no cause was shown", outcome is Outcome.INCONCLUSIVE),
        ("medium", "no decisive evidence", weighed.decisive == 0),
        ("medium", "the headline names what no result shows", strange),
        ("medium", "data sources failed", bool(record.ledger.sources_failed())),
        ("medium", "decisive results were cut", bool(calls) and all(call is not None and cut(call) for call in calls)),
    ]
    for level, reason, applies in caps:  # the lowest first
        if applies:
            return Confidence(level=level, basis=basis, capped_by=reason)
    return Confidence(level="high", basis=basis)


def _outcome(draft: Draft, weighed: Weighed, cause: bool, strange: bool) -> Outcome:
    if draft.finding == "not_an_issue" and weighed.any and not weighed.contradicting:
        return Outcome.NOT_AN_ISSUE
    if draft.finding != "root_cause" or not cause or not weighed.any:
        return Outcome.INCONCLUSIVE
    sure = draft.impact.symptom_confirmed and weighed.decisive and not weighed.contradicting and not strange
    return Outcome.CONFIRMED if sure else Outcome.LIKELY


def _headline(draft: Draft, strange: bool) -> str:
    texts = (fold(plain(text)) for text in (draft.headline, draft.body))
    text = next((text for text in texts if publishable(text)), "No conclusion")
    if not strange:
        return shorten(text, MAX_HEADLINE_CHARS)
    return shorten(text, MAX_HEADLINE_CHARS - len(NOT_VERIFIED)) + NOT_VERIFIED


def _said(case: Case, evidence: Iterable[Evidence], record: Record) -> Iterable[str]:
    yield case.alert.model_dump_json(exclude={"raw"})
    yield from (item.quote for item in evidence if item.verified)
    yield from record.texts()


def _with_undo(step: NextStep) -> NextStep:
    return step.model_copy(update={"undo": NO_UNDO}) if step.mutating and not step.undo.strip() else step


def _in_window(at: datetime | None, case: Case, now: datetime) -> bool:
    if at is None:
        return False
    start = (case.alert.starts_at or case.started_at) - LOOK_BACK
    return start <= at <= now + timedelta(minutes=1)


Part = TypeVar("Part", bound=Any)


def _utc(part: Part, *names: str) -> Part:
    """The part with its times aware and in UTC; models leave the zone out."""
    times = {name: getattr(part, name) for name in names if getattr(part, name) is not None}
    aware = {name: (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC) for name, at in times.items()}
    return part.model_copy(update=aware)  # type: ignore[no-any-return]


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    return {key: _each_text(item, change) for key, item in value.items()} if isinstance(value, dict) else value


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
