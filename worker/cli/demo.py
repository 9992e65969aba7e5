"""`rootcaused demo`: the whole daemon against a local stand-in, with the result checked."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    json_: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on stdout.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")] = False,
    model: Annotated[
        str, typer.Option("--model", help="A LiteLLM model name; its key is read from the environment.")
    ] = "rules",
) -> None:
    """Investigate a dozen prepared incidents end to end, without any account or key.

    Exit status: 0 every incident has exactly the comments that are due, 1 it has not, 2 the demo could not begin.
    """
    from agent.errors import ConfigError
    from worker.demo.run import Demo

    try:
        status = Demo(model=model, keep=keep, as_json=json_).run()
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(status)
