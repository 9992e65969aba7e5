"""Reports as Atlassian documents, and the strict check they are held against."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.render.adf import NOTE, adf, adf_code, units
from tests.support.adf_check import adf_faults, nodes, texts
from tests.support.inertness import assert_inert
from tests.support.reports import hostile, report

MARKER = "rootcaused:v1:0123456789abcdef"
LONG = "the pool of connections is exhausted because the release made it smaller " * 12


def long() -> Any:
    return report(body="\n\n".join([LONG, f"```\n{LONG}\n```", f"- {LONG}"] * 60))


def doc(*content: Any) -> dict[str, Any]:
    return {"type": "doc", "version": 1, "content": list(content)}


def paragraph(*content: Any) -> dict[str, Any]:
    return {"type": "paragraph", "content": list(content)}


@pytest.mark.parametrize("make", [report, hostile, long])
def test_the_document_is_valid_and_ends_in_the_marker(make: Any) -> None:
    for document in (adf(make()), adf_code(make())):
        assert adf_faults(document) == []
        assert list(texts(document))[-1].splitlines()[-1] == MARKER


def test_the_essentials_come_first() -> None:
    words = ["".join(texts(node)) for node in adf(report())["content"][:4]]
    assert words[0].startswith("Likely cause: checkout answers 503")
    assert words[1].startswith("Medium confidence")
    assert words[2].startswith("Impact: 12 % of checkouts")
    assert words[3].startswith("Why: checkout: pool of 5")


def test_prose_keeps_its_structure() -> None:
    content = adf(report())["content"]
    assert {"type": "codeBlock", "content": [{"type": "text", "text": "PoolTimeout"}]} in content
    (listed,) = [node for node in content if "wanted is 40" in "".join(texts(node))]
    assert [item["type"] for item in listed["content"]] == ["listItem", "listItem"]
    assert {"type": "text", "text": "max", "marks": [{"type": "strong"}]} in nodes(listed)
    assert {"type": "text", "text": "5", "marks": [{"type": "code"}]} in nodes(listed)


def test_links_go_only_where_evidence_was_read_or_the_operator_allows() -> None:
    def hrefs(**options: Any) -> set[str]:
        marks = [mark for node in nodes(adf(report(), **options)) for mark in node.get("marks", ())]
        return {mark["attrs"]["href"] for mark in marks if mark["type"] == "link"}

    assert hrefs() == {"https://grafana.example.org/explore?q=1"}
    assert "https://wiki.example.org/rb1" in "".join(texts(adf(report(), hosts=["wiki.example.org"])))
    assert "https://wiki.example.org/rb1" not in "".join(texts(adf(report())))


def test_hostile_text_is_inert() -> None:
    document = adf(hostile())
    kinds = {node["type"] for node in nodes(document)}
    assert kinds.isdisjoint({"mention", "inlineCard", "media", "emoji", "extension"})
    assert_inert("\n".join(texts(document, code=False)))
    for words in texts(document, code=True):
        assert "\x1b" not in words
        assert "rootcaused:v1:forged" not in words


@given(st.integers(min_value=1_000, max_value=40_000))
@settings(max_examples=12, deadline=None)
def test_a_cut_document_keeps_its_limit_and_says_that_it_is_cut(limit: int) -> None:
    document = adf(LONG_REPORT, limit)
    assert adf_faults(document) == []
    assert sum(map(units, document["content"])) <= limit
    assert NOTE in list(texts(document))
    assert document["content"][-1] == paragraph({"type": "text", "text": MARKER})
    place = document["content"].index(paragraph({"type": "text", "text": NOTE, "marks": [{"type": "strong"}]}))
    assert document["content"][place - 1]["type"] != "heading" or place == 1


LONG_REPORT = long()


def test_a_code_block_is_cut_to_its_limit() -> None:
    document = adf_code(LONG_REPORT, 5_000)
    assert sum(map(units, document["content"])) <= 5_000
    assert next(texts(document)).splitlines()[-1] == MARKER


@given(st.text(alphabet="`*-# \n\t>|1.)[](){}<>!@~:ab\x00\u202e𝄞", max_size=80))
@settings(max_examples=80, deadline=None)
def test_any_prose_gives_a_valid_document(body: str) -> None:
    assert adf_faults(adf(report(body=body, headline=body))) == []


@pytest.mark.parametrize(("planted", "fault"), [
    ("text", "not a doc"),
    ({"type": "doc", "version": 2, "content": []}, "not a doc"),
    (doc(), "empty"),
    (doc({"type": "text", "text": "x"}), "not allowed here"),
    (doc(paragraph(paragraph())), "not allowed here"),
    (doc(paragraph({"type": "text", "text": ""})), "an empty text"),
    (doc(paragraph({"type": "text", "text": "a\nb"})), "line break"),
    (doc(paragraph({"type": "mention", "attrs": {"id": "1"}})), "not allowed here"),
    (doc({"type": "codeBlock", "content": [{"type": "text", "text": "x", "marks": [{"type": "strong"}]}]}), "marks"),
    (doc(paragraph({"type": "text", "text": "x", "marks": [{"type": "code"}, {"type": "strong"}]})), "together"),
    (doc({"type": "bulletList", "content": []}), "empty"),
    (doc({"type": "bulletList", "content": [paragraph()]}), "not allowed here"),
    (doc({"type": "bulletList", "content": [{"type": "listItem", "content": []}]}), "empty"),
    (doc({"type": "heading", "attrs": {"level": 7}}), "level"),
    (doc({"type": "table", "content": []}), "not allowed here"),
    (doc({"type": "paragraph", "content": [], "style": "x"}), "unknown keys"),
    (doc({"type": "rule", "content": []}), "content"),
])  # fmt: skip
def test_the_check_refuses_planted_faults(planted: Any, fault: str) -> None:
    assert fault in str(adf_faults(planted))
