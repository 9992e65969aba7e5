"""What reaches the log, and what must not."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent.redaction import Redactor
from tests.support.logging_state import restored_logging
from worker.telemetry import MAX_FIELD_CHARS, escaped, set_up

SECRET = "made-up-credential-41"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    with restored_logging():
        yield


def stream(form: str = "json", level: str = "info", role: str = "") -> io.StringIO:
    out = io.StringIO()
    set_up(Redactor([SECRET]).redact, level=level, form=form, role=role, stream=out)
    return out


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


log = structlog.get_logger("rootcaused.test")


def test_an_event_is_one_json_object_with_time_level_role_and_what_was_bound_for_the_job() -> None:
    out = stream(role="worker-io")
    with structlog.contextvars.bound_contextvars(alert="pd:1"):
        log.info("polled", seen=3)
    log.info("after")
    first, second = lines(out)
    assert (first["event"], first["level"], first["role"], first["alert"], first["seen"]) == (
        "polled",
        "info",
        "worker-io",
        "pd:1",
        3,
    )
    assert first["timestamp"].endswith("Z")
    assert "alert" not in second


def test_a_second_set_up_replaces_the_first_and_keeps_the_role() -> None:
    first = stream(role="serve")
    second = stream()
    log.info("once")
    assert first.getvalue() == ""
    assert [line["role"] for line in lines(second)] == ["serve"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_secret_is_in_no_field_message_or_traceback(form: str) -> None:
    out = stream(form)
    log.info(SECRET, text=SECRET, nested={"list": [f"x{SECRET}"], SECRET: 1}, thing=Exception(SECRET))
    logging.getLogger("library").warning("with %s", SECRET)
    logging.getLogger("library").warning({"odd": SECRET})
    try:
        raise ValueError(SECRET) from KeyError(SECRET)
    except ValueError:
        log.exception("ours")
        logging.getLogger("library").exception("theirs")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(SECRET, stacklevel=1)
    threading.excepthook(threading.ExceptHookArgs((ValueError, ValueError(SECRET), None, None)))
    sys.excepthook(ValueError, ValueError(SECRET), None)
    text = out.getvalue()
    assert text.count("ValueError") >= 4
    assert SECRET not in text


def test_a_line_that_can_not_be_formatted_does_not_print_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    stream()
    logging.getLogger("library").warning("%d items", SECRET)
    err = capsys.readouterr().err
    assert "library" in err
    assert SECRET not in err


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize(
    "hostile",
    [
        "ok\n2026-01-01 ERROR all sources down",
        "\x1b]52;c;eA==\x07",
        "a\rb",
        "\u202eevil",
        "\U000e0041",
        "\ud800",
        "\u2028",
    ],
)
def test_hostile_text_stays_on_its_line_and_moves_nothing(form: str, hostile: str) -> None:
    out = stream(form)
    log.info(hostile, title=hostile)
    text = out.getvalue()
    assert text.count("\n") == 1
    assert all(c.isprintable() for c in text.rstrip("\n"))


def test_a_traceback_on_the_console_can_not_pass_for_log_lines() -> None:
    out = stream("console")
    try:
        raise ValueError("x\n2026-01-01T00:00:00Z info all is well")
    except ValueError:
        log.exception("boom")
    assert [line for line in out.getvalue().splitlines() if line.startswith("2026-01-01T00:00:00Z info all")] == []
    assert "    | 2026-01-01T00:00:00Z info all is well" in out.getvalue()


def test_a_huge_field_is_cut_after_redaction_and_says_so() -> None:
    out = stream()
    log.info("big", text="x" * (MAX_FIELD_CHARS // 2 - 5) + SECRET + "y" * 2_000_000)
    (line,) = lines(out)
    assert len(line["text"]) < MAX_FIELD_CHARS + 100
    assert "[cut: " in line["text"]
    assert SECRET[:6] not in line["text"]


def test_other_libraries_are_heard_from_warnings_on_and_the_model_library_never() -> None:
    out = stream(level="debug")
    log.debug("ours")
    logging.getLogger("urllib3.connectionpool").debug("GET /secret")
    logging.getLogger("celery.worker").info("received")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).critical("the whole request")
    logging.getLogger("celery.worker").warning("lost")
    assert [line["event"] for line in lines(out)] == ["ours", "lost"]


def test_litellm_in_debug_mode_prints_nothing_once_logging_is_set_up() -> None:
    """Probed: with LITELLM_LOG=DEBUG its import adds a handler of its own that prints requests with their keys."""
    code = (
        "import logging, sys\n"
        "from worker.telemetry import set_up\n"
        "set_up(lambda text: text, level='debug', form='json')\n"
        "logger = logging.getLogger('LiteLLM')\n"
        "logger.addHandler(logging.StreamHandler()); logger.setLevel('DEBUG')\n"  # what the import does
        "logger.debug('api_key=sk-test-LEAK-1')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "LEAK" not in done.stdout + done.stderr


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text(max_size=40) | st.floats() | st.binary(max_size=9)))
def test_any_fields_make_one_readable_line(fields: dict[str, Any]) -> None:
    for form in ("json", "console"):
        out = stream(form)
        log.info("event", **fields)
        assert out.getvalue().count("\n") == 1
        assert out.getvalue().rstrip("\n").isprintable()


@given(st.text())
def test_escaped_text_is_printable_and_ordinary_text_is_left_alone(text: str) -> None:
    assert escaped("Größe ok") == "Größe ok"
    assert escaped(text).isprintable()
