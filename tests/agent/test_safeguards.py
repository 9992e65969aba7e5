"""What counts as text, as an answer, as a call."""

from __future__ import annotations

from typing import Any

import pytest

from agent.plain import plain
from agent.safeguards import RepeatGuard, call_key, flaw, is_call_shape, publishable, text_of
from agent.toolbox import Toolbox, legal_name
from tests.support.cases import a_tool


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        (3, ""),
        ("  x ", "x"),
        ([{"type": "text", "text": "one"}, {"type": "image_url"}, "two", None, {"text": None}], "one\ntwo"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}], "yes"),
        ("<think>a</think>b<THINK>c</THINK>d", "bd"),
        ("a <thinking>never closed", "a"),
        ("the opening tag was swallowed</think>yes", "yes"),
    ],
)
def test_content_in_any_form_is_text_without_reasoning(content: Any, text: str) -> None:
    assert text_of(content) == text


TOOLS = ["get_logs"]


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"get_logs","arguments":{"pod":"p1"}}',
        '[{"name":"get_logs","arguments":{}}]',
        '{"function":{"name":"get_logs","arguments":"{}"}}',
        '{"tool_calls":[]}',
        "<tool_call>\n{}\n</tool_call>",
        "<function=get_logs>{}</function>",
        '```json\n{"name": "get_logs"}\n```',
    ],
)
def test_a_call_written_as_text_is_told_apart(text: str) -> None:
    assert is_call_shape(text, TOOLS)
    assert "tool-call interface" in flaw(text, "stop", TOOLS)
    assert not publishable(text) or '"name"' not in text


@pytest.mark.parametrize(
    "text",
    [
        'The agent wrote {"name":"get_logs"} and stopped.',
        'Cause: bad config.\n```json\n{"name":"get_logs"}\n```\nFix it.',
        "<b>The disk</b> is full.",
        "[E1] shows that the disk is full.",
        "{app} is down.",
    ],
)
def test_prose_that_quotes_json_is_an_answer(text: str) -> None:
    assert flaw(text, "stop", TOOLS) == ""
    assert publishable(text)


def test_the_same_question_has_one_key_however_it_is_written() -> None:
    assert call_key("f", {"a": 1, "b": 2}) == call_key("f", {"b": 2, "a": 1})
    assert call_key("f", {"a": 1}) != call_key("g", {"a": 1})


def test_the_guard_counts_turns_and_forgets_when_the_answer_changes() -> None:
    guard = RepeatGuard(repeats=2)
    for _ in range(9):
        guard.note("k", 1, "T1", "same")
    assert guard.refusal("k", 2) == ""
    guard.note("k", 2, "T2", "same")
    assert guard.refusal("k", 2) == ""  # not yet for other calls of the turn
    assert "T1, T2" in guard.refusal("k", 3)
    guard.note("k", 3, "T3", "other")
    assert guard.refusal("k", 4) == ""


@pytest.mark.parametrize("name", ["x" * 70, "loki.query", "Größe", "", "a b"])
def test_any_name_becomes_one_that_providers_take(name: str) -> None:
    legal = legal_name(name)
    assert legal.isascii()
    assert 0 < len(legal) <= 64
    assert legal_name(name) == legal != legal_name(name + "2")
    assert legal_name(legal) == legal


def test_a_bad_tool_costs_itself_only(caplog: pytest.LogCaptureFixture) -> None:
    box = Toolbox(
        [a_tool("loki.query"), a_tool("good"), a_tool("good"), a_tool(""), a_tool("x" * 70), a_tool("x" * 71)]
    )
    assert len(box.names()) == 4
    assert len(caplog.records) == 2
    assert box.get(legal_name("loki.query")) is not None
    assert all(len(schema["function"]["name"]) <= 64 for schema in box.schemas)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("x\x1b]52;c;aGk=\x07y", "xy"),
        ("a\r\nb\rc\x00\x9b", "a\nbc"),
        ("tab\tok", "tab\tok"),
        ("\u202egnp.exe\U000e0041\u200b", "gnp.exe"),
        ("\ud800", "?"),
        ("emoji 🔥 日本", "emoji 🔥 日本"),
    ],
)
def test_plain_text_holds_nothing_hidden(text: str, wanted: str) -> None:
    assert plain(text) == wanted
