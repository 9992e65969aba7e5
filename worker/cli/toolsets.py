"""`toolsets`: what investigations can look at, whether it answers, and what it costs in the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli.exits import Status
from worker.cli.options import AsJson, ConfigFile, settings_for_people
from worker.cli.terminal import say, show_json, show_table

if TYPE_CHECKING:
    from agent.tools import Health, Tool, Toolset

CHECK_SECONDS = 15.0


def toolsets(
    tokens: Annotated[
        bool, typer.Option("--tokens", help="List every tool with the tokens its schema costs in each request.")
    ] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List the configured toolsets and check each.

    Exits with 6 when one can't be used."""
    from agent.deadline import Deadline
    from toolsets.catalog import build_toolset, check_all

    settings = settings_for_people(config)
    built = [build_toolset(name, one) for name, one in settings.toolsets.items()]
    if built:
        say(f"checking {len(built)} toolsets ...")
    health = check_all(built, Deadline.after(CHECK_SECONDS))
    if as_json:
        show_json([_data(one, health[one.name]) for one in built])
    else:
        _table(built, health, tokens)
    if any(one.state == "failed" for one in health.values()):
        raise typer.Exit(Status.PARTIAL)


def schema_tokens(tool: Tool) -> int:
    """About how many tokens of every request the tool's schema takes."""
    from agent.history import schema_bytes
    from agent.spill import BYTES_PER_TOKEN

    return schema_bytes([tool.schema()]) // BYTES_PER_TOKEN


def _data(one: Toolset, health: Health) -> dict[str, Any]:
    tools = [{"name": tool.name, "tokens": schema_tokens(tool), "restricted": tool.restricted} for tool in one.tools]
    return {
        "name": one.name,
        "state": health.state.value,
        "reason": health.reason,
        "remedy": health.remedy,
        "tokens": sum(map(schema_tokens, one.tools)),
        "tools": tools,
    }


def _table(built: list[Toolset], health: dict[str, Health], tokens: bool) -> None:
    if not built:
        say("no toolsets are configured: investigations would have nothing to look at; see `toolsets:` in the docs")
        return
    rows = []
    for one in built:
        found = health[one.name]
        words = "; ".join(part for part in (found.reason, found.remedy) if part)
        rows.append((one.name, found.state.value, str(len(one.tools)), str(sum(map(schema_tokens, one.tools))), words))
    show_table(("TOOLSET", "STATE", "TOOLS", "TOKENS", "WHY, AND WHAT TO DO"), rows)
    if tokens:
        show_table(("", ""), ())
        each = [(tool.name, str(schema_tokens(tool))) for one in built for tool in one.tools]
        show_table(("TOOL", "TOKENS"), sorted(each, key=lambda row: -int(row[1])))
