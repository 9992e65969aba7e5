from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.code_mode.output import Output


@settings(deadline=None)
@given(parts=st.lists(st.binary(max_size=300)), limit=st.integers(4, 400))
def test_both_ends_are_kept_and_what_is_lost_is_counted(parts: list[bytes], limit: int) -> None:
    output = Output(limit)
    for part in parts:
        output.feed(part)
    whole = b"".join(parts)
    assert output.total == len(whole)
    assert output.lost == max(0, len(whole) - limit)
    assert len(output.text()) <= limit + 40
    if len(whole) <= limit:
        assert output.text() == whole.decode("utf-8", "replace").replace("\0", "")
    else:
        assert f"[{output.lost} bytes left out]" in output.text()


def test_memory_stays_bounded_while_a_flood_goes_by() -> None:
    output = Output(1_000)
    for _ in range(1_000):
        output.feed(b"x" * 10_000)
    assert len(output._tail) <= 11_000
    assert output.lost == 10_000_000 - 1_000
