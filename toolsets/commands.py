"""Command tools from a YAML file: the toolset kind `yaml`."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any

from agent.deadline import Deadline
from agent.errors import ConfigError, ToolError
from agent.tools import Arguments, Health, JsonSchema, ResultStatus, Tool, ToolContext, ToolResult, Toolset
from toolsets import arguments as read
from toolsets import process, yaml_file
from toolsets.command_file import CommandFile, CommandTool, Parameter
from toolsets.configs import YamlConfig

CHECK_SECONDS = 10.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes of a shell that can't start the program
Environment = Mapping[str, str]


def build(name: str, config: YamlConfig) -> Toolset:
    """Raises `ConfigError` naming file, line and key."""
    file = _load(config)
    environment = {key: value.get_secret_value() for key, value in config.environment.items()}
    return Toolset(
        name=name,
        instructions=file.instructions.strip(),
        tools=tuple(_tool(f"{name}_{verb}", tool, environment) for verb, tool in file.tools.items()),
        check=lambda deadline: _check(file, environment, deadline),
    )


def _load(config: YamlConfig) -> CommandFile:
    if config.path:
        return yaml_file.read(config.path, CommandFile)
    folder = resources.files("toolsets") / "builtin"
    there = sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    if config.builtin not in there:
        raise ConfigError(f"no builtin toolset {config.builtin!r}; there are {', '.join(there)}", key="builtin")
    text = (folder / f"{config.builtin}.yaml").read_text("utf-8")
    return yaml_file.parse(text, CommandFile, file=f"builtin/{config.builtin}.yaml")


def _tool(name: str, tool: CommandTool, environment: Environment) -> Tool:
    schema = _schema(tool.takes)
    return Tool(
        name=name,
        description=tool.description.strip(),
        parameters=schema,
        run=partial(_run, tool, schema, environment),
        restricted=tool.restricted,
    )


def _schema(parameters: Mapping[str, Parameter]) -> JsonSchema:
    properties: dict[str, Any] = {}
    for name, parameter in parameters.items():
        entry: dict[str, Any] = {"type": parameter.type}
        # JSON schema has `pattern` and `default`, but not every model provider takes them: they are said in words.
        notes = [parameter.description, parameter.pattern and f"must match {parameter.pattern}"]
        notes.append("" if parameter.default is None else f"default {parameter.default}")
        if description := "; ".join(note for note in notes if note):
            entry["description"] = description
        if parameter.enum:
            entry["enum"] = list(parameter.enum)
        properties[name] = entry
    required = [name for name, parameter in parameters.items() if parameter.required and parameter.default is None]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _run(
    tool: CommandTool, schema: JsonSchema, environment: Environment, arguments: Arguments, context: ToolContext
) -> ToolResult:
    given = read.only_known(arguments, schema)
    values = {name: _value(name, parameter, given.get(name)) for name, parameter in tool.takes.items()}
    if tool.script:
        variables = {name: _text(value) for name, value in values.items() if value is not None}
        argv = ["/bin/sh", "-c", tool.script, "script"]
        lines = "; ".join(line.strip() for line in tool.script.splitlines() if line.strip())
        query = " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), lines])
        environment = {**environment, **variables}
    else:
        argv = tool.template.argv(values, _may_be_flags(tool, values))
        query = shlex.join(argv)
    limits = process.Limits(seconds=tool.timeout_seconds, memory_mb=tool.memory_mb, output_bytes=tool.output_bytes)
    try:
        outcome = process.run(
            argv,
            deadline=context.deadline,
            limits=limits,
            environment=environment,
            cwd=str(tool.cwd) if tool.cwd else None,
        )
    except OSError as error:
        return ToolResult.failed(f"could not be started: {error.strerror}", query=query)
    return _result(tool, outcome, query)


def _value(name: str, parameter: Parameter, value: Any) -> Any:
    """One argument, of its type and within its rules; None for an optional one that was left out."""
    if value is None:
        value = parameter.default
    if value is None:
        return None
    match parameter.type:
        case "boolean":
            return read.flag({name: value}, name)
        case "integer":
            value = read.whole({name: value}, name, default=0, low=-(10**15), high=10**15)
        case "number":
            value = _number(name, value)
        case "string":
            value = read.text({name: value}, name)
    text = str(value)
    if parameter.enum and text not in parameter.enum:
        raise ToolError(f"{name}: must be one of {', '.join(parameter.enum)}")
    if parameter.pattern and not re.fullmatch(parameter.pattern, text):
        raise ToolError(f"{name}: must match {parameter.pattern}")
    if text.lstrip().startswith("-") and not (parameter.enum or parameter.pattern):
        raise ToolError(f"{name}: must not begin with '-'")
    return value


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ToolError(f"{name}: expected a number") from error


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _may_be_flags(tool: CommandTool, values: Mapping[str, Any]) -> frozenset[str]:
    """Values whose own rules let them begin with "-"."""
    ruled = (name for name, parameter in tool.takes.items() if parameter.enum or parameter.pattern)
    return frozenset(str(values[name]) for name in ruled)


def _result(tool: CommandTool, outcome: process.Outcome, query: str) -> ToolResult:
    output = outcome.output.strip("\n")
    if outcome.code is None:
        over = "bytes" in outcome.ended
        if over:
            return ToolResult.success(f"PARTIAL: {outcome.ended}; ask for less\n{output}", query=query)
        return _failed(f"{outcome.ended}; ask for less. Output so far:", output, query)
    if outcome.code in tool.no_data.exit_codes:
        return ToolResult.no_data(output or f"nothing found (exit code {outcome.code})", query=query)
    if outcome.code != 0:
        return _failed(_how_it_ended(outcome.code), output, query)
    if not output.strip() and tool.no_data.empty:
        return ToolResult.no_data("no output", query=query)
    return ToolResult.success(output or "(no output)", query=query)


def _failed(error: str, output: str, query: str) -> ToolResult:
    return ToolResult(status=ResultStatus.ERROR, error=error, data=output, query=query)


def _how_it_ended(code: int) -> str:
    if code in (NOT_FOUND, NOT_EXECUTABLE):
        return "the program is not installed here; use another tool"
    if code < 0:
        return f"ended by {signal.Signals(-code).name}, probably by its memory or time limit; ask for less"
    return f"exit code {code}"


def _check(file: CommandFile, environment: Environment, deadline: Deadline) -> Health:
    """Every prerequisite, the cheap ones first."""
    needs = file.prerequisites
    path = environment.get("PATH", process.DEFAULT_ENVIRONMENT["PATH"])
    if missing := [program for program in needs.programs if not shutil.which(program, path=path)]:
        return Health.failed(f"not on the PATH: {', '.join(missing)}", f"install {', '.join(missing)}")
    if unset := [variable for variable in needs.environment if not environment.get(variable)]:
        return Health.failed(f"not set: {', '.join(unset)}", "set them under `environment` of this toolset")
    for command in needs.commands:
        limits = process.Limits(seconds=CHECK_SECONDS, output_bytes=2_000)
        try:
            outcome = process.run(["/bin/sh", "-c", command], deadline=deadline, limits=limits, environment=environment)
        except OSError as error:
            return Health.failed(f"`{command}`: {error.strerror}")
        if outcome.code != 0:
            how = outcome.ended or f"exit code {outcome.code}"
            return Health.failed(f"`{command}`: {how}: {outcome.output.strip()[:200]}", "run it by hand to see why")
    return Health.ok()
