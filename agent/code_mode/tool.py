"""`run_python` as the model sees it: offered where the host isolates well enough, its result in plain words."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.code_mode.authority import CODE_TOOL, Authority, Memory, allow_list
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.forking import ForkServer
from agent.code_mode.host import End, Host, Outcome
from agent.code_mode.isolation import Isolation, Level, needed, probe
from agent.deadline import Clock
from agent.errors import ToolError
from agent.tools import Arguments, ResultStatus, SubCall, Tool, ToolContext, ToolResult

GRACE_SECONDS = 3.0  # between the end of a script and the time at which the loop gives the call up
SHOWN_CODE_CHARS = 100
PR_SET_DUMPABLE = 4  # linux/prctl.h

DESCRIPTION = """\
Run one Python script that calls other tools and prints only what matters: to filter or join large results, to look \
at many objects at once, to compute. Standard library only; no files, network or processes. \
Call tools.NAME(...) with the parameters of the tool; results are parsed objects where the tool has structure, else \
text; a call that finds nothing gives an empty, false value; one that fails raises ToolError. \
Side by side: tools.gather(tools.NAME.defer(...), ...) or tools.map("NAME", [{...}, ...]). \
help(tools.NAME) prints parameters. Only what you print, and the value of a last expression, comes back. \
Tools: """


@dataclass(slots=True, kw_only=True)
class CodeMode:
    """One a process: keeps the fork server and the answer of the probe. `tool_seconds` bounds each call of a script."""

    config: CodeModeConfig
    tool_seconds: float
    clock: Clock = time.monotonic
    _server: ForkServer = field(default_factory=ForkServer)
    _isolation: Isolation | None = None
    _host: Host | None = None

    def isolation(self) -> Isolation:
        if self._isolation is None:
            self._isolation = probe(self.config)
        return self._isolation

    def unavailable(self) -> str:
        """Why the tool is not offered here; "" where it is."""
        if not self.config.enabled:
            return "code mode is not enabled"
        found = self.isolation()
        if found.meets(self.config.require):
            return ""
        return (
            f"the host gives isolation {found.level.value!r}, and code_mode.require is {self.config.require!r}: "
            f"{found.reason}"
        )

    def tool(self, tools: Sequence[Tool]) -> Tool | None:
        """`run_python` over the tools of one investigation; None where it can't be offered (see `unavailable`)."""
        if self.unavailable():
            return None
        return code_tool(tools, self.config, host=self.host(), tool_seconds=self.tool_seconds, clock=self.clock)

    def host(self) -> Host:
        """With the fork server where the seal holds: it relies on a script that can't fork."""
        if self._host is None:
            sealed = self.isolation().level is not Level.NONE
            server = self._server if sealed and self.config.fork_server else None
            self._host = Host(limits=self.config, need=needed(self.config.require), server=server, clock=self.clock)
        return self._host

    def close(self) -> None:
        self._server.close()


def code_tool(
    tools: Sequence[Tool],
    config: CodeModeConfig,
    *,
    host: Host,
    tool_seconds: float,
    grace_seconds: float = GRACE_SECONDS,
    clock: Clock = time.monotonic,
) -> Tool:
    """The tool itself. What a script may call is decided from `tools`, for every call anew."""
    memory = Memory()

    def run(arguments: Arguments, context: ToolContext) -> ToolResult:
        code, seconds = _asked(arguments, config, context)
        sub_calls = context.sub_calls or Unrecorded()
        authority = Authority(
            tools,
            context,
            sub_calls,
            limit=config.sub_calls,
            result_bytes=config.result_bytes,
            call_seconds=tool_seconds,
            memory=memory,
            clock=clock,
        )
        _hide()
        try:
            outcome = host.run(
                code, authority.specs(), authority.ask, wall_seconds=seconds, call_seconds=tool_seconds + grace_seconds
            )
        except OSError as error:
            raise ToolError(f"No process can be started ({error.strerror}). Call the tools directly.") from error
        return result_of(outcome, authority.exceeded, config)

    names, _ = allow_list(tools)
    return Tool(
        name=CODE_TOOL,
        description=DESCRIPTION + (", ".join(names) or "none"),
        parameters={
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "the script"},
                "timeout_seconds": {
                    "type": "number",
                    "description": f"at most {config.wall_seconds:g}, which is the default",
                },
            },
            "required": ["code"],
        },
        run=run,
        core=True,
        seconds=config.wall_seconds + 2 * GRACE_SECONDS,
    )


def _asked(arguments: Arguments, config: CodeModeConfig, context: ToolContext) -> tuple[str, float]:
    """Script and seconds. Raises `ToolError`."""
    code = arguments.get("code")
    if not isinstance(code, str) or not code.strip():
        raise ToolError("Not run: `code` is empty. Give a Python script that prints what matters.")
    if len(code.encode("utf-8", "replace")) > config.code_bytes:
        raise ToolError(f"Not run: the script is longer than {config.code_bytes} bytes.")
    wanted = arguments.get("timeout_seconds")
    seconds = config.wall_seconds if wanted is None else min(float(wanted), config.wall_seconds)
    if not seconds > 0:
        raise ToolError("Not run: timeout_seconds must be more than 0.")
    left = context.deadline.remaining - GRACE_SECONDS
    if left <= 0:
        raise ToolError("Not run: no time is left for a script. Report what you have.")
    return code, min(seconds, left)


def result_of(outcome: Outcome, exceeded: bool, config: CodeModeConfig) -> ToolResult:
    """What the model reads: output, value, errors, and in a last line how it ended where that is not the plain end."""
    parts = [outcome.stdout.rstrip("\n")]
    parts += [f"value: {outcome.value}"] if outcome.value else []
    parts += [f"stderr:\n{outcome.stderr.rstrip()}"] if outcome.stderr.strip() else []
    if exceeded:
        parts.append(f"[a script may make {config.sub_calls} calls of tools; it asked for more]")
    if outcome.lost_bytes:
        parts.append(f"[{outcome.lost_bytes} bytes of output were left out: print less]")
    text = "\n".join(part for part in parts if part.strip())
    if outcome.end is End.FINISHED:
        return ToolResult(status=ResultStatus.SUCCESS, data=text or "(the script printed nothing)")
    return ToolResult(status=ResultStatus.ERROR, error=f"The script was not finished: {outcome.words}.", data=text)


def summary(arguments: Arguments) -> str:
    """One line for people, whatever the model sent for code."""
    code = arguments.get("code")
    lines = [line.strip() for line in code.splitlines() if line.strip()] if isinstance(code, str) else []
    if not lines:
        return "(no code)"
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    return f"{lines[0][:SHOWN_CODE_CHARS]}{more}"


class Unrecorded:
    """Sub-calls outside an investigation, for the command line and tests; see `agent.tools.SubCalls`."""

    def __init__(self) -> None:
        self.finished: list[tuple[SubCall, ToolResult]] = []

    def begin(self, tool: str, params: Arguments) -> SubCall:
        return SubCall(ref="", tool=tool, params=params)

    def finish(self, call: SubCall, result: ToolResult, seconds: float) -> None:  # noqa: ARG002
        self.finished.append((call, result))

    def redact(self, text: str) -> str:
        return text


def _hide() -> None:
    """Close this process's memory and environment to others of the same user, scripts among them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
