from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from agent.alert import Alert
from agent.deadline import Deadline
from agent.errors import ConfigError, ToolError
from agent.tools import HealthState, ResultStatus, Tool, ToolContext, ToolResult, Toolset
from toolsets.command_file import CommandTemplate
from toolsets.commands import build
from toolsets.configs import YamlConfig

ECHO = f"{sys.executable} -I -S -c 'import json, sys; print(json.dumps(sys.argv[1:]))'"
CONTEXT = ToolContext(deadline=Deadline.never(), alert=Alert(source="s", id="1", title="t"))


@pytest.fixture
def toolset(tmp_path: Path) -> Any:
    def make(text: str, **environment: str) -> Toolset:
        path = tmp_path / "tools.yaml"
        path.write_text(text)
        secrets = {name: SecretStr(value) for name, value in environment.items()}
        return build("mine", YamlConfig(path=path, environment=secrets))

    return make


def tool(toolset: Toolset, name: str) -> Tool:
    return next(tool for tool in toolset.tools if tool.name == f"mine_{name}")


def call(toolset: Toolset, name: str, **arguments: Any) -> ToolResult:
    return tool(toolset, name).run(arguments, CONTEXT)


def test_parameters_are_taken_from_the_template_as_required_text(toolset: Any) -> None:
    made = toolset("tools:\n  look:\n    description: Look.\n    command: ls {{ path }}/{{ file }}\n")
    assert tool(made, "look").parameters == {
        "type": "object",
        "properties": {"file": {"type": "string"}, "path": {"type": "string"}},
        "required": ["file", "path"],
    }


def test_declared_parameters_keep_their_rules(toolset: Any) -> None:
    made = toolset(
        "tools:\n  look:\n    description: Look.\n    command: head -n {{ n }} {{ how }} {% if x %}{{ x }}{% endif %}\n"
        "    parameters:\n      n: {type: integer, default: 5, pattern: '[0-9]+'}\n"
        "      how: {enum: [-q, -v]}\n      x: {required: false, description: more}\n"
    )
    schema = tool(made, "look").parameters
    assert schema["required"] == ["how"]
    assert schema["properties"]["n"] == {"type": "integer", "description": "must match [0-9]+; default 5"}
    assert schema["properties"]["how"]["enum"] == ["-q", "-v"]
    for wrong in (
        {"how": "-x"},
        {"how": "-q", "n": "many"},
        {"how": "-q", "n": -1},
        {},
        {"how": "-q", "colour": "red"},
    ):
        with pytest.raises(ToolError):
            call(made, "look", **wrong)
    assert call(made, "look", how="-q").query == "head -n 5 -q"
    assert call(made, "look", how="-v", n=2, x="a b").query == "head -n 2 -v 'a b'"


HOSTILE = [
    "; id",
    "$(id)",
    "`id`",
    "a b",
    "'",
    '"',
    'a" --flag "b',
    "a'; id; '",
    "\\",
    "*",
    "~root",
    "{{ 7*7 }}",
    "a\nb",
    "|id",
]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("hole", ["{{ x }}", '"{{ x }}"', "'{{ x }}'"])
def test_a_value_is_one_word_whatever_it_holds_and_however_the_template_quotes_it(
    toolset: Any, value: str, hole: str
) -> None:
    template = CommandTemplate(f"program {hole} end")
    assert template.argv({"x": value}) == ["program", value, "end"]


def test_the_program_gets_exactly_the_value(toolset: Any) -> None:
    made = toolset(f'tools:\n  say:\n    description: Say.\n    command: "{ECHO} pre-{{{{ x }}}} {{{{ y }}}}"\n')
    result = call(made, "say", x="$(id) \" '", y="; id")
    assert json.loads(result.data) == ["pre-$(id) \" '", "; id"]


@given(st.text().filter(lambda text: not text.startswith("-")), st.text())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_no_text_leaves_its_word(first: str, second: str) -> None:
    template = CommandTemplate("program {{ a }} \"x={{ b }}\" 'y {{ a }}' z{{ b }}")
    assert template.argv({"a": first, "b": second}) == ["program", first, f"x={second}", f"y {first}", f"z{second}"]


@pytest.mark.parametrize("value", ["-rf", "--exec=id", " -x", -5])
def test_a_value_that_would_be_an_option_is_refused(toolset: Any, value: Any) -> None:
    made = toolset("tools:\n  look:\n    description: Look.\n    command: ls {{ path }}\n")
    with pytest.raises(ToolError, match="begin with '-'"):
        call(made, "look", path=value)


def test_a_word_that_a_loop_makes_of_a_value_can_not_become_an_option() -> None:
    template = CommandTemplate("ls {% for part in parts.split(',') %}{{ part }} {% endfor %}")
    assert template.argv({"parts": "a,b c"}) == ["ls", "a", "b c"]
    with pytest.raises(ToolError, match="would take it for an option"):
        template.argv({"parts": "a,-rf"})


@pytest.mark.parametrize(
    ("yaml", "line", "key", "words"),
    [
        ("    command: 'ls {{ path'", 4, "tools.look.command", "is not a template"),
        ("    command: '{{ program }} x'", 4, "tools.look.command", "begin with the name of a program"),
        ("    command: ps aux | head", 4, "tools.look.command", "use script instead"),
        ("    command: sh -c 'ls {{ path }}'", 4, "tools.look.command", "to interpret"),
        ('    command: "ls \'open"', 4, "tools.look.command", "No closing quotation"),
        ("    script: ls {{ path }}", 4, "tools.look.script", 'write "$name"'),
        ("    command: ls\n    script: ls", 2, "tools.look", "one of them"),
        ("    command: ls\n    parameters: {x: {}}", 2, "tools.look", "not used by the command: x"),
        ("    command: ls\n    timeout: 5", 5, "tools.look.timeout", "not permitted"),
        ("    command: ls\n    parameters:\n      x: {pattern: '('}", 6, "tools.look.parameters.x.pattern", "regular"),
        ("    command: ls\n    parameters:\n      PATH: {}", 6, "tools.look.parameters.PATH", "match pattern"),
    ],
)
def test_an_error_in_the_file_names_line_and_key(toolset: Any, yaml: str, line: int, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        toolset(f"tools:\n  look:\n    description: Look.\n{yaml}\n")
    assert (error.value.line, error.value.key) == (line, key)
    assert words in str(error.value)


def test_a_script_gets_its_parameters_as_variables(toolset: Any) -> None:
    made = toolset(
        "tools:\n  say:\n    description: Say.\n    script: |\n      printf '<%s>' \"$x\" | tr a-z A-Z\n"
        "    parameters:\n      x: {}\n"
    )
    result = call(made, "say", x="$(id); a")
    assert result.data == "<$(ID); A>"
    assert result.query == "x='$(id); a' printf '<%s>' \"$x\" | tr a-z A-Z"


@pytest.mark.parametrize(
    ("script", "rule", "status"),
    [
        ("echo found", "", ResultStatus.SUCCESS),
        ("true", "", ResultStatus.NO_DATA),
        ("true", "    no_data: {empty: false}\n", ResultStatus.SUCCESS),
        ("exit 1", "    no_data: {exit_codes: [1]}\n", ResultStatus.NO_DATA),
        ("echo broken; exit 2", "    no_data: {exit_codes: [1]}\n", ResultStatus.ERROR),
        ("echo partly; sleep 60", "    timeout_seconds: 0.3\n", ResultStatus.ERROR),
        ("no-such-program-here", "", ResultStatus.ERROR),
    ],
)
def test_nothing_found_is_told_from_failure(toolset: Any, script: str, rule: str, status: ResultStatus) -> None:
    result = call(toolset(f"tools:\n  look:\n    description: Look.\n    script: {script!r}\n{rule}"), "look")
    assert result.status is status


def test_a_failure_keeps_what_the_program_said(toolset: Any) -> None:
    made = toolset(
        "tools:\n  look:\n    description: Look.\n    script: echo partly; sleep 60\n    timeout_seconds: 0.3\n"
    )
    result = call(made, "look")
    assert result.data == "partly"
    assert result.error.startswith("stopped after 0.3 s; ask for less")


def test_too_much_output_is_partial_and_says_so(toolset: Any) -> None:
    made = toolset("tools:\n  look:\n    description: Look.\n    command: 'yes'\n    output_bytes: 1000\n")
    result = call(made, "look")
    assert result.status is ResultStatus.SUCCESS
    assert result.data.startswith("PARTIAL: stopped after 1000 bytes of output")


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ("programs: [sh]\n  commands: ['true']", ""),
        ("programs: [sh, no-such-program]", "not on the PATH: no-such-program"),
        ("environment: [GIVEN, ABSENT]", "not set: ABSENT"),
        ("commands: ['echo why; exit 4']", "`echo why; exit 4`: exit code 4: why"),
    ],
)
def test_prerequisites_are_checked(toolset: Any, needs: str, reason: str) -> None:
    made = toolset(f"prerequisites:\n  {needs}\ntools:\n  a:\n    description: A.\n    command: ls\n", GIVEN="x")
    health = made.check(Deadline.after(5))
    assert health.reason == reason
    assert (health.state is HealthState.OK) is (reason == "")


def test_an_unknown_builtin_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match="there are git, host, openssl"):
        build("mine", YamlConfig(builtin="nope"))


@pytest.mark.parametrize("name", ["git", "host", "openssl"])
def test_every_builtin_loads_with_small_schemas(name: str) -> None:
    made = build("mine", YamlConfig(builtin=name))
    assert made.tools
    assert all(len(json.dumps(tool.schema())) < 900 for tool in made.tools)


def test_the_git_builtin_refuses_to_take_a_commit_for_an_option() -> None:
    made = build("mine", YamlConfig(builtin="git"))
    with pytest.raises(ToolError, match="must match"):
        call(made, "show", repository="/tmp", commit="--output=/tmp/x")


def test_a_restricted_tool_is_marked_for_approval(toolset: Any) -> None:
    made = toolset("tools:\n  a:\n    description: A.\n    command: reboot\n    restricted: true\n")
    assert tool(made, "a").restricted
