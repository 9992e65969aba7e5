"""Plain text, Markdown and Slack blocks of the same report."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agent.report import AlertSummary, Confidence, Impact, Outcome, Related, Report, RootCause, Run, Stop
from sources.render.fit import fit, prefix, utf8_bytes, utf16_units
from sources.render.inert import BREAK
from sources.render.markdown import NOTE as MARKDOWN_NOTE
from sources.render.markdown import escaped, fenced, markdown
from sources.render.plain import NOTE, above_the_fold, plain
from sources.render.sections import FOLD_CHARS, moment
from sources.render.slack import MAX_BLOCKS, MAX_HEADER_CHARS, MAX_SECTION_CHARS, slack_blocks
from tests.support.reports import NOON, hostile, report

MARKER = "rootcaused:v1:0123456789abcdef"
LONG = "the pool of connections is exhausted because the release made it smaller " * 40


def long() -> Report:
    """Every text far too long, and many of each."""
    base = report(headline=LONG, body="\n\n".join([LONG] * 12))
    return base.model_copy(
        update={
            "impact": base.impact.model_copy(update={"affected": LONG, "scope": LONG}),
            "root_cause": RootCause(component=LONG, mechanism=LONG, evidence=tuple(f"E{n}" for n in range(50))),
            "confidence": Confidence(level="low", basis=LONG, capped_by=LONG),
            "ruled_out": base.ruled_out * 60,
            "not_checked": base.not_checked * 60,
            "next_steps": base.next_steps * 30,
            "evidence": base.evidence * 30,
            "timeline": base.timeline * 60,
            "stop": Stop.TIME_LIMIT,
            "run": base.run.model_copy(update={"model": LONG}),
            "alert": base.alert.model_copy(update={"key": LONG}),
        }
    )


def minimal() -> Report:
    """What a model that answered with nothing leaves."""
    return Report(
        alert=AlertSummary(key="pd:Q1", source="pd", id="Q1", title="t", severity="error"),
        run=Run(investigation="0123456789abcdef", started_at=NOON),
        outcome=Outcome.INCONCLUSIVE,
        confidence=Confidence(level="low"),
        headline="",
    )


ALL = pytest.mark.parametrize("make", [report, hostile, long, minimal])


def test_the_essentials_read_like_this() -> None:
    assert above_the_fold(report()) + "\n" == PLAIN
    assert plain(report()).startswith(PLAIN)


PLAIN = """\
Likely cause: checkout answers 503 because its connection pool is exhausted, since 11:57 UTC
Medium confidence (1 decisive, 0 contradicting; held down: tool errors).
Impact: 12 % of checkouts, since 2031-02-03 12:00:00 UTC (at the alert), users notice, symptom confirmed
Why: checkout: pool of 5 after release 1.4.2 [E1]
Ruled out: node pressure [E2]
Not checked: traces (no access)
Next: read the pool size; [CHANGES THINGS] roll back
"""


@ALL
def test_what_is_above_the_fold_fits_a_phone(make: Any) -> None:
    assert len(above_the_fold(make())) <= FOLD_CHARS
    in_markdown = markdown(make()).partition("<details>")[0]
    assert len(re.sub(rf"\\(?=\W)|\*\*|### |{BREAK}", "", in_markdown)) <= FOLD_CHARS + 100


@ALL
def test_the_headline_comes_first_and_the_marker_last(make: Any) -> None:
    assert plain(make()).splitlines()[-1] == MARKER
    assert markdown(make()).splitlines()[-1] == f"<!-- {MARKER} -->"
    assert slack_blocks(make())[-1]["elements"][0]["text"].splitlines()[-1] == MARKER


def test_read_only_steps_come_first_and_others_are_marked() -> None:
    for text in (plain(report()), markdown(report())):
        below = text[text.lower().rindex("next steps") :]
        assert below.index("read the pool size") < below.index("CHANGES THINGS")
        assert "no undo known" in below


def test_an_unverified_quote_is_marked() -> None:
    text = plain(report())
    assert "E2 [not verified] (metric, supporting)" in text
    assert "E1 (log, decisive" in text


@pytest.mark.parametrize(("stop", "words"), [
    (Stop.STEP_LIMIT, "limit of steps"), (Stop.TIME_LIMIT, "time limit"), (Stop.MODEL_FAILED, "language model failed"),
])  # fmt: skip
def test_an_incomplete_analysis_says_so_above_the_fold(stop: Stop, words: str) -> None:
    assert words in above_the_fold(report(stop=stop))


def test_who_analysed_is_said() -> None:
    rules = report(run=report().run.model_copy(update={"mode": "rules"}))
    assert "Rules analysis: no language model was used." in plain(rules)
    assert "AI-generated analysis by m-1; check it before you act on it." in plain(report())
    assert "12 steps, 18 tool calls, 45,210 tokens in and 900 out, $0.12, 38 s." in plain(report())


def test_what_could_not_be_reached_is_not_silently_missing() -> None:
    assert "loki (could not be reached)" in plain(report(sources_failed=("loki",)))


@pytest.mark.parametrize(("seconds", "words"), [
    (0, "(at the alert)"), (-180, "(3 min before the alert)"), (42, "(42 s after the alert)"),
    (-10_800, "(3 h before the alert)"), (-400_000, "(5 d before the alert)"),
])  # fmt: skip
def test_times_are_absolute_and_relative(seconds: int, words: str) -> None:
    at = NOON + timedelta(seconds=seconds)
    assert moment(at, NOON) == f"{at:%Y-%m-%d %H:%M:%S} UTC {words}"


def test_links_go_only_where_evidence_was_read_or_the_operator_allows() -> None:
    for text in (plain(report()), markdown(report()), str(slack_blocks(report()))):
        assert "https://grafana.example.org/explore?q=1" in text
        assert "https://wiki.example.org" not in text
    assert "https://wiki.example.org/rb1" in plain(report(), hosts=["wiki.example.org"])


def test_impact_that_nobody_looked_at_is_left_out() -> None:
    assert "Impact:" not in above_the_fold(report(impact=Impact()))


@given(st.integers(min_value=150, max_value=12_000))
@settings(max_examples=12, deadline=None)
def test_a_cut_text_keeps_its_limit_its_marker_and_says_that_it_is_cut(limit: int) -> None:
    for measure in (len, utf16_units, utf8_bytes):
        text = plain(LONG_REPORT, limit, measure=measure)
        assert measure(text) <= limit
        if limit >= 900:
            assert text.splitlines()[-1] == MARKER
            assert NOTE in text


LONG_REPORT = long()


@given(st.integers(min_value=900, max_value=50_000))
@settings(max_examples=12, deadline=None)
def test_cut_markdown_leaves_nothing_open(limit: int) -> None:
    text = markdown(LONG_REPORT, limit)
    assert len(text) <= limit
    assert text.endswith(f"<!-- {MARKER} -->")
    assert MARKDOWN_NOTE in text
    assert text.count("<details>") == text.count("</details>")
    assert len(re.findall(r"^`{3,}", text, re.MULTILINE)) % 2 == 0


@pytest.mark.parametrize("letter", ["a", "é", "日", "𝄞"])
@pytest.mark.parametrize(
    ("measure", "sizes"), [(len, (1, 1, 1, 1)), (utf16_units, (1, 1, 1, 2)), (utf8_bytes, (1, 2, 3, 4))]
)
def test_what_counts_is_what_the_server_counts(measure: Any, sizes: tuple[int, ...], letter: str) -> None:
    size = sizes["aé日𝄞".index(letter)]
    assert measure(letter) == size
    assert prefix(letter * 10, 4 * size, measure) == letter * 4
    assert prefix(letter * 10, 5 * size - 1, measure) == letter * 4 if size > 1 else True


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(min_value=40, max_value=200))
def test_blocks_are_kept_whole(blocks: list[str], limit: int) -> None:
    text = fit(blocks, ["THE-END"], limit, "CUT", len, glue="\n")
    assert len(text) <= limit
    assert text.endswith("THE-END")
    whole = "\n".join([*blocks, "THE-END"])
    assert text == whole or (len(whole) > limit and "CUT\nTHE-END" in text)


@given(st.text(alphabet="`~a\n", max_size=60))
def test_no_text_can_end_its_code_block(text: str) -> None:
    first, *inside, last = fenced(text).split("\n")
    fence = first.removesuffix("text")
    assert last == fence
    assert not any(re.fullmatch(rf"\s*`{{{len(fence)},}}\s*", line) for line in inside)


def tags(text: str) -> set[str]:
    """The elements a GitHub-like renderer makes of it; raw HTML counts as what it opens."""
    rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(text)
    return set(re.findall(r"<([a-z!][a-z0-9]*)", rendered))


@given(st.text(alphabet="*_`[]()<>#!|~$&\\ab1.)-+=\n@/:", max_size=60))
@settings(max_examples=200, deadline=None)
def test_markdown_of_any_text_has_no_markup_of_its_own(text: str) -> None:
    assert tags(f"x {escaped(text)}") <= {"p"}
    assert tags(escaped(text)) <= {"p"}


def test_hostile_markdown_renders_to_our_own_structure_only() -> None:
    allowed = {"h3", "h4", "p", "strong", "details", "summary", "ul", "li", "pre", "code", "br", "!"}
    assert tags(markdown(hostile())) <= allowed
    assert tags(markdown(report())) == allowed | {"a"}


@ALL
def test_slack_takes_the_message(make: Any) -> None:
    blocks = slack_blocks(make())
    assert len(blocks) <= MAX_BLOCKS
    for block in blocks:
        match block["type"]:
            case "header":
                assert 0 < len(block["text"]["text"]) <= MAX_HEADER_CHARS
            case "section":
                assert 0 < len(block["text"]["text"]) <= MAX_SECTION_CHARS
                assert block["text"]["text"].count("```") % 2 == 0
            case _:
                assert len(block["elements"][0]["text"]) <= MAX_SECTION_CHARS


def test_a_long_slack_message_says_that_it_is_cut() -> None:
    assert "Truncated" in str(slack_blocks(report(body="\n\n".join([LONG] * 80))))
    assert "Truncated" not in str(slack_blocks(report()))


def test_prose_keeps_its_structure() -> None:
    text = markdown(report())
    assert "**Detail**" in text
    assert "- **max** is `5`\n- wanted is 40" in text
    assert "```text\nPoolTimeout\n```" in text


def test_a_fence_that_was_never_closed_is_closed() -> None:
    text = markdown(report(body="before\n```\ncode"))
    assert "```text\ncode\n```" in text


def test_a_duplicate_is_one_line_and_a_link_to_the_note_it_points_to() -> None:
    related = (Related(kind="correlated_alert", id="pd:Q1", url="https://acme.pagerduty.com/incidents/Q1", why="w"),)
    pointer = report(outcome=Outcome.DUPLICATE_OF, headline="Same incident as pd:Q1: the pool", related=related)
    assert plain(pointer).splitlines()[:2] == [
        "Duplicate: Same incident as pd:Q1: the pool",
        "See https://acme.pagerduty.com/incidents/Q1",
    ]
    assert "[its report](https://acme.pagerduty.com/incidents/Q1)" in markdown(pointer)
    assert "<details>" not in markdown(pointer)
    assert MARKER in plain(pointer)


def test_a_hostile_duplicate_is_inert() -> None:
    pointer = hostile().model_copy(update={"outcome": Outcome.DUPLICATE_OF, "related": ()})
    assert "@oncall" not in plain(pointer)
    assert "javascript:" not in markdown(pointer).lower()
