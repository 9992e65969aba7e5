"""Times as a model writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.alert import Alert
from agent.errors import ToolError
from toolsets.timerange import duration, moment, span, stamp, window

NOW = datetime(2026, 12, 1, 12, 0, 0, 250, tzinfo=UTC)
WHOLE = NOW.replace(microsecond=0)
FIRED = WHOLE - timedelta(hours=2)


def alert(starts_at: datetime | None = FIRED) -> Alert:
    return Alert(source="am", id="1", title="t", starts_at=starts_at)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01T02:03:04Z", "2026-12-01T02:03:04Z"),
        ("2026-12-01T10:03:04.123456789+08:00", "2026-12-01T02:03:04Z"),
        ("2026-12-01 02:03:04", "2026-12-01T02:03:04Z"),
        ("2026-12-01", "2026-12-01T00:00:00Z"),
        (1796090584, "2026-12-01T02:03:04Z"),
        ("1796090584.5", "2026-12-01T02:03:04Z"),
        (1796090584000, "2026-12-01T02:03:04Z"),
        ("1796090584000000000", "2026-12-01T02:03:04Z"),
        ("now", "2026-12-01T12:00:00Z"),
        ("NOW - 1h30m", "2026-12-01T10:30:00Z"),
        ("-1h", "2026-12-01T11:00:00Z"),
        ("-1h ago", "2026-12-01T11:00:00Z"),
        (-3600, "2026-12-01T11:00:00Z"),
        ("-5", "2026-12-01T11:59:55Z"),
        ("alert", "2026-12-01T10:00:00Z"),
        ("alert-10m", "2026-12-01T09:50:00Z"),
        ("alert+5m", "2026-12-01T10:05:00Z"),
    ],
)
def test_a_time_is_read_in_every_form_a_model_uses(text: object, expected: str) -> None:
    at = moment(text, alert=alert(), now=NOW)
    assert at is not None
    assert stamp(at) == expected


@pytest.mark.parametrize(
    "text", ["yesterday", "0", "nan", "inf", "1e400", "-1x", "-99999999y", "9" * 40, True, [], {}, "now-", "-0s"]
)
def test_a_time_that_cannot_be_read_is_an_error_for_the_model(text: object) -> None:
    with pytest.raises(ToolError):
        moment(text, alert=alert(), now=NOW)


def test_no_time_is_no_moment() -> None:
    assert moment(None, alert=alert(), now=NOW) is None
    assert moment("", alert=alert(), now=NOW) is None


def test_the_default_window_is_an_hour_before_the_alert_to_now() -> None:
    assert str(window({}, alert(), now=NOW)) == "from 2026-12-01T09:00:00Z to 2026-12-01T12:00:00Z"


def test_the_default_window_of_an_old_alert_ends_six_hours_after_it() -> None:
    old = window({}, alert(WHOLE - timedelta(days=3)), now=NOW)
    assert old.end == WHOLE - timedelta(days=3) + timedelta(hours=6)
    assert old.seconds == 7 * 3600


@pytest.mark.parametrize("starts_at", [None, datetime(2031, 2, 3, tzinfo=UTC)])
def test_an_alert_without_a_time_or_from_the_future_began_now(starts_at: datetime | None) -> None:
    assert str(window({}, alert(starts_at), now=NOW)) == "from 2026-12-01T11:00:00Z to 2026-12-01T12:00:00Z"


def test_a_relative_start_counts_back_from_the_given_end() -> None:
    seen = window({"start": "-30m", "end": "2026-11-30T10:00:00Z"}, alert(), now=NOW)
    assert str(seen) == "from 2026-11-30T09:30:00Z to 2026-11-30T10:00:00Z"


def test_a_start_after_the_default_end_looks_up_to_now() -> None:
    seen = window({"start": "-1h"}, alert(WHOLE - timedelta(days=3)), now=NOW)
    assert str(seen) == "from 2026-12-01T11:00:00Z to 2026-12-01T12:00:00Z"


def test_an_end_before_the_default_start_looks_an_hour_back() -> None:
    seen = window({"end": "2026-11-01T10:00:00Z"}, alert(), now=NOW)
    assert str(seen) == "from 2026-11-01T09:00:00Z to 2026-11-01T10:00:00Z"


@pytest.mark.parametrize("end", ["2026-12-01T10:00:00Z", "2026-12-01T09:00:00Z"])
def test_an_end_that_is_not_after_the_start_is_refused(end: str) -> None:
    with pytest.raises(ToolError, match="must be after start"):
        window({"start": "2026-12-01T10:00:00Z", "end": end}, alert(), now=NOW)


@pytest.mark.parametrize("text", ["0", "-5", "abc", "", "nan", "inf", "0s", None, "1e300"])
def test_a_duration_must_be_above_zero(text: object) -> None:
    with pytest.raises(ToolError):
        duration(text)


def test_durations_are_read_and_written_as_prometheus_does() -> None:
    assert duration("1h30m") == 5400
    assert duration("500ms") == 0.5
    assert duration(15) == 15
    assert span(5400) == "1h30m"
    assert span(0.5) == "500ms"


@given(st.integers(min_value=1, max_value=10_000_000))
def test_a_duration_survives_being_written_and_read(seconds: int) -> None:
    assert duration(span(seconds)) == seconds


@given(st.text(max_size=30) | st.integers() | st.floats())
def test_no_text_breaks_the_reader(value: object) -> None:
    try:
        at = moment(value, alert=alert(), now=NOW)
    except ToolError:
        return
    assert at is None or at.tzinfo is not None
