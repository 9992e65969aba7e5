"""The file sink: JSON lines."""

from __future__ import annotations

import json
import resource
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from sources.configs import FileSinkConfig
from sources.sinks.file import FileSink
from tests.sources.sinks.test_webhook import COPYABLE
from tests.support.alerts import alert
from tests.support.inertness import assert_inert
from tests.support.reports import hostile, report

SOON = Deadline.never()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "reports.jsonl"


def sink(path: Path) -> FileSink:
    return FileSink("file", FileSinkConfig(path=path))


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_report_is_a_line(path: Path) -> None:
    receipt = sink(path).publish(alert(), report(), previous=None, deadline=SOON)
    (line,) = lines(path)
    assert (line["id"], line["key"]) == (receipt.id, "pd:Q1")
    assert line["report"]["headline"] == report().headline


def test_only_the_owner_can_read_it(path: Path) -> None:
    sink(path).publish(alert(), report(), previous=None, deadline=SOON)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_same_report_again_changes_nothing(path: Path) -> None:
    for _ in range(3):
        sink(path).publish(alert(), report(), previous=None, deadline=SOON)
    assert len(lines(path)) == 1


def test_a_changed_report_is_one_more_line_and_the_one_that_is_found(path: Path) -> None:
    sink(path).publish(alert(), report(), previous=None, deadline=SOON)
    sink(path).publish(alert(id="Q2"), report(), previous=None, deadline=SOON)
    later = report(run=report().run.model_copy(update={"investigation": "later"}))
    written = sink(path).publish(alert(), later, previous=None, deadline=SOON)
    assert len(lines(path)) == 3
    assert sink(path).find(alert(), deadline=SOON) == written
    assert written.investigation == "later"


def test_nothing_is_found_where_nothing_was_written(path: Path) -> None:
    assert sink(path).find(alert(), deadline=SOON) is None
    assert not path.exists()
    sink(path).publish(alert(), report(), previous=None, deadline=SOON)
    assert sink(path).find(alert(id="Q"), deadline=SOON) is None


def test_a_line_torn_by_a_crash_costs_only_itself(path: Path) -> None:
    sink(path).publish(alert(), report(), previous=None, deadline=SOON)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert sink(path).find(alert(), deadline=SOON) is not None
    sink(path).publish(alert(), report(headline="other"), previous=None, deadline=SOON)
    good = [line for line in path.read_bytes().splitlines() if line.endswith(b"}")]
    assert json.loads(good[-1])["report"]["headline"] == "other"


def test_writers_at_the_same_time_do_not_mix_their_lines(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(lambda n: sink(path).publish(alert(id=f"Q{n}"), report(), previous=None, deadline=SOON), range(24))
        )
    assert sorted(line["key"] for line in lines(path)) == sorted(f"pd:Q{n}" for n in range(24))


def test_a_path_that_cannot_be_a_file_is_permanent(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="Is a directory"):
        sink(tmp_path).publish(alert(), report(), previous=None, deadline=SOON)
    (tmp_path / "plain").write_text("")
    with pytest.raises(Permanent, match=r"Not a directory|File exists"):
        sink(tmp_path / "plain" / "x").publish(alert(), report(), previous=None, deadline=SOON)


@pytest.fixture
def full_after_100_bytes(path: Path) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def written_once(path: Path) -> None:
    sink(path).publish(alert(), report(), previous=None, deadline=SOON)


@pytest.mark.usefixtures("written_once", "full_after_100_bytes")
def test_a_full_disk_is_transient_and_what_was_there_is_still_found(path: Path) -> None:
    with pytest.raises(Transient, match="No space left"):
        sink(path).publish(alert(), report(headline="other"), previous=None, deadline=SOON)
    assert sink(path).find(alert(), deadline=SOON) is not None


def test_hostile_text_is_inert_and_stays_one_line(path: Path) -> None:
    sink(path).publish(alert(), hostile(), previous=None, deadline=SOON)
    (line,) = lines(path)
    assert_inert(line["text"], besides=COPYABLE)
