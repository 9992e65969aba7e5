"""The size is never underestimated as the history grows, and it shrinks in whole units."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.history import History
from agent.model import Message

SYSTEM: Message = {"role": "system", "content": "You find causes."}
ALERT: Message = {"role": "user", "content": "<alert>"}


def a_turn(number: int, size: int = 3_000) -> list[tuple[Message, str]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    content = f"T{number} success\n\n" + "x" * size
    return [
        ({"role": "assistant", "content": None, "tool_calls": [call]}, ""),
        ({"role": "tool", "tool_call_id": f"c{number}", "content": content}, f"T{number}"),
    ]


def a_history(turns: int, size: int = 3_000) -> History:
    history = History()
    history.pin([SYSTEM, ALERT])
    for number in range(1, turns + 1):
        for message, ref in a_turn(number, size):
            history.add(message, ref)
    return history


CONTENT = st.one_of(st.none(), st.text(), st.lists(st.dictionaries(st.text(), st.text())))


@given(st.lists(st.builds(lambda content, extra: {"role": "user", "content": content, "x": extra}, CONTENT, st.text())))
def test_the_estimate_never_goes_down_as_messages_are_added(messages: list[Message]) -> None:
    history = History()
    before = history.tokens
    for message in messages:
        history.add(message)
        assert history.tokens > before
        before = history.tokens


def test_names_arguments_ids_and_schemas_count() -> None:
    history = History(overhead_bytes=9_000)
    assert history.tokens > 2_999
    arguments = "y" * 20_000
    history.add({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]})
    assert history.tokens > 9_600


def test_five_megabytes_are_estimated_at_once() -> None:
    for text in ("a" * 5_000_000, "日" * 1_700_000):
        history = History()
        begun = time.thread_time()
        history.add({"role": "user", "content": text})
        assert time.thread_time() - begun < 0.3  # some 0.02 on a quiet machine; a tokenizer takes many seconds
        assert history.tokens > 1_600_000


def test_the_estimate_follows_what_the_provider_counted() -> None:
    history = a_history(4)
    history.counted(8_000)
    assert abs(history.tokens - 8_000) < 10
    history.counted(0)  # a provider that does not say
    assert abs(history.tokens - 8_000) < 10


def test_old_results_are_cleared_first_and_say_how_to_read_them_again() -> None:
    history = a_history(5)
    assistants = [message for message in history.messages if message["role"] == "assistant"]
    history.compact(3_500)
    contents = [message["content"] for message in history.messages if message["role"] == "tool"]
    assert contents[0] == "T1 success\n\n[cleared to save room; read it again with read_result(ref='T1')]"
    assert contents[-1].endswith("xxx")
    assert [message for message in history.messages if message["role"] == "assistant"] == assistants
    assert history.tokens <= 3_500


def test_then_whole_turns_go_and_the_first_messages_and_the_last_turn_stay() -> None:
    history = a_history(30)
    for _ in range(3):
        history.compact(500)
        assert history.messages[:2] == [SYSTEM, ALERT]
        assert [message for message, _ in a_turn(30)] == history.messages[-2:]
        assert len(history.messages) == 5
        assert _paired(history.messages)


@given(st.lists(st.integers(0, 3_000), max_size=12), st.lists(st.integers(1, 9_000), max_size=4))
def test_call_and_result_stay_together_and_the_size_stays_right(sizes: list[int], targets: list[int]) -> None:
    history = a_history(0)
    for number, size in enumerate(sizes, start=1):
        for message, ref in a_turn(number, size):
            history.add(message, ref)
        for target in targets:
            history.compact(target)
            assert _paired(history.messages)
            afresh = History()
            for message in history.messages:
                afresh.add(message)
            assert history.tokens == afresh.tokens


def test_when_nothing_else_helps_the_last_results_are_cleared_as_well() -> None:
    history = a_history(1, size=90_000)
    history.compact(1_000)
    assert history.tokens > 30_000
    history.compact(1_000, spare_last=False)
    assert history.tokens < 1_000


def _paired(messages: list[dict[str, Any]]) -> bool:
    asked = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    return asked == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
