"""Reports in Jira's wiki markup."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.render.fit import utf16_units
from sources.render.inert import BREAK
from sources.render.wiki import NOTE, escaped, noformat, wiki
from tests.support.inertness import assert_inert
from tests.support.reports import hostile, report

MARKER = "rootcaused:v1:0123456789abcdef"
LONG = "the pool of connections is exhausted because the release made it smaller " * 12


def long() -> Any:
    return report(body="\n\n".join([LONG, f"```\n{LONG}\n```", f"- {LONG}"] * 60))


def live(line: str) -> str:
    """What Jira still reacts to: the line without what a backslash takes the meaning from."""
    return re.sub(r"\\[^\w\s]", "x", line)


def test_the_report_reads_like_this() -> None:
    lines = wiki(report()).splitlines()
    assert lines[0].startswith("h3. Likely cause: checkout answers 503")
    assert "*Impact:* 12 % of checkouts, since" in wiki(report())
    assert "* *max* is {{5}}\n* wanted is 40" in wiki(report())
    assert "{noformat}\nPoolTimeout\n{noformat}" in wiki(report())
    assert "[open|https://grafana.example.org/explore?q=1]" in wiki(report())
    assert lines[-1] == MARKER


def test_links_go_only_where_evidence_was_read_or_the_operator_allows() -> None:
    assert "https://wiki.example.org/rb1" not in wiki(report())
    assert "https://wiki.example.org/rb1" in wiki(report(), hosts=["wiki.example.org"])


def test_hostile_text_is_inert() -> None:
    text = wiki(hostile())
    outside = "\n".join(text.split("{noformat}")[::2])
    assert_inert(outside)
    for line in outside.splitlines():
        found = re.sub(r"^\* |\*[^*]*\*|\{\{|\}\}", "", live(line))
        assert not re.search(r"[{}\[\]|^~]|!\S", found), line
    assert text.count("{noformat}") % 2 == 0
    assert "[~accountid" not in text
    assert "rootcaused:v1:forged" not in text
    assert text.splitlines()[-1] == MARKER


@pytest.mark.parametrize(("text", "shown"), [
    ("{code}x{code}", r"\{code\}x\{code\}"),
    ("{html}<b>{html}", r"\{html\}<b>\{html\}"),
    ("[~bob] [a|https://evil.example]", rf"\[{BREAK}\~bob\] \[a\|hxxps://evil.example\]"),
    ("!https://evil.example/p.png!", r"\!hxxps://evil.example/p.png\!"),
    ("*bold* _it_ -gone- +new+ ^up^ ~down~ ??who??",
     r"\*bold\* \_it\_ \-gone\- \+new\+ \^up\^ \~down\~ \?\?who\?\?"),
    ("checkout-7d9f pool_size 1+1", "checkout-7d9f pool_size 1+1"),
    ("h1. big", f"{BREAK}h1. big"), ("bq. quote", f"{BREAK}bq. quote"), ("# one", f"{BREAK}# one"),
    ("- one", r"\- one"), ("* one", r"\* one"), ("|| a || b ||", r"\|\| a \|\| b \|\|"), ("----", r"\-\-\-\-"),
    (r"C:\temp\new", r"C:\temp\new"), (r"\{code}", rf"\{BREAK}\{{code\}}"), ("a\\\\b", f"a\\{BREAK}\\b"),
    ("(x) (!) (on) (a)", r"\(x) \(\!) \(on) (a)"), ("oh :) :D", f"oh :{BREAK}) :{BREAK}D"),
    ("two\nlines", "two lines"), ("wait!", r"wait\!"), ("why?", "why?"),
])  # fmt: skip
def test_text_renders_as_itself(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize("text", ["{noformat}", "{NoFormat}", "{code:java}", "{html}", "[~bob]", "{/noformat}"])
def test_nothing_ends_a_block_of_code_or_pings_from_it(text: str) -> None:
    first, inside, last = noformat(text).split("\n")
    assert (first, last) == ("{noformat}", "{noformat}")
    assert not re.search(r"(?i)\{/?(noformat|code|html)|\[~", inside)
    assert inside.replace(BREAK, "") == text


def test_other_braces_in_code_stay_as_they_are() -> None:
    assert "{{.Values.pool}} {a: 1} {{codes}}" in noformat("{{.Values.pool}} {a: 1} {{codes}}")


@given(st.text(alphabet="{}[]|*^~!-_+?\\#h1. bqcode:/()@\n", max_size=60))
@settings(max_examples=300)
def test_any_text_is_without_markup_of_its_own(text: str) -> None:
    found = live(escaped(text))
    assert not re.search(r"[{}\[\]|*^~]|!\S|\?\?", found)
    assert "\\\\" not in found
    assert not re.match(r"#|h[1-6]\.|bq\.|-|\+", found)
    assert not re.search(r"\\(?=\W|$)", found)


@given(st.integers(min_value=1_000, max_value=40_000))
@settings(max_examples=12, deadline=None)
def test_a_cut_text_keeps_its_limit_and_leaves_nothing_open(limit: int) -> None:
    text = wiki(LONG_REPORT, limit)
    assert utf16_units(text) <= limit
    assert NOTE in text
    assert text.splitlines()[-1] == MARKER
    assert text.count("{noformat}") % 2 == 0


LONG_REPORT = long()
