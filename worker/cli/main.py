"""The `rootcaused` command. Each command's own module does its work; what it needs is loaded when it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from agent.errors import RootcausedError
from worker.cli import alerts, code, configuration, demo, doctor, investigate, roles, toolsets
from worker.cli.exits import HELP, status_of
from worker.cli.options import ConfigFile
from worker.cli.terminal import say

INTERRUPTED = 130  # as shells have it: 128 + SIGINT

app = typer.Typer(
    name="rootcaused",
    help="The root-cause daemon: takes alerts, investigates them, and writes the analysis back to the ticket.",
    epilog=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich doubles the time to start
    pretty_exceptions_enable=False,  # they show local variables, and with them credentials
)

COMMANDS: dict[str, Callable[..., None]] = {
    "run": roles.run,
    "worker": roles.worker,
    "schedule": roles.schedule,
    "serve": roles.serve,
    "demo": demo.demo,
    "ask": investigate.ask,
    "investigate": investigate.investigate,
    "requeue": alerts.requeue,
    "sweep": alerts.sweep,
    "alerts": alerts.alerts,
    "show": alerts.show_alert,
    "toolsets": toolsets.toolsets,
    "doctor": doctor.doctor,
}
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(configuration.app, name="config")
app.add_typer(code.app, name="code")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(version("rootcaused"))
        except PackageNotFoundError:
            typer.echo("unknown: run from a checkout that is not installed")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    config: ConfigFile = None,
    version: Annotated[  # noqa: ARG001  # its callback has acted already
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """--config before the command is the default of --config after it."""
    if config is not None:
        own = {"config": str(config)}
        below = dict.fromkeys(("validate", "show"), own)
        context.default_map = {**dict.fromkeys(COMMANDS, own), "config": below, "code": {"run": own}}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command (by default the process's own arguments) and exit.

    Our own errors end in one plain line and the status they stand for.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal's encoding must not cost the output
    try:
        app(args=arguments, prog_name="rootcaused")
    except RootcausedError as error:
        say(f"rootcaused: {error}")
        sys.exit(status_of(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
