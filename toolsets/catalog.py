"""The kinds of toolset there are, and what holds for the tools of all of them: names, schemas, prerequisites."""

from __future__ import annotations

import hashlib
import logging
import queue
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, assert_never

from pydantic import Field

from agent.deadline import Deadline
from agent.tools import Health, Tool, Toolset
from toolsets.configs import KubernetesConfig, LokiConfig, PlanConfig, PrometheusConfig, YamlConfig

ToolsetConfig = Annotated[
    KubernetesConfig | PrometheusConfig | LokiConfig | PlanConfig | YamlConfig, Field(discriminator="kind")
]
MAX_NAME_CHARS = 64  # OpenAI's and Bedrock's limit; one longer name and every request is refused
SCHEMA_KEYS = frozenset({"type", "properties", "required", "description", "enum", "items"})
SCHEMA_TYPES = frozenset({"object", "string", "number", "integer", "boolean", "array"})
log = logging.getLogger("rootcaused.toolsets")


def build_toolset(name: str, config: ToolsetConfig) -> Toolset:
    """The toolset configured under `name`. Raises `ConfigError`; reaches no network."""
    match config:
        case KubernetesConfig():
            from toolsets.kubernetes.toolset import build as build_kubernetes

            return build_kubernetes(name, config)
        case PrometheusConfig():
            from toolsets.prometheus import build as build_prometheus

            return build_prometheus(name, config)
        case LokiConfig():
            from toolsets.loki import build as build_loki

            return build_loki(name, config)
        case PlanConfig():
            from toolsets.plan import build as build_plan

            return build_plan(name, config)
        case YamlConfig():
            from toolsets.commands import build as build_commands

            return build_commands(name, config)
        case _:
            assert_never(config)


def check_all(toolsets: Iterable[Toolset], deadline: Deadline) -> dict[str, Health]:
    """The prerequisites of every toolset, all at once; one that hangs costs only itself."""
    waiting = {toolset.name: toolset for toolset in toolsets}
    allowed = deadline.remaining
    answers: queue.SimpleQueue[tuple[str, Health]] = queue.SimpleQueue()
    for toolset in waiting.values():
        # Daemon threads: a check that never ends must not keep the process from ending.
        threading.Thread(target=_check_one, args=(toolset, deadline, answers), daemon=True).start()
    found: dict[str, Health] = {}
    while len(found) < len(waiting):
        try:
            name, health = answers.get(timeout=min(deadline.remaining, threading.TIMEOUT_MAX))
        except queue.Empty:
            break
        found[name] = health
    silent = Health.failed(f"no answer within {allowed:.1f} s", "check that what it needs can be reached from here")
    return {name: found.get(name, silent) for name in waiting}


def _check_one(toolset: Toolset, deadline: Deadline, answers: queue.SimpleQueue[tuple[str, Health]]) -> None:
    try:
        health = toolset.check(deadline)
    except Exception as error:  # noqa: BLE001  # whatever a check raises is its answer: this toolset can't be used
        health = Health.failed(f"the check failed: {type(error).__name__}: {error}")
    answers.put((toolset.name, health))


def gather(toolsets: Iterable[Toolset]) -> tuple[Tool, ...]:
    """The tools of all, under names and with schemas that every model provider takes.

    A name that does not fit, or is taken, gets a suffix that stays the same from run to run. A tool that can't be
    made to fit is left out and logged: it would cost every request, not only its own.
    """
    tools: dict[str, Tool] = {}
    for toolset in toolsets:
        for tool in toolset.tools:
            if fault := _fault(tool):
                log.warning("tool left out: %s of toolset %s: %s", tool.name or "(no name)", toolset.name, fault)
                continue
            name = fitting_name(tool.name)
            attempt = 0
            while name in tools:
                attempt += 1
                name = _suffixed(name, f"{toolset.name}:{tool.name}:{attempt}")
            tools[name] = tool if name == tool.name else replace(tool, name=name)
    return tuple(tools.values())


def fitting_name(name: str) -> str:
    """`name` if it matches ^[a-zA-Z0-9_-]{1,64}$, else something near it with a hash of the whole."""
    fitting = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    return name if fitting == name and len(name) <= MAX_NAME_CHARS else _suffixed(fitting, name)


def _suffixed(name: str, whole: str) -> str:
    suffix = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{name[: MAX_NAME_CHARS - 9]}_{suffix}"


def _fault(tool: Tool) -> str:
    if not tool.name:
        return "it has no name"
    if tool.parameters.get("type") != "object":
        return "its parameters are not an object"
    return next(_schema_faults(tool.parameters), "")


def _schema_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """What some provider refuses: unions, references, defaults, type lists."""
    if unknown := sorted(schema.keys() - SCHEMA_KEYS):
        yield f"its schema uses {', '.join(unknown)}"
    if not isinstance(kind := schema.get("type"), str) or kind not in SCHEMA_TYPES:
        yield f"its schema has type {kind!r}"
    parts = [*(schema.get("properties") or {}).values(), *([schema["items"]] if "items" in schema else [])]
    for part in parts:
        yield from _schema_faults(part)
