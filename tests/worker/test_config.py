"""The configuration file: references, and errors that name file, line and key and show no value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator

from agent.errors import ConfigError
from worker.config import PLACES, find, json_schema, load, redacted
from worker.settings import Settings

Load = Callable[..., Settings]


@pytest.fixture
def config(tmp_path: Path) -> Load:
    def make(text: str, **env: str) -> Settings:
        file = tmp_path / "config.yaml"
        file.write_text(text)
        return load(file, env)

    return make


def faults(config: Load, text: str, **env: str) -> list[str]:
    """The lines of the error, from the line number on."""
    with pytest.raises(ConfigError) as caught:
        config(text, **env)
    lines = str(caught.value).splitlines()
    assert all("config.yaml:" in line for line in lines), lines
    return [line.partition("config.yaml:")[2] for line in lines]


PD = "sources:\n  pd:\n    kind: pagerduty\n    from_email: a@example.com\n"


# -- finding -------------------------------------------------------------------------------------------------------


def test_the_file_given_goes_before_the_one_in_the_environment_and_that_before_the_usual_places(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("given.yaml", "named.yaml", "usual.yaml")]
    for file in files:
        file.write_text("")
    env = {"ROOTCAUSED_CONFIG": str(files[1])}
    usual = (tmp_path / "none.yaml", files[2])
    assert find(files[0], env, usual) == files[0]
    assert find(None, env, usual) == files[1]
    assert find(None, {}, usual) == files[2]
    assert find(None, {}, (tmp_path / "none.yaml",)) is None
    assert [str(place) for place in PLACES] == ["rootcaused.yaml", "/etc/rootcaused/config.yaml"]


@pytest.mark.parametrize("make", [lambda file: None, lambda file: file.mkdir()])
def test_a_file_that_was_named_and_is_none_is_an_error(tmp_path: Path, make: Callable[[Path], None]) -> None:
    file = tmp_path / "config.yaml"
    make(file)
    for given_, env in ((file, {}), (None, {"ROOTCAUSED_CONFIG": str(file)})):
        with pytest.raises(ConfigError, match=r"config\.yaml"):
            load(given_, env)


def test_without_a_file_there_are_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None, {}) == Settings()


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "\ufeffteam: {}\n"])
def test_an_empty_file_is_the_defaults(config: Load, text: str) -> None:
    assert config(text) == Settings()


# -- references ----------------------------------------------------------------------------------------------------


def test_references_are_filled_in_anywhere_in_a_text(config: Load) -> None:
    text = "team: {instructions: 'a ${ONE} and ${TWO:-two} ${EMPTY:-} ${TWO:-x:y}'}\nserver: {port: '${PORT}'}\n"
    settings = config(text, ONE="1", PORT="99", EMPTY="")
    assert settings.team.instructions == "a 1 and two  x:y"
    assert settings.server.port == 99


def test_what_a_reference_brings_in_is_not_read_again(config: Load) -> None:
    settings = config("team: {instructions: '${ONE}'}", ONE="${TWO} #: [", TWO="never")
    assert settings.team.instructions == "${TWO} #: ["


def test_a_secret_may_come_from_a_file(config: Load, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("made-up-secret\n")
    settings = config(f"server: {{token: '${{file:{tmp_path}/secret}}'}}")
    assert settings.server.token is not None
    assert settings.server.token.get_secret_value() == "made-up-secret"


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"])
def test_a_secret_file_that_is_missing_empty_or_binary_is_named(
    config: Load, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    (fault,) = faults(config, f"server:\n  token: ${{file:{file}}}\n")
    assert fault.startswith("2: server.token: ")
    assert str(file) in fault


@pytest.mark.parametrize("env", [{}, {"PD_TOKEN": ""}])
def test_a_missing_or_empty_variable_is_named_with_its_key(config: Load, env: dict[str, str]) -> None:
    (fault,) = faults(config, PD + "    token: ${PD_TOKEN}\n", **env)
    assert fault.startswith("5: sources.pd.token: ")
    assert "PD_TOKEN" in fault


@pytest.mark.parametrize("token", ['""', "'${NO:-}'"])
def test_an_empty_secret_is_refused_for_anybody_would_know_it(config: Load, token: str) -> None:
    (fault,) = faults(config, f"server:\n  host: 0.0.0.0\n  token: {token}\n")
    assert fault.startswith("3: server.token: ")
    assert faults(config, PD + f"    token: t\n    webhook_secrets: [{token}]\n")[0].startswith("6: sources.pd.webhook")


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("rediss: {}\n", "1: rediss: ", ["'redis'"]),
        ("redis:\n  urll: x\n", "2: redis.urll: ", ["'url'"]),
        (PD + "    token: t\n    pol_seconds: 3\n", "6: sources.pd.pol_seconds: ", ["'poll_seconds'"]),
        ("server:\n  port: many\n", "2: server.port: ", ["integer"]),
        ("server:\n  port: 70000\n", "2: server.port: ", ["65535"]),
        ("limits: 5\n", "1: limits: ", ["dictionary"]),
        ("log:\n  level: loud\n", "2: log.level: ", ["debug|info|warning|error"]),
        (PD, "2: sources.pd.token: ", []),
        (PD + "    token: 123456\n", "5: sources.pd.token: ", ["string"]),
        ("sources:\n  pd:\n    kind: pagerdutty\n", "", ["pagerduty", "alertmanager"]),
        ("sources:\n  pd:\n    token: x\n", "", ["kind", "pagerduty"]),
        ("sinks:\n  s: {kind: slak, url: x}\n", "", ["slack", "webhook", "file"]),
        (PD + "    token: t\n    urgencies: [high, hi]\n", "6: sources.pd.urgencies", ["high", "low"]),
        (PD + "    token: t\n    write_to: nowhere\n", "6: sources.pd.write_to: ", ["nowhere"]),
        ("sources:\n  am:\n    kind: alertmanager\n    url: http://x\n", ": sources.am.write_to: ", ["sink"]),
        ("sweeps:\n  n:\n    source: nope\n    query: q\n    crontab: 0 3 * * *\n", "3: sweeps.n.source: ", ["'nope'"]),
        (
            PD + "    token: t\nsweeps:\n  n: {source: pd, query: q, crontab: often}\n",
            "7: sweeps.n.crontab: ",
            ["five"],
        ),
        ("limits:\n  run_seconds: 5000\n", "", ["limits.run_seconds", "limits.soft_seconds"]),
        ("redis: {}\nlog: {}\nredis: {}\n", "3: redis: ", []),
        ("redis:\n  - a\n b\n", "3: ", ["YAML"]),
        ("a: [1\n", "", ["YAML"]),
        ("- a\n- b\n", "1: ", ["mapping"]),
        ("a: 1\n---\nb: 2\n", "", ["YAML"]),
        ("redis: !!python/object:os.system {}\n", "1: redis", []),
        ("redis: &a\n  url: *b\n", "2", ["b"]),
        ("a: &a [*a]\n", "1", []),
        ("[a]: 1\n", "1", []),
        ("log: {level: !env X}\n", "1: log.level", []),
        ("log: {level: 2031-02-30}\n", "1: log.level", []),
    ],
)
def test_an_error_names_line_key_and_what_would_be_right(config: Load, text: str, place: str, words: list[str]) -> None:
    fault = faults(config, text)[0]
    assert place in fault
    assert all(word in fault for word in words), fault


REDIS_FAULTS = (
    "made-up",
    "foo://made-up",
    "redis://h:made-up/0",
    "redis://h/made-up",
    "redis://[made-up",
    "sentinel://made-up",
    "unix://",
)


@pytest.mark.parametrize("url", REDIS_FAULTS)
def test_an_address_of_redis_that_can_not_work_is_refused_without_being_shown(config: Load, url: str) -> None:
    (fault,) = faults(config, f"redis:\n  url: {url}\n")
    assert fault.startswith("2: redis.url: ")
    assert "made-up" not in fault


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "rediss://:p%40w@h:6379/1?ssl_cert_reqs=none",
        "redis://[::1]:6379/0",
        "unix:///run/r.sock",
        "redis+socket:///run/r.sock",
        "sentinel://:p@a:26379,b:26379/0",
    ],
)
def test_an_address_of_redis_that_works_is_taken(config: Load, url: str) -> None:
    assert config(f"redis: {{url: '{url}'}}").redis.url is not None


def test_all_problems_are_told_at_once_in_the_order_of_the_file(config: Load) -> None:
    text = "server:\n  prt: 1\nredis:\n  urll: x\n" + PD + "    token: ${NO_TOKEN}\nlog: {level: loud}\n"
    lines = faults(config, text)
    assert [line.split(":")[0] for line in lines] == ["2", "4", "9", "10"]
    assert "NO_TOKEN" in lines[2]


def test_an_error_shows_no_value_that_came_from_outside(config: Load, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("made-up-secret-9")
    text = PD + "    token: t\n    write_to: ${HIDDEN}\nlog: {level: '${HIDDEN}'}\nmodel: {name: '${HIDDEN}', x: 1}\n"
    text += "sources2: {}\n"
    shown = "\n".join(faults(config, text, HIDDEN="made-up-secret-9"))
    assert "made-up-secret-9" not in shown
    alertmanager = "sources:\n  am: {kind: alertmanager, url: 'http://x', matchers: ['${file:%s}']}" % (
        tmp_path / "secret"
    )
    assert "made-up-secret-9" not in "\n".join(faults(config, alertmanager))
    kind = "sources:\n  am: {kind: '${HIDDEN}'}\n"
    assert "made-up-secret-9" not in "\n".join(faults(config, kind, HIDDEN="made-up-secret-9"))


def test_a_file_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(b"team: {instructions: \xff}\n")
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        load(file, {})


def test_names_that_yaml_takes_for_something_else_stay_text(config: Load) -> None:
    settings = config("sinks:\n  on: {kind: file, path: /x}\n  1: {kind: file, path: /y}\n")
    assert sorted(settings.sinks) == ["1", "on"]


def test_anchors_and_merges_work(config: Load) -> None:
    text = "sinks:\n  a: &a {kind: file, path: /x}\n  b: *a\n  c:\n    <<: *a\n    path: /y\n"
    settings = config(text)
    assert settings.sinks["b"] == settings.sinks["a"]
    assert str(getattr(settings.sinks["c"], "path", "")) == "/y"


def answered(file: Path) -> bool:
    """Settings, or an error that names the file. Anything else raises."""
    try:
        return isinstance(load(file, {}), Settings)
    except ConfigError as error:
        return "config.yaml" in str(error)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["state_dir", "redis", "model", "limits", "server", "sources", "sinks", "toolsets", "sweeps", "x"]
)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.dictionaries(KEYS, VALUES | st.dictionaries(st.sampled_from(["kind", "url", "pd"]), VALUES), max_size=4))
def test_whatever_the_file_says_the_answer_is_settings_or_an_error_with_a_place(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), errors="surrogatepass")
    assert answered(file)


@given(st.binary(max_size=60))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
def test_any_bytes_are_settings_or_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(content)
    assert answered(file)


# -- schema and dump -----------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[2] / "deploy" / "rootcaused.example.yaml"


def test_the_example_is_valid_by_schema_and_by_us() -> None:
    OAS31Validator(json_schema()).validate(yaml.safe_load(EXAMPLE.read_text()))
    names = ("REDIS_PASSWORD", "ROOTCAUSED_TOKEN", "PAGERDUTY_TOKEN", "PAGERDUTY_WEBHOOK_SECRET")
    env = dict.fromkeys((*names, "ALERTMANAGER_WEBHOOK_TOKEN"), "made-up")
    settings = load(EXAMPLE, {**env, "SLACK_WEBHOOK_URL": "https://hooks.example/x"})
    assert sorted(settings.sources) == ["alertmanager", "pagerduty"]


def test_the_schema_takes_a_reference_where_a_number_is_due_and_refuses_what_we_refuse() -> None:
    validator = OAS31Validator(json_schema())
    assert validator.is_valid({"server": {"port": "${PORT}"}, "limits": {"steps": "${STEPS:-9}"}})
    assert not validator.is_valid({"server": {"port": "many"}})
    assert not validator.is_valid({"serverr": {}})


def test_the_dump_has_every_setting_and_no_secret(config: Load) -> None:
    text = PD + "    token: made-up-1\n    webhook_secrets: [made-up-2]\nredis: {url: 'redis://:made-up-3@h/0'}\n"
    text += "toolsets: {p: {kind: prometheus, url: 'http://user:made-up-4@h', headers: {X-Key: made-up-5}}}\n"
    dump = redacted(config(text))
    assert "made-up" not in dump
    assert yaml.safe_load(dump)["sources"]["pd"]["from_email"] == "a@example.com"
