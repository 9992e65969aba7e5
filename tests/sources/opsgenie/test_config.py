"""What an operator may write, and what costs nothing to read."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.alert import Alert
from sources.opsgenie.alerts import read
from sources.opsgenie.config import JsmOpsConfig, OpsGenieConfig
from sources.port import Broken, Destination, Source
from tests.support.opsgenie_api import ops_alert
from tests.support.opsgenie_sources import jsm_ops, opsgenie

JSM = {"email": "bot@example.org", "api_token": "secret-1", "site": "https://acme.atlassian.net"}


def test_start_up_can_say_that_opsgenie_ends() -> None:
    assert "2027-04-05" in OpsGenieConfig.model_validate({"api_key": "k"}).notice
    assert "jsm_ops" in opsgenie("http://127.0.0.1:9").notice
    assert jsm_ops("http://127.0.0.1:9").notice == ""


def test_both_are_sources_and_destinations() -> None:
    for built in (opsgenie("http://127.0.0.1:9"), jsm_ops("http://127.0.0.1:9")):
        source: Source = built  # the type checker holds it against the port
        assert isinstance(built, Destination)
        assert source.name == "ops"


def test_no_configuration_shows_its_secrets() -> None:
    one = OpsGenieConfig.model_validate({"api_key": "secret-1", "webhook_token": "secret-2"})
    two = JsmOpsConfig.model_validate({**JSM, "webhook_token": "secret-2"})
    assert "secret-" not in f"{one!r}{two!r}"


@pytest.mark.parametrize("written", [
    {}, {"api_key": "k", "url": "http://api.opsgenie.com"}, {"api_key": "k", "user": ""},
    {"api_key": "k", "tag": "x" * 51}, {"api_key": "k", "api_kee": "k"}, {"api_key": "k", "max_note_chars": 25_001},
    {"api_key": "k", "webhook_header": "a b"},
])  # fmt: skip
def test_a_wrong_opsgenie_source_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OpsGenieConfig.model_validate(written)


@pytest.mark.parametrize("changes", [
    {"site": None}, {"site": "http://acme.atlassian.net"}, {"email": "bot"}, {"cloud_id": "../x"}, {"account": "x"},
])  # fmt: skip
def test_a_wrong_jsm_source_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JsmOpsConfig.model_validate({**JSM, **changes})


def test_reading_the_configuration_loads_no_client_library() -> None:
    heavy = "{'requests', 'urllib3', 'celery', 'litellm', 'redis'}"
    script = f"import sys, sources.opsgenie.config; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(ops_alert("A1"))), ANYTHING))
def test_whatever_a_field_holds_costs_the_alert_alone(changes: dict[str, Any]) -> None:
    assert isinstance(read("ops", {**ops_alert("A1"), **changes}), Alert | Broken)


@given(st.dictionaries(st.sampled_from(sorted({*ops_alert("A1")} - {"id"})), ANYTHING))
def test_an_alert_with_an_id_is_read_whatever_else_it_holds(changes: dict[str, Any]) -> None:
    assert isinstance(read("ops", {**ops_alert("A1"), **changes}), Alert)
