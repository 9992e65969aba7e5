"""What a YAML file of command tools may say, and its templates, which can't be broken out of.

A `command` is a Jinja template that is split into words *before* the values go in: each value lands inside one word
of the command line, whatever quotes, spaces or shell characters it holds, and no shell ever reads it.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import jinja2
import jinja2.meta
import jinja2.sandbox
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agent.errors import ToolError

OPEN, CLOSE = "\ue000", "\ue001"  # private-use characters around the number of a value
INTERPRETERS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "awk"})
PROGRAM_FLAG = re.compile(r"-[a-zA-Z]*[ce]|--eval")
SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"})
ParameterName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
ToolName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
Scalar = str | int | float | bool


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(_Section):
    """`pattern` must match the whole value; with it (or `enum`) a value may also begin with "-"."""

    type: Literal["string", "integer", "number", "boolean"] = "string"
    description: str = ""
    enum: tuple[str, ...] = ()
    pattern: str = ""
    required: bool = True
    default: Scalar | None = None

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from error
        return pattern


class NoData(_Section):
    """When a run means "looked and found nothing": these exit codes, or (unless `empty` is false) no output."""

    exit_codes: tuple[int, ...] = ()
    empty: bool = True


class CommandTool(_Section):
    """`command`: a template, run without a shell. `script`: run by /bin/sh; parameters are variables, as in "$name".

    `restricted`: every call waits for a person to approve it.
    """

    description: str = Field(min_length=1)
    command: str = ""
    script: str = ""
    parameters: dict[ParameterName, Parameter] = {}
    timeout_seconds: float = Field(default=30, gt=0, le=600)
    memory_mb: int = Field(default=1_024, ge=16)
    output_bytes: int = Field(default=1_000_000, ge=1_000, le=10_000_000)
    no_data: NoData = NoData()
    cwd: Path | None = None
    restricted: bool = False

    @model_validator(mode="after")
    def _runs_one_thing(self) -> Self:
        if bool(self.command.strip()) == bool(self.script.strip()):
            raise ValueError("give command or script, one of them")
        return self

    @field_validator("script")
    @classmethod
    def _script_has_no_template(cls, script: str) -> str:
        if "{{" in script or "{%" in script:
            raise ValueError('a script takes its parameters as variables: write "$name", not {{ name }}')
        return script

    @field_validator("command")
    @classmethod
    def _command_is_sound(cls, command: str) -> str:
        if command.strip():
            _refuse_unsound(CommandTemplate(command))
        return command

    @model_validator(mode="after")
    def _parameters_are_used(self) -> Self:
        if self.command:
            unused = self.parameters.keys() - self.template.names
            if unused:
                raise ValueError(f"parameters not used by the command: {', '.join(sorted(unused))}")
        return self

    @cached_property
    def template(self) -> CommandTemplate:
        return CommandTemplate(self.command)

    @cached_property
    def takes(self) -> Mapping[str, Parameter]:
        """The declared parameters, then those the template names without a declaration: required text."""
        inferred = sorted(self.template.names - self.parameters.keys()) if self.command else []
        return {**self.parameters, **{name: Parameter() for name in inferred}}


class Prerequisites(_Section):
    """What must hold: `programs` on the PATH, `environment` variables configured, `commands` that exit with 0."""

    programs: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class CommandFile(_Section):
    """One toolset. Its name is the key it is configured under."""

    instructions: str = ""
    prerequisites: Prerequisites = Prerequisites()
    tools: dict[ToolName, CommandTool] = Field(min_length=1)


class CommandTemplate:
    """A command line with holes for values."""

    def __init__(self, text: str) -> None:
        """Raises `ValueError` when `text` is not a template."""
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(  # words are split, not escaped: see the module
            undefined=jinja2.StrictUndefined, finalize=_hole, autoescape=False
        )
        try:
            self.names = frozenset(jinja2.meta.find_undeclared_variables(environment.parse(text)))
            self._template = environment.from_string(text)
        except jinja2.TemplateSyntaxError as error:
            raise ValueError(f"is not a template: {error.message}") from error

    def words(self, values: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The command line with numbered holes, and what belongs into them."""
        fillings: list[str] = []
        rendered = self._template.render({**values, _FILLINGS: fillings})
        return shlex.split(rendered), fillings

    def argv(self, values: Mapping[str, Any], may_be_flags: frozenset[str] = frozenset()) -> list[str]:
        """The command line. A value becomes part of one word; a word that begins with a value can't become a flag,
        except those in `may_be_flags`. Raises `ToolError`."""
        try:
            words, fillings = self.words(values)
        except jinja2.TemplateError as error:
            raise ToolError(f"these arguments don't fit the command: {error}") from error
        return [_filled(word, fillings, may_be_flags) for word in words]


_FILLINGS = "fillings__"


@jinja2.pass_context
def _hole(context: jinja2.runtime.Context, value: Any) -> str:
    if value is None:
        raise jinja2.UndefinedError("a parameter it needs is missing")
    fillings: list[str] = context[_FILLINGS]
    fillings.append(str(value))
    return f"{OPEN}{len(fillings) - 1}{CLOSE}"


def _filled(word: str, fillings: list[str], may_be_flags: frozenset[str]) -> str:
    filled = re.sub(f"{OPEN}([0-9]+){CLOSE}", lambda hole: fillings[int(hole[1])], word)
    if word.startswith(OPEN) and filled.startswith("-") and filled not in may_be_flags:
        raise ToolError(f"{filled[:40]!r} begins with '-', so the program would take it for an option; give it without")
    return filled


def _tried(template: CommandTemplate) -> list[str]:
    """Filled with text or, where the template compares numbers, with numbers."""
    try:
        return template.words(dict.fromkeys(template.names, "1"))[0]
    except TypeError:
        return template.words(dict.fromkeys(template.names, 1))[0]


def _refuse_unsound(template: CommandTemplate) -> None:
    """Try the template once. Raises `ValueError` for what would only fail, or be dangerous, at the first call."""
    try:
        words = _tried(template)
    except (jinja2.TemplateError, TypeError) as error:
        raise ValueError(f"can't be filled in: {error}") from error
    if not words or OPEN in words[0]:
        raise ValueError("must begin with the name of a program")
    if shell := sorted(SHELL_WORDS.intersection(words)):
        raise ValueError(f"has {shell[0]!r}, but no shell reads it: use script instead")
    for flag, program in itertools.pairwise(words):
        if Path(words[0]).name in INTERPRETERS and PROGRAM_FLAG.fullmatch(flag) and OPEN in program:
            raise ValueError(f"gives a value to {words[0]} to interpret: use script instead")
