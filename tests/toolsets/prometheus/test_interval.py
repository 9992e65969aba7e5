from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from toolsets.prometheus.interval import ending_on_a_step
from toolsets.timerange import Window

END = datetime(2031, 2, 3, 12, 0, 8, 900_000, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [0.4, 15.0, 3_600.0, 3_608.9])
def test_the_end_of_the_window_is_a_step(seconds: float) -> None:
    before = Window(start=END - timedelta(seconds=seconds), end=END)
    after = ending_on_a_step(before, 15.0)
    assert after.end == END
    assert before.start <= after.start < before.start + timedelta(seconds=15)
    assert after.seconds % 15 == pytest.approx(0)
