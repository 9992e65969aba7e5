"""Log lines in few words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolsets.lines import MAX_CHARS, Line, fold, template, text_of, tidy

T0 = 1_796_083_200.0  # 2026-12-01T00:00:00Z


def line(second: int, text: str, **labels: str) -> Line:
    return Line(at=T0 + second, labels=labels, text=text)


def test_lines_come_in_order_of_time_with_common_labels_said_once() -> None:
    text = text_of([line(2, "two", app="x", pod="b"), line(1, "one", app="x", pod="a")])
    assert text.splitlines() == [
        '2 lines, all from {app="x"}',
        '2026-12-01T00:00:01Z {pod="a"} one',
        '2026-12-01T00:00:02Z {pod="b"} two',
    ]


def test_alike_lines_are_folded_into_the_first_with_a_count() -> None:
    ids = [f"9f8e7d6c-0000-4000-8000-00000000000{at}" for at in range(5)]
    lines = [line(at, f"GET /users/{at} took {at * 3}ms id={ids[at]}", pod=f"p{at % 2}") for at in range(5)]
    assert text_of([*lines, line(9, "started")]).splitlines()[1:] == [
        f'2026-12-01T00:00:00Z {{pod="p0"}} (x5 until 00:00:04 in 2 streams) GET /users/0 took 0ms id={ids[0]}',
        "2026-12-01T00:00:09Z started",
    ]


def test_over_the_cap_errors_and_rare_lines_are_kept_and_the_order_stays() -> None:
    words = [chr(97 + index // 26) + chr(97 + index % 26) for index in range(400)]
    noise = [line(at, f"handled {words[at % 300]} fine as ever and as always", pod="a") for at in range(3_000)]
    text = text_of(
        [*noise, line(1_500, "connection refused by db", pod="a"), line(2_000, "quiet oddity once", pod="a")]
    )
    assert len(text) < MAX_CHARS + 400
    assert "kinds of line shown" in text
    assert text.index("connection refused by db") < text.index("quiet oddity once")
    times = [row[:20] for row in text.splitlines()[2:]]
    assert times == sorted(times)


def test_colours_and_control_characters_are_left_out_and_long_lines_cut() -> None:
    assert tidy("\x1b[31mred\x1b[0m\x00\n") == "red"
    assert tidy("x" * 1_000).endswith("…[400 more characters]")


def test_templates_differ_where_the_words_differ() -> None:
    assert template("user 17 at 10.0.0.1:80") == template("user 4 at 10.9.8.7:443")
    assert template("user joined") != template("user left")


@given(st.lists(st.tuples(st.integers(0, 100), st.text(max_size=40)), min_size=1, max_size=40))
def test_no_line_is_lost_in_folding(pairs: list[tuple[int, str]]) -> None:
    lines = [line(at, text) for at, text in pairs]
    assert sum(one.count for one in fold(lines)) == len(lines)
    assert text_of(lines)
