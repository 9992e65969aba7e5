"""`code`: run a script in code mode from the command line, as an investigation would."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli.exits import Misused, Status
from worker.cli.options import AsJson, ConfigFile, settings_for_people
from worker.cli.terminal import one_line, say, show, show_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.code_mode.config import CodeModeConfig
    from agent.tools import Tool, ToolResult
    from worker.settings import Settings

MAX_FILE_BYTES = 1_000_000
DEMO = "demo"

app = typer.Typer(help="Code mode: scripts that call tools.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def code() -> None:
    """Code mode: scripts that call tools."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The script; - is stdin.", show_default=False)],
    tools: Annotated[
        str, typer.Option("--tools", help='"demo" for made-up tools; else the configured toolsets.', show_default=False)
    ] = "",
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Seconds; else wall_seconds.", show_default=False)
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Run one script sealed, as an investigation would.

    Calls of tools go to stderr as they are made. Exits with 1 when the script failed or was ended by a limit."""
    if tools not in ("", DEMO):
        raise Misused(f"--tools {tools}: there is {DEMO}; leave it out for the configured toolsets")
    source = _read(file)
    settings = settings_for_people(config)
    offered = _demo_tools() if tools == DEMO else _configured(settings)
    result, calls, level, seconds = _run(source, offered, timeout, settings)
    if as_json:
        show_json({**result.to_client(), "isolation": level, "seconds": round(seconds, 3), "calls": calls})
    else:
        show("\n".join(part for part in (result.data, result.error) if part))
    raise typer.Exit(Status.OK if result.status == "success" else Status.FAILED)


def _run(
    source: str, tools: list[Tool], timeout: float | None, settings: Settings
) -> tuple[ToolResult, list[dict[str, Any]], str, float]:
    """The result, the calls made, the level of isolation, and how long it took."""
    import time
    from dataclasses import replace
    from datetime import UTC, datetime

    from agent.alert import Alert
    from agent.code_mode.tool import CodeMode
    from agent.deadline import Deadline
    from agent.errors import ConfigError, ToolError
    from agent.redaction import Redactor
    from agent.tools import ToolContext, ToolResult
    from worker.settings import secrets_of

    config = _config(settings)
    redact = Redactor(secrets_of(settings))
    mode = CodeMode(config=config, tool_seconds=settings.limits.tool_seconds)
    tool = mode.tool(tools)
    if tool is None:
        raise ConfigError(mode.unavailable(), key="code_mode.require")
    calls = _Told(redact)
    alert = Alert(source="code", id="run", title="a script from the command line", starts_at=datetime.now(UTC))
    seconds = tool.seconds or config.wall_seconds
    context = ToolContext(deadline=Deadline.after(seconds), alert=alert, sub_calls=calls)
    given = {"code": source} if timeout is None else {"code": source, "timeout_seconds": timeout}
    begun = time.monotonic()
    try:
        result = tool.run(given, context)
    except ToolError as error:
        result = ToolResult.failed(str(error))
    finally:
        mode.close()
    result = replace(result, data=redact(result.data), error=redact(result.error))
    return result, calls.made, mode.isolation().level.value, time.monotonic() - begun


class _Told:
    """Calls shown on stderr as they end, and kept; see `agent.tools.SubCalls`."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        import threading

        self.redact = redact

        self._lock = threading.Lock()
        self._count = 0
        self.made: list[dict[str, Any]] = []

    def begin(self, tool: str, params: Any) -> Any:
        from agent.tools import SubCall

        with self._lock:
            self._count += 1
            return SubCall(ref=f"T1.{self._count}", tool=tool, params=params)

    def finish(self, call: Any, result: ToolResult, seconds: float) -> None:
        params = ", ".join(f"{name}={value}" for name, value in call.params.items())
        say(f"{call.ref:>6}  {call.tool}({one_line(params)[:120]})  {result.status}, {seconds:.1f} s")
        status = result.status.value
        with self._lock:
            self.made.append({"ref": call.ref, "tool": call.tool, "params": dict(call.params), "status": status})


def _config(settings: Settings) -> CodeModeConfig:
    """As configured; run by hand, it needs no enabling."""
    from agent.code_mode.config import CodeModeConfig

    configured = getattr(settings, "code_mode", None) or CodeModeConfig()
    # For a single script the fork server would take longer to start than it saves.
    return CodeModeConfig.model_validate({**configured.model_dump(), "enabled": True, "fork_server": False})


def _configured(settings: Settings) -> list[Tool]:
    from toolsets.catalog import build_toolset, gather

    return list(gather([build_toolset(name, one) for name, one in settings.toolsets.items()]))


def _demo_tools() -> list[Tool]:
    from agent.code_mode.demo import demo_tools

    return list(demo_tools())


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            text = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with file.open("rb") as stream:
                text = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Misused(f"{file}: {error.strerror}") from error
    if len(text) > MAX_FILE_BYTES:
        raise Misused(f"{file}: larger than {MAX_FILE_BYTES} bytes")
    return text.decode("utf-8", "replace")
