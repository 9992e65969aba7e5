"""Vendor specs and recorded data that are not part of this repository: where they are, and tests that need them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])


def shared_dir() -> Path | None:
    """`ROOTCAUSED_SHARED`, else the folder `shared` next to the repository; None when there is neither."""
    named = os.environ.get("ROOTCAUSED_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    return folder if folder.is_dir() else None


def shared_file(name: str) -> Path:
    """A file below it, for tests marked with `needs_shared`."""
    folder = shared_dir()
    assert folder is not None
    return folder / name


def needs_shared(test: Test) -> Test:
    """Marks a test that reads the shared folder, and skips it where there is none."""
    skip = pytest.mark.skipif(shared_dir() is None, reason="no shared folder: set ROOTCAUSED_SHARED")
    marked: Test = pytest.mark.shared(skip(test))
    return marked
