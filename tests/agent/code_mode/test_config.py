from __future__ import annotations

import pytest
from pydantic import ValidationError

from agent.code_mode.config import CodeModeConfig


def test_off_and_strict_by_default() -> None:
    config = CodeModeConfig()
    assert (config.enabled, config.require) == (False, "full")


@pytest.mark.parametrize(
    "wrong", [{"require": "some"}, {"wall_seconds": 0}, {"memory_mb": 8}, {"sub_calls": 0}, {"wal_seconds": 1}]
)
def test_what_can_not_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CodeModeConfig.model_validate(wrong)


def test_a_script_has_longer_than_a_call_and_less_than_the_investigation() -> None:
    config = CodeModeConfig(enabled=True, wall_seconds=100)
    assert config.misfit(tool_seconds=60, run_seconds=1_200) == ""
    assert "must be more than limits.tool_seconds (100)" in config.misfit(tool_seconds=100, run_seconds=1_200)
    assert "less than limits.run_seconds (100)" in config.misfit(tool_seconds=60, run_seconds=100)
    assert CodeModeConfig(wall_seconds=1).misfit(tool_seconds=60, run_seconds=1_200) == ""
