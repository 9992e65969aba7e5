"""Logging as it was: for tests of code that configures the process."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

NAMES = ("rootcaused", "uvicorn.error", "LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm")


@contextmanager
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    loggers = {name: (logging.getLogger(name).level, logging.getLogger(name).disabled) for name in NAMES}
    hooks = sys.excepthook, threading.excepthook
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers = handlers
        root.setLevel(level)
        for name, (old_level, disabled) in loggers.items():
            logging.getLogger(name).setLevel(old_level)
            logging.getLogger(name).disabled = disabled
        sys.excepthook, threading.excepthook = hooks
        structlog.reset_defaults()
