"""What a report may say is decided by what was recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.drafts import draft_of, draft_of_text
from agent.events import ToolFinished
from agent.grounding import NO_UNDO, ground, problems
from agent.headline import names, unfounded
from agent.ledger import Ledger
from agent.redaction import Redactor
from agent.report import Draft, Outcome, Related, Report, Run, Stop
from agent.spill import CUT_MARK, MemoryResults
from tests.support.cases import LOG_LINE, NOW, a_case, a_draft

RUN = Run(investigation="inv-1", started_at=NOW)


def finished(ref: str = "T1", text: str = LOG_LINE, **changes: Any) -> ToolFinished:
    return ToolFinished(
        **{
            "step": 1, "ref": ref, "call_id": ref, "tool": "loki_query", "params": {}, "status": "success",
            "content": f"{ref} success\n\n{text}", "query": "{app='x'}", "url": "https://loki/x", "result_sha256": "ab",
            "captured_at": NOW, **changes,
        }
    )  # fmt: skip


def checked(given: dict[str, Any], *calls: ToolFinished, whole: dict[str, str] | None = None, **case: Any) -> Report:
    ledger, results = Ledger(), MemoryResults()
    for call in calls or (finished(),):
        ledger.add(call)
    for ref, text in (whole or {}).items():
        results.put(ref, text)
    return ground(
        draft_of(given), case=a_case(**case), run=RUN, ledger=ledger, results=results, stop=Stop.ANSWERED, now=NOW
    )


def test_evidence_carries_where_it_was_seen() -> None:
    item = checked(a_draft()).evidence[0]
    assert (item.tool, item.query, item.url, item.captured_at) == ("loki_query", "{app='x'}", "https://loki/x", NOW)
    assert (item.result_sha256, item.verified) == ("ab", True)


def test_a_quote_is_searched_in_the_whole_result_with_white_space_folded() -> None:
    shown = finished(text="the start only")
    quote = "FATAL: remaining   connection\nslots"
    assert not checked(a_draft(quote), shown).evidence[0].verified
    assert checked(a_draft(quote), shown, whole={"T1": f"the start only\n...\n{LOG_LINE}"}).evidence[0].verified
    assert checked(a_draft("…connection slots are reserved...")).evidence[0].verified
    assert checked(a_draft('"FATAL: remaining connection slots"')).evidence[0].verified


@pytest.mark.parametrize(
    ("quote", "call", "status"),
    [
        ("error rate 97 % at 03:12", "T1", "success"),
        (LOG_LINE, "T9", "success"),
        (LOG_LINE, "", "success"),
        (LOG_LINE, "T1", "error"),
        ("", "T1", "success"),
        ("a", "T1", "success"),
    ],
)
def test_evidence_that_no_result_shows_is_marked_and_carries_no_claim(quote: str, call: str, status: str) -> None:
    report = checked(a_draft(quote, call), finished(status=status))
    assert not report.evidence[0].verified
    assert report.checks.quotes_failed == bool(quote)
    assert report.root_cause is None
    assert report.checks.claims_uncited == 1
    assert (report.outcome, report.confidence.level) == (Outcome.INCONCLUSIVE, "low")


def test_claims_without_evidence_are_dropped_and_counted() -> None:
    report = checked(
        a_draft(
            causal_chain=[{"from": "a", "to": "b", "evidence": ["E1"]}, {"from": "b", "to": "c", "evidence": ["E7"]}],
            ruled_out=[{"hypothesis": "network", "evidence": []}],
            timeline=[{"at": "2026-12-01T09:49:58Z", "what": "slots gone", "evidence": ["E1", "E8"]}],
        )
    )
    assert [link.target for link in report.causal_chain] == ["b"]
    assert report.ruled_out == ()
    assert report.timeline[0].evidence == ("E1",)
    assert report.checks.claims_uncited == 2


def test_a_claim_may_name_the_call_that_an_evidence_quotes() -> None:
    cause = {"component": "db", "mechanism": "full", "evidence": ["T1"]}
    assert checked(a_draft(root_cause=cause)).root_cause.evidence == ("E1",)  # type: ignore[union-attr]


def test_times_outside_the_window_are_dropped_and_naive_ones_are_utc() -> None:
    def moment(at: str) -> dict[str, Any]:
        return {"at": at, "what": "x", "evidence": ["E1"]}

    times = ["2026-12-01T09:49:58", "2026-12-01T11:49:00+02:00", "2026-12-02T00:00:00Z", "2025-12-01T00:00:00Z"]
    report = checked(a_draft(timeline=[moment(at) for at in times]))
    assert [at.at for at in report.timeline] == [
        datetime(2026, 12, 1, 9, 49, tzinfo=UTC),
        datetime(2026, 12, 1, 9, 49, 58, tzinfo=UTC),
    ]
    assert report.checks.times_out_of_window == 2


def weighted(*weights: str, **changes: Any) -> dict[str, Any]:
    evidence = [
        {"id": f"E{number}", "call": "T1", "quote": LOG_LINE, "weight": weight}
        for number, weight in enumerate(weights, start=1)
    ]
    return a_draft(evidence=evidence, **changes)


@pytest.mark.parametrize(
    ("draft", "outcome", "level", "capped_by"),
    [
        (weighted("decisive", "supporting"), "confirmed", "high", ""),
        (weighted("decisive", impact={"symptom_confirmed": False}), "likely", "high", ""),
        (weighted("supporting", "supporting"), "likely", "medium", "no decisive evidence"),
        (weighted("decisive", "contradicting"), "likely", "low", "contradicting evidence"),
        (weighted("context"), "inconclusive", "low", "no verified evidence"),
        (weighted("decisive", finding="not_an_issue"), "not_an_issue", "high", ""),
        (weighted(finding="not_an_issue"), "inconclusive", "low", "no verified evidence"),
        (weighted("decisive", finding="inconclusive"), "inconclusive", "low", "no cause was shown"),
        (weighted("decisive", headline="payments-db lost 97 % of its slots"), "likely", "medium", "the headline names"),
    ],
)
def test_outcome_and_confidence_follow_the_table(draft: Any, outcome: str, level: str, capped_by: str) -> None:
    report = checked(draft)
    assert (report.outcome.value, report.confidence.level) == (outcome, level)
    assert report.confidence.capped_by.startswith(capped_by)


def test_the_basis_is_counted() -> None:
    basis = checked(weighted("decisive", "supporting", "supporting")).confidence.basis
    assert basis == "1 decisive, 2 supporting, 0 contradicting"


def test_a_failed_source_and_a_cut_result_cap_the_confidence() -> None:
    failed = finished("T2", tool="kubernetes_get", status="error", content="T2 error\n\n403 forbidden")
    report = checked(a_draft(), finished(), failed)
    assert report.sources_failed == ("kubernetes_get: 403 forbidden",)
    assert (report.confidence.level, report.confidence.capped_by) == ("medium", "data sources failed")
    assert checked(a_draft(), finished(), failed, finished("T3", tool="kubernetes_get")).sources_failed == ()
    cut = finished(content=f"T1 success\n\n{LOG_LINE}\n{CUT_MARK}9 of 99 characters]")
    assert checked(a_draft(), cut).confidence.capped_by == "decisive results were cut"


@pytest.mark.parametrize(
    ("headline", "missing"),
    [
        ("payments-db has no connection slots", []),
        ("payments-db refused 1,024 of 5000 requests since 09:50 UTC", ["5000"]),
        ("shop/checkout fails: out-of-memory, CPU/memory pressure, e.g. crash-looping", []),
        ("shop/billing fails", ["shop/billing"]),
        ("orders-cache-7f9c6d5b8-x2x4z was evicted", ["orders-cache-7f9c6d5b8-x2x4z"]),
        ("api v2.14.3 returns 97.5% errors", ["97.5%"]),
    ],
)
def test_numbers_and_names_of_a_headline_must_have_been_seen(headline: str, missing: list[str]) -> None:
    texts = ["payments-db FATAL 1024 refused", "namespace shop, deployment checkout, cpu and memory", "v2.14.3"]
    assert unfounded(headline, texts) == missing


def test_clock_times_and_single_digits_are_no_claims() -> None:
    assert names("2 pods down since 2026-12-01T09:50:00Z, 09:50 UTC") == []


def test_an_unfounded_headline_is_marked_within_its_length() -> None:
    report = checked(a_draft(headline="orders_db_17 " + "is full " * 30))
    assert report.headline.endswith("[not verified]")
    assert len(report.headline) <= 140
    assert report.checks.claims_uncited == 1


def test_a_mutating_step_without_undo_says_so() -> None:
    steps = [
        {"title": "drop it", "mutating": True},
        {"title": "scale", "mutating": True, "undo": "scale back"},
        {"title": "look"},
    ]
    assert [step.undo for step in checked(a_draft(next_steps=steps)).next_steps] == [NO_UNDO, "scale back", ""]


def test_secrets_are_taken_out_of_every_text_and_counted() -> None:
    steps = [{"title": "connect", "command": "psql postgres://app:hunter2x@db"}]
    report = checked(
        a_draft(body="password=hunter2x and zz-test-9981", next_steps=steps),
        redact=Redactor(["zz-test-9981"]),
        prior=(Related(kind="prior_incident", id="x", why="token=abc-1"),),
    )
    assert "hunter2x" not in report.model_dump_json()
    assert "zz-test" not in report.model_dump_json()
    assert report.checks.secrets_redacted == 3


def test_control_characters_do_not_reach_a_report() -> None:
    report = checked(a_draft(body="ok\x1b]52;c;aGk=\x07\u202e\U000e0041 fine\x00"))
    assert report.body == "ok fine"


def test_problems_are_told_in_words() -> None:
    ledger = Ledger()
    ledger.add(finished())
    draft = draft_of(weighted("decisive") | {"evidence": [
        {"id": "E1", "call": "T1", "quote": "made up"}, {"id": "E2", "call": "T8", "quote": LOG_LINE}]})  # fmt: skip
    assert problems(draft, ledger, MemoryResults()) == [
        "E1: the quote is not in the result of T1: 'made up'",
        "E2: there is no call 'T8'",
        "root_cause cites no evidence id of yours",
    ]
    assert problems(draft_of(a_draft()), ledger, MemoryResults()) == []


def test_flaws_cost_only_the_part_they_are_in() -> None:
    draft = draft_of(
        {
            "finding": "root_cause",
            "headline": None,
            "body": ["one", "two"],
            "impact": {"symptom_confirmed": True, "user_facing": "maybe", "since": "at noon"},
            "root_cause": {"component": 3, "evidence": "E1", "trigger": None},
            "evidence": [
                {"id": "E1", "call": "T1", "kind": "logs", "quote": "x", "weight": "strong"},
                {"call": "T2"},
                None,
                {"id": "E3", "call": "T3"},
            ],
            "timeline": {"at": "noon", "what": "x", "evidence": ["E1"]},
            "next_steps": [{"why": "no title"}, {"title": "look", "mutating": "perhaps"}],
        }
    )
    assert (draft.finding, draft.headline, draft.body) == ("root_cause", "", "one; two")
    assert draft.impact.symptom_confirmed
    assert draft.root_cause is not None
    assert (draft.root_cause.component, draft.root_cause.evidence) == ("3", ("E1",))
    assert [(item.id, item.kind, item.weight) for item in draft.evidence] == [
        ("E1", "object", "supporting"),
        ("E3", "object", "supporting"),
    ]
    assert [(moment.what, moment.at) for moment in draft.timeline] == [("x", None)]
    assert [(step.title, step.mutating) for step in draft.next_steps] == [("look", False)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Draft.model_fields, "id", "call", "evidence"]), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(list(Draft.model_fields)), JSON))
@example({"headline": "\x08"})
def test_any_object_becomes_a_report(given_draft: dict[str, Any]) -> None:
    report = checked(given_draft)
    assert Report.model_validate_json(report.model_dump_json(by_alias=True)) == report
    assert report.headline


def test_prose_becomes_a_draft_with_its_first_sentence_on_top() -> None:
    draft = draft_of_text("## Root cause\n\nv1.2 broke it. More.")
    assert draft.headline == "v1.2 broke it."
    assert draft_of_text("# Root cause").headline == "Root cause"
    assert draft_of_text("**The v1.2 release broke it.** More.").headline == "The v1.2 release broke it."
    assert len(draft_of_text("word " * 100).headline) <= 140
