"""The configuration of code mode."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Require = Literal["full", "partial", "none"]
Seconds = Annotated[float, Field(gt=0)]


class CodeModeConfig(BaseModel):
    """`require` is the isolation without which the tool is not offered; see docs/code-mode.md.

    A run may take `wall_seconds`, which must be more than `limits.tool_seconds` (each call a script makes has that)
    and less than `limits.run_seconds`. Of the output, `output_bytes` are kept (both ends); past `flood_bytes` the run
    is ended. `frame_bytes` bounds one request of the script, `result_bytes` one result handed to it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    require: Require = "full"
    wall_seconds: Seconds = 120
    cpu_seconds: int = Field(default=30, gt=0)
    memory_mb: int = Field(default=512, ge=96)
    output_bytes: int = Field(default=100_000, ge=1_000)
    flood_bytes: int = Field(default=20_000_000, ge=1_000)
    sub_calls: int = Field(default=200, gt=0)
    concurrent_scripts: int = Field(default=4, gt=0)
    concurrent_sub_calls: int = Field(default=64, gt=0, le=256)
    frame_bytes: int = Field(default=1_000_000, ge=1_000)
    result_bytes: int = Field(default=20_000_000, ge=1_000)
    code_bytes: int = Field(default=200_000, ge=1_000)
    fork_server: bool = True

    def misfit(self, *, tool_seconds: float, run_seconds: float) -> str:
        """What is wrong with the order of the times, for the check at start-up: call < script < investigation."""
        if not self.enabled or tool_seconds < self.wall_seconds < run_seconds:
            return ""
        return (
            f"code_mode.wall_seconds ({self.wall_seconds:g}) must be more than limits.tool_seconds ({tool_seconds:g}) "
            f"and less than limits.run_seconds ({run_seconds:g})"
        )
