from __future__ import annotations

import re
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from agent.deadline import Deadline
from agent.tools import Health, HealthState, JsonSchema, Tool, ToolResult, Toolset
from toolsets.catalog import ToolsetConfig, build_toolset, check_all, fitting_name, gather
from toolsets.configs import KubernetesConfig, LokiConfig, PlanConfig, PrometheusConfig, YamlConfig

NOTHING: JsonSchema = {"type": "object", "properties": {}}
VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CONFIG: TypeAdapter[object] = TypeAdapter(ToolsetConfig)


def a_tool(name: str, parameters: JsonSchema = NOTHING) -> Tool:
    return Tool(name=name, description="d", parameters=parameters, run=lambda _, __: ToolResult.success(name))


def a_toolset(name: str, *tools: Tool) -> Toolset:
    return Toolset(name=name, tools=tools, check=lambda _: Health.ok())


@given(st.lists(st.text(min_size=1), max_size=12))
def test_whatever_the_names_all_tools_get_their_own_valid_one(names: list[str]) -> None:
    gathered = gather([a_toolset("one", *map(a_tool, names)), a_toolset("two", *map(a_tool, names))])
    assert len({tool.name for tool in gathered}) == len(names) * 2
    assert all(VALID.fullmatch(tool.name) for tool in gathered)


def test_a_good_name_stays_and_a_bad_one_is_the_same_from_run_to_run() -> None:
    assert fitting_name("loki_query") == "loki_query"
    assert fitting_name("loki.query") == "loki_query_a652e908"
    assert fitting_name("x" * 70) != fitting_name("x" * 71)


@pytest.mark.parametrize(
    "tool",
    [
        a_tool(""),
        a_tool("bad", {"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}]}}}),
        a_tool("bad", {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}),
        a_tool("bad", {"type": "object", "properties": {"x": {"type": "array", "items": {"$ref": "#/x"}}}}),
        a_tool("bad", {"type": "string"}),
    ],
)
def test_a_tool_that_providers_would_refuse_costs_only_itself(tool: Tool, caplog: pytest.LogCaptureFixture) -> None:
    assert [tool.name for tool in gather([a_toolset("one", tool, a_tool("good"))])] == ["good"]
    assert "tool left out" in caplog.text


def test_one_hanging_check_does_not_hold_the_others() -> None:
    release = threading.Event()

    def hang(_: Deadline) -> Health:
        release.wait(20)
        return Health.ok()

    def crash(_: Deadline) -> Health:
        raise KeyError("x")

    checks = {"hangs": hang, "crashes": crash, "works": lambda _: Health.ok("fine")}
    started = time.monotonic()
    found = check_all(
        [Toolset(name=name, tools=(), check=check) for name, check in checks.items()], Deadline.after(0.5)
    )
    release.set()
    assert time.monotonic() - started < 3
    assert found["works"] == Health.ok("fine")
    assert found["hangs"].state is HealthState.FAILED
    assert found["hangs"].reason == "no answer within 0.5 s"
    assert found["crashes"].reason == "the check failed: KeyError: 'x'"


def test_the_catalog_is_cheap_to_import() -> None:
    heavy = ("requests", "jinja2", "litellm", "celery", "urllib3")
    code = f"import sys, toolsets.catalog; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "config",
    [
        KubernetesConfig(url="https://k8s.example"),
        PrometheusConfig(url="http://p.example"),
        LokiConfig(url="http://l.example"),
        PlanConfig(),
        YamlConfig(builtin="host"),
    ],
)
def test_every_kind_is_built_without_reaching_a_network(config: ToolsetConfig) -> None:
    toolset = build_toolset("mine", config)
    assert toolset.name == "mine"
    assert gather([toolset]) == toolset.tools


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "kubernetes", "url": "https://k", "kubeconfig": "/x"},
        {"kind": "kubernetes", "url": "ftp://k"},
        {"kind": "kubernetes", "context": "prod"},
        {"kind": "prometheus", "url": "http://p", "username": "u"},
        {"kind": "prometheus", "url": "http://p", "tennant": "typo"},
        {"kind": "yaml"},
        {"kind": "yaml", "path": "/x", "builtin": "host"},
        {"kind": "mystery"},
    ],
)
def test_a_configuration_that_can_not_be_meant_is_refused(content: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        CONFIG.validate_python(content)
