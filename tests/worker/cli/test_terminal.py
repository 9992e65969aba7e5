"""Text for the terminal."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.cli.exits import Misused
from worker.cli.terminal import age, clean, one_line, since

NOW = datetime(2031, 2, 3, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[2J\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]52;c;aGk=\x07b", "ab"),
        ("a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x9b31mb", "ab"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("100%\rall is well", "100%\nall is well"),
        ("pay\u202eload", "payload"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("half\ud800", "half"),
        ("nul\x00 bell\x07", "nul bell"),
        ("Größe 日本 ok\tx", "Größe 日本 ok\tx"),
    ],
)
def test_nothing_but_text_reaches_the_terminal(hostile: str, harmless: str) -> None:
    assert clean(hostile) == harmless


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b\x9b[]P;m\x07\\\r\n")))
def test_cleaned_text_has_no_controls_and_cleaning_twice_changes_nothing(text: str) -> None:
    done = clean(text)
    assert clean(done) == done
    assert not [c for c in done if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    assert "\n" not in one_line(text)


@given(st.text(alphabet="abc XYZ123äöü€.,:-_/\n", max_size=200))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", NOW - timedelta(minutes=90)),
        ("24h", NOW - timedelta(hours=24)),
        ("1.5d", NOW - timedelta(hours=36)),
        ("2w", NOW - timedelta(days=14)),
        ("2031-02-01", datetime(2031, 2, 1, tzinfo=UTC)),
        ("2031-02-01T10:00:00+02:00", datetime(2031, 2, 1, 8, tzinfo=UTC)),
        ("", None),
    ],
)
def test_since_takes_spans_and_times(text: str, at: datetime | None) -> None:
    assert since(text, NOW) == at


@pytest.mark.parametrize("text", ["yesterday", "24", "-3h", "99999999999w", "1e9d", "h"])
def test_since_refuses_what_it_can_not_read(text: str) -> None:
    with pytest.raises(Misused, match="--since"):
        since(text, NOW)


def test_an_age_is_told_in_one_unit() -> None:
    ages = [age(NOW - timedelta(seconds=seconds), NOW) for seconds in (-5, 59, 60, 3_600, 90_000, 86_400 * 40)]
    assert ages == ["0s", "59s", "1m", "1h", "1d", "40d"]
