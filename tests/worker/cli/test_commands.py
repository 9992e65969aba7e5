"""The commands, in this process, against a real Redis and real files."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_schema_validator import OAS31Validator

from agent.alert import Alert
from agent.events import ToolStarted
from agent.report import Report
from sources.alertmanager.alerts import read
from tests.support.alerts import NOON, alert
from tests.support.command_line import CommandLine, command_line
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.reports import report
from worker.cli.exits import HELP, Status
from worker.cli.main import COMMANDS
from worker.cli.supervisor import HOPELESS
from worker.record import State
from worker.redis_client import connect
from worker.settings import RedisSettings, Settings
from worker.store import Store
from worker.triage import View, decide, question, sighting

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def rootcaused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """In an empty folder, so that no configuration is found by chance."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOTCAUSED_CONFIG", raising=False)
    return command_line(capsys)


def write(folder: Path, **config: Any) -> Path:
    file = folder / "rootcaused.yaml"
    file.write_text(yaml.safe_dump({"state_dir": str(folder / "state"), **config}))
    return file


@pytest.fixture
def store(redis_url: str, tmp_path: Path) -> Store:
    """A store that the configuration in the current folder names."""
    write(tmp_path, redis={"url": redis_url}, toolsets={"plan": {"kind": "plan"}})
    return Store(connect(redis_url, RedisSettings()))


# -- starting ------------------------------------------------------------------------------------------------------


def test_help_is_quick_small_and_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom worker.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pydantic', 'requests', 'redis', 'celery', 'fastapi', 'litellm', 'rich', 'structlog', 'yaml'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "HEAVY []" in done.stdout
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.3


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["config"], ["config", "show"]])
def test_every_command_explains_itself(rootcaused: CommandLine, command: list[str]) -> None:
    done = rootcaused(*command, "--help")
    assert done.status == 0
    assert "Usage: rootcaused" in done.out


def test_exit_statuses_are_in_the_help(rootcaused: CommandLine) -> None:
    words = " ".join(rootcaused("--help").out.split())
    assert HELP in words
    assert all(f"{status.value} " in HELP for status in Status)


def test_an_unknown_command_is_wrong_usage(rootcaused: CommandLine) -> None:
    assert rootcaused("requeu").status == Status.USAGE


# -- configuration -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("redis:\n  urll: x\n", ["rootcaused.yaml:2", "redis.urll", "'url'"]),
        ("server:\n  port: many\n", ["rootcaused.yaml:2", "server.port", "integer"]),
        ("sources: {pd: {kind: pagerduty, from_email: a@b.c, token: '${NO_SUCH}'}}", ["pd.token", "NO_SUCH"]),
        ("sources:\n  pd: {kind: pagerdutty}\n", [":2", "sources.pd", "pagerduty"]),
        ("redis: {\n", ["rootcaused.yaml:2", "not YAML"]),
        ("- a\n", ["rootcaused.yaml:1", "mapping"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [["config", "validate"], ["run"], ["alerts"], ["ask", "why?"]])
def test_a_wrong_configuration_ends_any_command_with_one_clear_line(
    rootcaused: CommandLine, tmp_path: Path, text: str, words: list[str], command: list[str]
) -> None:
    (tmp_path / "rootcaused.yaml").write_text(text)
    done = rootcaused(*command)
    assert done.status == Status.CONFIGURATION
    assert done.out == ""
    assert "Traceback" not in done.err
    assert all(word in done.err for word in words), done.err


def test_a_public_address_without_a_token_is_refused_at_start(rootcaused: CommandLine, tmp_path: Path) -> None:
    write(tmp_path, server={"host": "0.0.0.0"})
    for command in ("run", "serve"):
        done = rootcaused(command)
        assert done.status == Status.CONFIGURATION
        assert "server.token" in done.err


def test_the_configuration_may_be_named_before_or_after_the_command(rootcaused: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text("team: {instructions: from-this-file}\n")
    for arguments in (["config", "show", "--config", file], ["--config", file, "config", "show"]):
        assert "from-this-file" in rootcaused(*arguments).out
    assert rootcaused("--config", tmp_path / "none.yaml", "alerts").status == Status.CONFIGURATION


def test_what_init_writes_is_valid_private_and_never_overwrites(rootcaused: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "rootcaused.yaml"
    assert rootcaused("config", "init").status == 0
    assert file.stat().st_mode & 0o077 == 0
    assert rootcaused("config", "validate").status == 0
    schema = rootcaused("config", "schema").json()
    OAS31Validator(schema).validate(yaml.safe_load(file.read_text()))
    file.write_text("mine: 1")
    assert rootcaused("config", "init").status == Status.USAGE
    assert file.read_text() == "mine: 1"


def test_every_line_that_init_comments_out_is_valid_too(
    rootcaused: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rootcaused("config", "init")
    file = tmp_path / "rootcaused.yaml"
    for name in re.findall(r"\$\{(\w+)\}", text := file.read_text()):
        monkeypatch.setenv(name, "https://hooks.example/made-up" if name.endswith("URL") else "made-up-value")
    file.write_text(re.sub(r"^#  |^  # ", "  ", text.replace(": {}\n", ":\n"), flags=re.MULTILINE))
    done = rootcaused("config", "validate", "--json")
    assert done.status == 0, done.err
    assert done.json()["sources"] == ["alertmanager", "pagerduty"]
    assert done.json()["toolsets"] == ["kubernetes", "loki", "plan", "prometheus"]


def test_show_prints_the_settings_without_secrets(
    rootcaused: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "made-up-secret-1")
    write(tmp_path, server={"token": "${API_TOKEN}"}, redis={"url": "redis://:made-up-secret-2@127.0.0.1:1/0"})
    done = rootcaused("config", "show")
    assert yaml.safe_load(done.out)["server"]["port"] == 8080
    assert "made-up-secret" not in done.out + done.err


# -- without Redis -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["alerts"], ["show", "pd:1"], ["requeue", "pd:1"], ["requeue", "--state", "failed"]]
)
def test_without_a_running_redis_a_command_says_what_to_do(
    rootcaused: CommandLine, command: list[str], tmp_path: Path
) -> None:
    write(tmp_path)
    done = rootcaused(*command)
    assert done.status == Status.NO_REDIS
    assert "rootcaused run" in done.err
    assert "redis.url" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("role", ["serve", "schedule", "worker --role io"])
def test_a_role_that_finds_no_redis_ends_so_that_run_starts_it_again(
    rootcaused: CommandLine, tmp_path: Path, role: str
) -> None:
    write(tmp_path)
    assert rootcaused(*role.split()).status == Status.NO_REDIS
    assert Status.NO_REDIS not in HOPELESS


def test_an_unreachable_redis_is_told_without_its_password(rootcaused: CommandLine, tmp_path: Path) -> None:
    write(tmp_path, redis={"url": "redis://:made-up-secret-3@127.0.0.1:9/0"})
    done = rootcaused("alerts", "--json")
    assert done.status == Status.NO_REDIS
    assert "made-up-secret" not in done.err
    assert done.out == ""


# -- alerts --------------------------------------------------------------------------------------------------------


def test_alerts_lists_by_state_and_source_and_cleans_their_text(rootcaused: CommandLine, store: Store) -> None:
    store.admit(alert(id="Q1", title="slow\x1b[2J \u202eevil\nforged line"), via="poll")
    store.admit(alert(id="Q2", source="am"), via="poll", skip="resolved")
    listed = rootcaused("alerts")
    assert listed.status == 0
    assert ["pd:Q1", "queued"] in [line.split()[:2] for line in listed.out.splitlines()]
    assert len(listed.out.splitlines()) == 3
    assert not any(c in listed.out for c in "\x1b\u202e")
    assert [one["key"] for one in rootcaused("alerts", "--state", "skipped", "--json").json()] == ["am:Q2"]
    assert [one["key"] for one in rootcaused("alerts", "--source", "pd", "--json").json()] == ["pd:Q1"]
    assert rootcaused("alerts", "--since", "1h", "--limit", "1", "--json").json()[0]["key"] in ("pd:Q1", "am:Q2")


@pytest.mark.parametrize("option", [["--state", "done"], ["--since", "yesterday"], ["--limit", "0"]])
def test_a_bad_filter_is_wrong_usage(rootcaused: CommandLine, store: Store, option: list[str]) -> None:
    done = rootcaused("alerts", *option)
    assert done.status == Status.USAGE
    assert "Traceback" not in done.err


def test_explain_tells_every_decision_with_its_inputs(rootcaused: CommandLine, store: Store, tmp_path: Path) -> None:
    hostile = alert(labels={"namespace": "shop"}, title="slow \x1b[31m", fingerprint="f\u202e")
    seen = sighting(hostile, hostile.starts_at or NOON)
    plan = question(seen, Settings())
    view = store.admit(hostile, via="poll", plan=plan)
    assert isinstance(view, View)
    store.admit(hostile, via="poll", plan=decide(seen, Settings(), view).plan)
    told = rootcaused("alerts", "--explain", "pd:Q1").out
    assert "DECIDED WHEN IT WAS SEEN" in told
    assert re.search(r"-> investigate +nothing speaks against it", told)
    assert "\x1b" not in told
    given = json.loads(rootcaused("alerts", "--explain", "pd:Q1", "--json").out)
    assert [one["rule"] for one in given["then"]["rulings"]][-1] == "investigate"
    assert all(one["inputs"] is not None for one in given["now"]["rulings"])


def test_explain_of_an_unknown_alert_is_not_found(rootcaused: CommandLine, store: Store) -> None:
    done = rootcaused("alerts", "--explain", "pd:nobody")
    assert (done.status, done.out) == (Status.NOT_FOUND, "")


def test_show_tells_record_and_history(rootcaused: CommandLine, store: Store) -> None:
    store.admit(alert(id="Q1", title="checkout \u202eis slow"), via="poll")
    shown = rootcaused("show", "pd:Q1")
    assert shown.status == 0
    assert "checkout is slow" in shown.out
    assert "WHAT HAPPENED" in shown.out
    assert "queued" in shown.out
    data = rootcaused("show", "pd:Q1", "--json").json()
    assert (data["key"], data["report"], len(data["audit"])) == ("pd:Q1", None, 1)
    missing = rootcaused("show", "pd:nope")
    assert missing.status == Status.NOT_FOUND
    assert "pd:nope" in missing.err


def test_show_tells_what_the_investigation_did_and_found(rootcaused: CommandLine, store: Store) -> None:
    admitted = store.admit(alert(id="Q1"), via="poll")
    _, claim = store.claim("pd:Q1", admitted.generation, stage="investigate")
    assert claim is not None
    looked = ToolStarted(step=1, ref="T1", call_id="c", tool="loki_query", params={"query": "a\x1b]52;c;eA==\x07b"})
    store.append(claim, [looked])
    finished = report()
    run = finished.run.model_copy(update={"investigation": claim.record.investigation})
    store.keep_report(finished.model_copy(update={"run": run}))
    shown = rootcaused("show", "pd:Q1")
    assert shown.status == 0
    assert "T1  loki_query(query=ab)" in shown.out
    assert "connection pool is exhausted" in shown.out
    data = rootcaused("show", "pd:Q1", "--json").json()
    assert [event["ref"] for event in data["events"]] == ["T1"]
    assert Report.model_validate(data["report"]).headline == finished.headline


def test_requeue_starts_a_new_generation_with_instructions(rootcaused: CommandLine, store: Store) -> None:
    store.admit(alert(id="Q1"), via="poll", skip="resolved")
    done = rootcaused("requeue", "pd:Q1", "--instructions", "look at DNS", "--json")
    assert done.status == 0
    assert done.json()[0]["verdict"] == "requeued"
    record = store.get("pd:Q1")
    assert record is not None
    assert (record.state, record.generation, record.instructions) == (State.QUEUED, 2, "look at DNS")


def test_requeue_of_some_that_exist_is_done_in_part_of_none_not_found(rootcaused: CommandLine, store: Store) -> None:
    store.admit(alert(id="Q1"), via="poll", skip="resolved")
    assert rootcaused("requeue", "pd:Q1", "pd:nope").status == Status.PARTIAL
    done = rootcaused("requeue", "pd:nope", "--json")
    assert done.status == Status.NOT_FOUND
    assert done.json()[0]["key"] == "pd:nope"


def test_requeue_selects_by_state(rootcaused: CommandLine, store: Store) -> None:
    store.admit(alert(id="Q1"), via="poll", skip="resolved")
    store.admit(alert(id="Q2"), via="poll")
    done = rootcaused("requeue", "--state", "skipped", "--since", "24h", "--json")
    assert [one["key"] for one in done.json()] == ["pd:Q1"]
    assert rootcaused("requeue", "--state", "failed").status == 0


def test_requeue_wants_names_or_a_selection_and_not_both(rootcaused: CommandLine, store: Store) -> None:
    assert rootcaused("requeue").status == Status.USAGE
    assert rootcaused("requeue", "pd:Q1", "--state", "failed").status == Status.USAGE


FIRING = {
    "labels": {"alertname": "Slow", "severity": "critical"},
    "annotations": {},
    "startsAt": "2031-02-03T04:05:06Z",
    "endsAt": "2031-02-03T05:05:06Z",
    "updatedAt": "2031-02-03T04:05:06Z",
    "generatorURL": "",
    "fingerprint": "0011223344556677",
    "receivers": [{"name": "r"}],
    "status": {"state": "active", "silencedBy": [], "inhibitedBy": [], "mutedBy": []},
}


def alertmanager(request: Request) -> Reply:
    return Reply(body=[FIRING] if request.path.endswith("/alerts") else {})


def source_config(url: str, folder: Path) -> dict[str, Any]:
    return {
        "sources": {"am": {"kind": "alertmanager", "url": url, "write_to": "out"}},
        "sinks": {"out": {"kind": "file", "path": str(folder / "out.jsonl")}},
        "toolsets": {"plan": {"kind": "plan"}},
    }


def test_a_sweep_queues_what_the_query_finds(rootcaused: CommandLine, redis_url: str, tmp_path: Path) -> None:
    with HttpServer(alertmanager) as server:
        write(tmp_path, redis={"url": redis_url}, **source_config(server.url, tmp_path))
        done = rootcaused("sweep", "am", "--query", 'severity="critical"', "--limit", "5", "--json")
    assert done.status == 0
    assert [one["queued"] for one in done.json()] == [True]
    assert rootcaused("sweep", "nowhere", "--query", "x").status == Status.NOT_FOUND


def test_a_sweep_whose_source_is_down_fails_with_one_line(
    rootcaused: CommandLine, redis_url: str, tmp_path: Path
) -> None:
    write(tmp_path, redis={"url": redis_url}, **source_config(NOWHERE, tmp_path))
    done = rootcaused("sweep", "am", "--query", 'severity="critical"')
    assert done.status == Status.FAILED
    assert "Traceback" not in done.err


# -- in the foreground ---------------------------------------------------------------------------------------------


def test_ask_prints_a_report_on_stdout_and_progress_on_stderr(rootcaused: CommandLine, tmp_path: Path) -> None:
    write(tmp_path, toolsets={"plan": {"kind": "plan"}})
    done = rootcaused("ask", "why is checkout \x1b[31mslow\udcff?")
    assert done.status == 0
    assert "no language model was used" in done.out
    assert "\x1b" not in done.out
    assert "model rules" in done.err
    made = Report.model_validate(rootcaused("ask", "why?", "--json").json())
    assert made.alert.source == "ask"
    assert rootcaused("ask", "  ").status == Status.USAGE


def test_investigate_takes_an_alert_from_a_file(rootcaused: CommandLine, tmp_path: Path) -> None:
    write(tmp_path, toolsets={"plan": {"kind": "plan"}})
    (tmp_path / "alert.json").write_text(alert(title="pods crash").model_dump_json())
    made = Report.model_validate(rootcaused("investigate", "--file", "alert.json", "--json").json())
    assert made.alert.key == "pd:Q1"


@pytest.mark.parametrize(
    "text", ["{", '{"source": "pd"}', "[]", '{"source":"pd","id":"1","title":"t","extra":1}', "\udcff"]
)
def test_a_file_that_is_no_alert_is_wrong_usage(rootcaused: CommandLine, tmp_path: Path, text: str) -> None:
    write(tmp_path)
    (tmp_path / "alert.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    done = rootcaused("investigate", "--file", "alert.json")
    assert done.status == Status.USAGE
    assert "alert.json" in done.err
    assert "Traceback" not in done.err


def test_investigate_fetches_from_the_source_and_writes_back_only_when_told(
    rootcaused: CommandLine, tmp_path: Path
) -> None:
    with HttpServer(alertmanager) as server:
        write(tmp_path, **source_config(server.url, tmp_path))
        found = read("am", FIRING)
        assert isinstance(found, Alert)
        assert rootcaused("investigate", "am:nope").status == Status.NOT_FOUND
        assert rootcaused("investigate", "gone:1").status == Status.NOT_FOUND
        assert rootcaused("investigate", "no-colon").status == Status.USAGE
        assert rootcaused("investigate").status == Status.USAGE
        assert rootcaused("investigate", found.key).status == 0
        assert not (tmp_path / "out.jsonl").exists()
        assert rootcaused("investigate", found.key, "--write").status == 0
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1


# -- checks --------------------------------------------------------------------------------------------------------


def test_toolsets_tells_states_and_costs(rootcaused: CommandLine, tmp_path: Path) -> None:
    write(tmp_path, toolsets={"plan": {"kind": "plan"}})
    done = rootcaused("toolsets", "--json")
    assert done.status == 0
    assert [(one["name"], one["state"]) for one in done.json()] == [("plan", "ok")]
    assert done.json()[0]["tokens"] > 0
    table = rootcaused("toolsets", "--tokens").out
    assert "plan" in table
    assert "TOKENS" in table


def test_a_toolset_that_does_not_answer_is_done_in_part(rootcaused: CommandLine, tmp_path: Path) -> None:
    write(tmp_path, toolsets={"plan": {"kind": "plan"}, "prometheus": {"kind": "prometheus", "url": NOWHERE}})
    done = rootcaused("toolsets", "--json")
    assert done.status == Status.PARTIAL
    assert [one["state"] for one in done.json()] == ["ok", "failed"]


def findings(done: Any) -> dict[str, tuple[str, str]]:
    return {one["what"]: (one["state"], one["words"] + one["remedy"]) for one in json.loads(done.out)}


def test_the_doctor_reads_everything_and_says_what_to_do(
    rootcaused: CommandLine, redis_url: str, tmp_path: Path
) -> None:
    with HttpServer(alertmanager) as server:
        write(tmp_path, redis={"url": redis_url}, **source_config(server.url, tmp_path))
        done = rootcaused("doctor", "--json")
    found = findings(done)
    assert done.status == 0
    assert found["source am"][0] == "ok"
    assert found["toolset plan"][0] == "ok"
    assert found["redis"][0] == "ok"
    assert found["redis persistence"][0] == "warning"
    assert "appendonly" in found["redis persistence"][1]
    assert not (tmp_path / "out.jsonl").exists()


def test_the_doctor_fails_for_a_source_that_refuses_and_goes_on(
    rootcaused: CommandLine, redis_url: str, tmp_path: Path
) -> None:
    with HttpServer(lambda _: Reply(401, b"no")) as server:
        write(tmp_path, redis={"url": redis_url}, **source_config(server.url, tmp_path))
        done = rootcaused("doctor", "--json")
    found = findings(done)
    assert done.status == Status.FAILED
    assert found["source am"][0] == "failed"
    assert "sources.am" in found["source am"][1]
    assert found["model"][0] == "ok"


def test_the_doctor_without_redis_still_checks_the_rest(rootcaused: CommandLine, tmp_path: Path) -> None:
    write(tmp_path, toolsets={"plan": {"kind": "plan"}})
    done = rootcaused("doctor", "--json")
    assert done.status == Status.NO_REDIS
    assert findings(done)["toolset plan"][0] == "ok"


@pytest.mark.parametrize(("policy", "state"), [("allkeys-lru", "failed"), ("noeviction", "ok")])
def test_the_doctor_knows_a_redis_that_would_drop_alerts(
    rootcaused: CommandLine, store: Store, policy: str, state: str
) -> None:
    before = {name: store.redis.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
    store.redis.config_set("maxmemory", "100mb")
    store.redis.config_set("maxmemory-policy", policy)
    try:
        assert findings(rootcaused("doctor", "--json"))["redis maxmemory-policy"][0] == state
    finally:
        for name, value in before.items():
            store.redis.config_set(name, value)
