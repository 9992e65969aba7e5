"""Series as text."""

from __future__ import annotations

import json
import math
import time

from toolsets.series.statistics import Series
from toolsets.series.text import MAX_CHARS, Grid, as_value, instant_text, number, range_text, selector

T0 = 1_796_083_200.0  # 2026-12-01T00:00:00Z


def gauge(values: list[float], start: float = T0, **labels: str) -> Series:
    return Series(labels=labels, points=tuple((start + 60 * index, value) for index, value in enumerate(values)))


def grid(points: int = 40) -> Grid:
    return Grid(start=T0, end=T0 + 60 * (points - 1), step=60)


def test_numbers_are_short_and_readable() -> None:
    values = (0.0, 1.0, 1_073_741_824.0, 12_345.678, 0.00123456, 2.5, math.nan, math.inf, -math.inf, 1e20, 1e-9)
    expected = "0 1 1073741824 12346 0.001235 2.5 NaN +Inf -Inf 1e+20 1e-09"
    assert " ".join(number(value) for value in values) == expected


def test_a_series_is_one_line_with_its_change_point() -> None:
    text = range_text([gauge([1.0] * 20 + [9.0] * 20, __name__="load", pod="a")], grid())
    head, line, note = text.splitlines()
    assert head == "1 series, step 1m"
    assert line == (
        'load{pod="a"} first=1 last=9 min=1 (at 00:00:00) max=9 (at 00:20:00) avg=5; '
        "step from 1 to 9 at 2026-12-01T00:20:00Z; shape 00000000009999999999"
    )
    assert note == "shape: 0 lowest to 9 highest over the window"


def test_common_labels_are_said_once_and_the_largest_change_comes_first() -> None:
    text = range_text(
        [
            gauge([5.0] * 10, __name__="load", job="x", pod="calm"),
            gauge([1.0, 2.0] * 5, __name__="load", job="x", pod="nervous"),
            gauge([1.0, 90.0] * 5, __name__="load", job="x", pod="wild"),
        ],
        grid(10),
    )
    lines = text.splitlines()
    assert lines[0] == '3 series, step 1m; all have load{job="x"}'
    assert [line.partition(" ")[0] for line in lines[1:4]] == ['{pod="wild"}', '{pod="nervous"}', '{pod="calm"}']
    assert lines[3] == '{pod="calm"} constant 5'


def test_too_many_series_are_cut_with_count_and_cardinality() -> None:
    every = [gauge([0.0, float(index)], pod=f"p{index}", zone=f"z{index % 3}") for index in range(5_000)]
    text = range_text(every, grid())
    assert len(text) < MAX_CHARS + 600
    assert "of 5000 series shown, by largest change; narrow with" in text
    assert "topk(10, ...)" in text
    assert "distinct label values: pod 5000, zone 3" in text
    assert text.splitlines()[3].startswith('{pod="p4999",zone="z1"}')


def test_a_late_begin_an_early_end_and_holes_are_said() -> None:
    full = gauge([1.0] * 30, pod="a")
    late = gauge([1.0] * 10, start=T0 + 600, pod="b")
    holes = Series(labels={"pod": "c"}, points=tuple((T0 + 60 * index, 1.0) for index in range(30) if index % 10 != 5))
    text = range_text([full, late, holes], grid(30))
    assert '{pod="b"} constant 1; begins 2026-12-01T00:10:00Z; ends 2026-12-01T00:19:00Z' in text
    assert '{pod="c"} constant 1; 3 of 30 points missing' in text
    assert '{pod="a"} constant 1\n' in text


def test_a_series_alone_that_ended_before_the_window_did_says_so() -> None:
    assert range_text([gauge([1.0] * 10, pod="a")], grid(30)).endswith(
        '{pod="a"} constant 1; ends 2026-12-01T00:09:00Z'
    )


def test_a_window_of_more_than_a_day_shows_dates() -> None:
    long = Grid(start=T0, end=T0 + 2 * 86_400, step=60)
    assert "max=2 (at 2026-12-01T00:01:00Z)" in range_text([gauge([1.0, 2.0, 1.0])], long)


def test_a_counter_is_shown_by_its_increase_and_the_model_is_told_to_use_rate() -> None:
    text = range_text([gauge([0.0, 60.0, 120.0, 0.0, 60.0], __name__="x_total")], grid(5))
    assert "counter first=0 last=60 increase=180 (0.75/s) resets=1 (last at 00:03:00)" in text
    assert "use rate(metric[5m])" in text


def test_series_of_nan_only_are_counted() -> None:
    text = range_text([gauge([math.nan] * 3, pod="a"), gauge([1.0] * 3, pod="b")], grid(3))
    assert "1 series with NaN or infinite points only" in text
    assert "PARTIAL" not in text


def test_instant_values_come_largest_first_and_nan_last() -> None:
    every = [gauge([value], pod=name) for name, value in (("a", 1.0), ("b", math.nan), ("c", 7.0))]
    assert instant_text(every, at="now").splitlines()[1:] == ['{pod="c"} 7', '{pod="a"} 1', '{pod="b"} NaN']


def test_label_values_are_escaped_and_cut() -> None:
    assert selector({"__name__": "up", "path": 'a"b\nc' + "x" * 500}).startswith('up{path="a\\"b\\nc')
    assert len(selector({"path": "x" * 500})) < 140


def test_the_value_for_code_is_json_and_cut_by_whole_series() -> None:
    every = [gauge([float(index), math.nan] * 600, pod=str(index)) for index in range(100)]
    value = as_value(every)
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    assert 1 <= len(value) < 100
    assert all(len(one["values"]) == 1_200 for one in value)


def test_five_thousand_long_series_are_summarised_in_time() -> None:
    points = tuple((T0 + 60 * index, float(index % 7)) for index in range(300))
    every = [Series(labels={"pod": str(index)}, points=points) for index in range(5_000)]
    began = time.process_time()
    range_text(every, grid())
    assert time.process_time() - began < 3
