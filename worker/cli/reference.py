"""The command reference made from the commands: `python -m worker.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from typer.testing import CliRunner

from worker.cli.exits import Status
from worker.cli.main import COMMANDS, app

MEANINGS = {
    Status.OK: "done",
    Status.FAILED: "failed: a source, the ticket system or the model refused, or a check found a fault",
    Status.USAGE: "wrong usage: the arguments make no sense, or a file given on the command line can't be read",
    Status.CONFIGURATION: "configuration: each problem is one line with file, line and key",
    Status.NO_REDIS: "Redis can't be reached, or none of our own runs",
    Status.NOT_FOUND: "not found: no such alert or source",
    Status.PARTIAL: "done in part: some alerts were not requeued, a toolset does not answer, or a limit ended the run",
}
BELOW_CONFIG = ("init", "validate", "show", "schema")
WIDTH = 100


def reference() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Command line"
    yield ""
    yield "Made by `python -m worker.cli.reference > docs/cli.md`; a test compares the two."
    yield ""
    yield "Results go to stdout, progress and errors to stderr. `--json` prints data for programs. `--config` may stand"
    yield "before or after the command. Escape sequences and control characters in alert text never reach the terminal."
    yield ""
    yield "| exit status | means |"
    yield "|---|---|"
    yield from (f"| {status.value} | {meaning} |" for status, meaning in MEANINGS.items())
    for words in ([], *([name] for name in COMMANDS), ["config"], *(["config", name] for name in BELOW_CONFIG)):
        yield ""
        yield f"## {' '.join(['rootcaused', *words])}"
        yield ""
        yield "```"
        yield _help(words)
        yield "```"


def _help(words: list[str]) -> str:
    environment = {"TERMINAL_WIDTH": str(WIDTH), "COLUMNS": str(WIDTH)}
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="rootcaused", env=environment)
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


if __name__ == "__main__":
    typer.echo(reference(), nl=False)
