"""`demo`: the whole daemon against a local stand-in for everything it talks to, with the result checked."""

from __future__ import annotations

from typing import Annotated

import typer

from worker.cli.options import AsJson

Keep = Annotated[bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")]
ModelName = Annotated[str, typer.Option("--model", help="A LiteLLM model name; its key is read from the environment.")]
INTERRUPTED = 130


def demo(json_: AsJson = False, keep: Keep = False, model: ModelName = "rules") -> None:
    """Investigate a dozen prepared incidents end to end, without any account or key.

    Done (status 0) means that every incident has exactly the comments that are due, read back from the ticket systems.
    """
    from worker.demo.run import Demo

    try:
        status = Demo(model=model, keep=keep, as_json=json_).run()
    except KeyboardInterrupt:
        status = INTERRUPTED
    raise typer.Exit(status)
