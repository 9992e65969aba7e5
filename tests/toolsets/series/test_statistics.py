"""What a series did, in numbers."""

from __future__ import annotations

import math
import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from toolsets.series.statistics import Change, Series, Trend, change_of, shape, summarise


def series(*values: float, name: str = "cpu", step: float = 60.0) -> Series:
    return Series(labels={"__name__": name}, points=tuple((index * step, value) for index, value in enumerate(values)))


def points(*values: float) -> list[tuple[float, float]]:
    return list(series(*values).points)


def test_a_step_is_found_where_it_happened() -> None:
    change = change_of(points(*[1.0] * 20, *[9.0] * 10))
    assert change == Change(at=20 * 60.0, before=1.0, after=9.0)


def test_a_step_is_found_in_noise() -> None:
    noise = random.Random(7)
    change = change_of(points(*(noise.gauss(10, 1) for _ in range(100)), *(noise.gauss(14, 1) for _ in range(60))))
    assert isinstance(change, Change)
    assert abs(change.at - 100 * 60) <= 3 * 60
    assert abs(change.before - 10) < 0.5
    assert abs(change.after - 14) < 0.5


def test_a_level_that_went_and_came_back_has_both_times() -> None:
    change = change_of(points(*[2.0] * 30, *[50.0] * 10, *[2.0] * 40))
    assert change == Change(at=30 * 60.0, before=2.0, after=50.0, until=40 * 60.0)


def test_noise_alone_has_no_change_point() -> None:
    noise = random.Random(11)
    runs = [change_of(points(*(noise.gauss(0, 1) for _ in range(length)))) for length in (8, 12, 30, 240) * 25]
    assert sum(run is not None for run in runs) <= 1


def test_one_outlier_is_no_level() -> None:
    assert change_of(points(*[1.0] * 20, 500.0, *[1.0] * 20)) is None


def test_a_steady_rise_is_a_trend_and_no_step() -> None:
    trend = change_of(points(*(float(index) for index in range(60))))
    assert isinstance(trend, Trend)
    assert math.isclose(trend.per_second, 1 / 60)


def test_too_few_points_say_nothing() -> None:
    assert change_of(points(1, 1, 1, 9, 9, 9)) is None


def test_a_counter_is_known_by_name_and_growth_and_counts_over_resets() -> None:
    summary = summarise(series(100, 160, 220, 10, 70, name="http_requests_total"))
    assert summary is not None
    assert summary.counter
    assert summary.increase == 60 + 60 + 10 + 60
    assert summary.resets == (180.0,)


def test_a_gauge_that_happens_to_grow_is_no_counter() -> None:
    summary = summarise(series(1, 2, 3, name="queue_length"))
    assert summary is not None
    assert not summary.counter


def test_what_falls_below_zero_or_falls_often_is_no_counter_whatever_its_name() -> None:
    for values in ((0, -5, 1), (9, 1, 8, 2, 7, 3)):
        summary = summarise(series(*values, name="balance_total"))
        assert summary is not None
        assert not summary.counter


def test_a_counters_change_point_is_of_its_rate() -> None:
    values = [float(60 * index) for index in range(20)] + [19 * 60 + 600.0 * index for index in range(1, 21)]
    summary = summarise(series(*values, name="errors_total"))
    assert summary is not None
    assert summary.change == Change(at=20 * 60.0, before=1.0, after=10.0)


def test_nan_and_infinities_are_left_out_and_counted() -> None:
    summary = summarise(series(1, math.nan, 3, math.inf))
    assert summary is not None
    assert (summary.count, summary.nonfinite, summary.high[1]) == (2, 2, 3)


def test_a_series_without_a_finite_point_has_no_summary() -> None:
    assert summarise(series(math.nan, math.nan)) is None


def test_the_shape_shows_a_spike_in_its_place() -> None:
    assert shape([0.0] * 30 + [9.0] * 10) == "0" * 15 + "9" * 5
    assert shape([4.0, 4.0]) == ""


@given(st.lists(st.floats(), max_size=60), st.sampled_from(["gauge", "x_total"]))
def test_any_values_give_a_summary_within_their_extremes(values: list[float], name: str) -> None:
    summary = summarise(series(*values, name=name))
    finite = [value for value in values if math.isfinite(value)]
    assert (summary is None) == (not finite)
    if summary:
        assert min(finite) <= summary.mean <= max(finite)
        assert summary.low[1] == min(finite)
        assert summary.high[1] == max(finite)
        assert summary.count + summary.nonfinite == len(values)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=40))
def test_a_counters_increase_is_never_negative_and_exact_without_resets(increments: list[int]) -> None:
    total, values = 0, []
    for increment in increments:
        total += increment
        values.append(float(total))
    summary = summarise(series(*values, name="x_total"))
    assert summary is not None
    assert all(after >= before for before, after in pairwise(values))
    assert summary.increase == values[-1] - values[0]
