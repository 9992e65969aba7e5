"""How many examples a property is tried on: few by default, thousands where ROOTCAUSED_EXAMPLES says so."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(default: int = 60) -> settings:
    """A decorator for a property; the environment's figure is for the default of 60, others scale with it."""
    wanted = int(os.environ.get("ROOTCAUSED_EXAMPLES", "60"))
    return settings(max_examples=max(1, wanted * default // 60), deadline=None)
