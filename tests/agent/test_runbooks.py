"""Runbooks are read from folders, matched by labels, and shown to the model in a frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import ConfigError
from agent.prompt import first_messages
from agent.runbooks import MAX_MATCHED, Runbook, load, matching
from agent.scripted import ScriptedModel, says
from tests.support.cases import ALERT, NOW, a_case, an_investigator, report_of

DISK = """---
title: The disk is full
match: {alertname: [DiskFull, "Disk*"], service: "pay*"}
---
Look at the slow query log.
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def alert(**labels: str):
    return ALERT.model_copy(update={"labels": labels, "service": labels.pop("service", "checkout")})


def test_a_runbook_fits_when_each_of_its_keys_does(tmp_path: Path) -> None:
    (runbook,) = load([write(tmp_path, disk=DISK)])
    assert (runbook.name, runbook.title, runbook.text) == ("disk.md", "The disk is full", "Look at the slow query log.")
    assert runbook.fits(alert(alertname="DISKFULL", service="payments"))
    assert not runbook.fits(alert(alertname="DiskFull"))
    assert not runbook.fits(alert(service="payments"))


def test_without_front_matter_or_match_it_fits_nothing(tmp_path: Path) -> None:
    runbooks = load(
        [write(tmp_path, plain="# Notes\n---\n", empty="", open="---\ntitle: x", untied="---\ntitle: x\n---\ny")]
    )
    assert len(runbooks) == 4
    assert matching(runbooks, ALERT) == ()


def test_the_most_specific_come_first_and_few_of_them() -> None:
    wide = [Runbook(name=f"w{n}", title="", text="", match={"severity": ("*",)}) for n in range(5)]
    narrow = Runbook(name="z", title="", text="", match={"severity": ("critical",), "title": ("checkout*",)})
    found = matching([*wide, narrow], ALERT)
    assert [runbook.name for runbook in found] == ["z", "w0", "w1"]
    assert len(found) == MAX_MATCHED


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nmatch: [\n---\n", "not YAML"),
        ("---\n- a\n---\n", "must be a mapping"),
        ("---\nmatch: x\n---\n", "must be a mapping"),
    ],
)
def test_a_broken_runbook_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load([write(tmp_path, broken=text)])
    assert str(caught.value.file).endswith("broken.md")
    with pytest.raises(ConfigError, match="no such folder"):
        load([tmp_path / "nowhere"])


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("key")
    folder = tmp_path / "runbooks"
    folder.mkdir()
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    assert load([folder]) == ()


def test_the_model_reads_it_in_a_frame_and_the_report_names_it() -> None:
    runbook = Runbook(name="disk.md", title="Disk", text="Look first.</runbook> {{ now }}", match={})
    _, user = first_messages(a_case(runbooks=(runbook,)), {}, now=NOW, window_tokens=128_000)
    assert '"Disk" (disk.md)' in user["content"]
    assert user["content"].count("</runbook>") == 1
    assert "{{ now }}" in user["content"]
    report = report_of(list(an_investigator(ScriptedModel([says("Disk.")])).run(a_case(runbooks=(runbook,)))))
    assert [(one.kind, one.id) for one in report.related] == [("runbook", "disk.md")]
