"""The benchmark's runner on cases of its own: systems, ids and services that it has never seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench import q2, q5
from tests.bench.figure import Figure, Options
from tests.bench.run import figures, main

POD = "kiosk-6d5f7c9b84-x7k2p"
EVENT = (
    "LAST SEEN   TYPE      REASON   OBJECT                       MESSAGE\n"
    f'10s         Warning   Failed   pod/{POD}   Error: secret "kiosk-db" not found'
)


def call(tool: str, **arguments: object) -> str:
    return f"{tool}:{json.dumps(arguments, separators=(',', ':'))}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One case of a made-up system: a secret that does not exist."""
    place = tmp_path / "benchmark" / "fairground" / "morning" / "b-7"
    (place / "raw_data").mkdir(parents=True)
    answer = {"fault_taxonomy": "Startup_Fault", "fault_object": "app/kiosk", "root_cause": "missing_secret_binding"}
    metadata = {"namespace": "fair", "query": "Nobody can buy a ticket.", "result": answer}
    waiting = "CreateContainerConfigError"
    columns = "NAME                     READY   STATUS                       RESTARTS   AGE"
    listing = f"{columns}\n{POD}   0/1     {waiting}   0          2m"
    cache = {
        "collection_timestamp": "2026-03-01T10:00:00",
        call("GetResources", resource_type="pods", name="", namespace="fair", output_wide=True): listing,
        call("GetResources", namespace="fair", resource_type="events", name=""): EVENT,
    }
    (place / "metadata.json").write_text(json.dumps(metadata))
    (place / "tool_cache.json").write_text(json.dumps(cache))
    (place / "raw_data" / "alert.json").write_text('{"alerts": []}')
    return tmp_path


def test_a_system_never_seen_is_measured(data):
    found = {figure.name: figure for figure in q2.run(Options(data=data))}
    assert found["q2.fairground.a1"].value == 1.0
    assert found["q2.fairground.coverage"].value == 1.0
    assert found["q2.fairground.a1"].target is None


def test_every_spoiled_report_of_it_is_found_out(data):
    found = {figure.name: figure for figure in q5.run(Options(data=data))}
    assert found["q5.recall"].value == 1.0
    assert found["q5.false_rejects"].value == 0.0


def test_each_figure_is_one_json_line(data, capsys):
    assert main(["q2", "--data", str(data), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"figure", "value", "n", "unit"} <= lines[0].keys()
    assert "q2.all.a1" in {line["figure"] for line in lines}


def test_a_figure_holds_by_its_bound():
    assert Figure(name="x", value=0.0, n=9, target=0.0, bound="==").holds
    assert not Figure(name="x", value=0.03, n=9, target=0.02, bound="<=").holds
    assert Figure(name="x", value=0.5, n=9).holds is None


def test_without_data_it_says_so():
    with pytest.raises(SystemExit, match="--data"):
        list(q2.run(Options(data=None)))


def test_figures_are_the_modules_beside_the_runner():
    assert {"q2", "q5"} <= set(figures())
