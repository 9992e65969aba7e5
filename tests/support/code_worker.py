"""A real Celery prefork worker whose tasks run scripts: `python -m tests.support.code_worker REDIS_URL`."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import redis

from agent.alert import Alert
from agent.code_mode.config import CodeModeConfig
from agent.code_mode.tool import CodeMode
from agent.deadline import Deadline
from agent.tools import Tool, ToolContext, ToolResult
from worker.handover import Handover
from worker.queue import INVESTIGATE, consume, make_app, register
from worker.settings import Settings, WorkerSettings

CONCURRENCY = 4
WALL_SECONDS = 1.0
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
WHO = "import os\nprint('pid', os.getpid())\n"

# By turns. Each says its own number where it can, so that a mix-up would show.
SCRIPTS = (
    "print(tools.echo(text='@N@'))",
    "print(tools.map('echo', ['@N@'] * 2 + [f'@N@-{n}' for n in range(20)])[-1])",
    "import os\ntry: os.fork()\nexcept OSError: print('@N@ refused')",
    "print('@N@', flush=True)\nwhile True: pass",
    "print('@N@', flush=True)\nx = []\nwhile True: x.append(bytearray(1 << 20))",
    "while True: print('@N@' * 1000)",
    "print('@N@', flush=True)\ntools._wire._socket.send(b'x' * 100)\nimport time\ntime.sleep(30)",
    "import os\nprint('@N@', flush=True)\nos.kill(os.getpid(), 9)",
    (
        "import threading\nt = [threading.Thread(target=tools.echo, args=('@N@',)) for _ in range(8)]\n"
        "for one in t: one.start()\nfor one in t: one.join()\nprint('@N@')"
    ),
    (
        "import os, signal\nprint('@N@', flush=True)\nfor pid in (os.getppid(), 0, -1):\n"
        "  try: os.kill(pid, signal.SIGKILL)\n  except OSError: pass"
    ),
)


class Daemon:
    """One a pool child, made after the fork."""

    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url)
        config = CodeModeConfig(
            enabled=True, require="partial", wall_seconds=WALL_SECONDS, memory_mb=128, flood_bytes=2_000_000
        )
        self.mode = CodeMode(config=config, tool_seconds=5)
        echo = Tool(name="echo", description="", parameters=TEXT, run=lambda a, _: ToolResult.success(a["text"]))
        tool = self.mode.tool([echo])
        assert tool is not None, self.mode.unavailable()
        self.tool = tool

    def investigate(self, key: str, generation: int) -> None:
        code = WHO + SCRIPTS[int(key) % len(SCRIPTS)].replace("@N@", f"number {key};")
        context = ToolContext(deadline=Deadline.after(30), alert=Alert(source="s", id=key, title="chaos"))
        result = self.tool.run({"code": code}, context)
        told = {
            "key": key,
            "worker": os.getpid(),
            "server": self.mode._server.pid,
            "text": f"{result.data}\n{result.error}"[:100_000],
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "threads": threading.active_count(),
        }
        self.redis.rpush("done", json.dumps(told))


def main(url: str) -> None:
    settings = Settings(worker=WorkerSettings(concurrency=CONCURRENCY, max_tasks_per_child=1_000))
    app = make_app(settings, url)
    daemons: dict[int, Daemon] = {}

    def daemon() -> Daemon:
        pid = os.getpid()
        if pid not in daemons:
            daemons[pid] = Daemon(url)
        return daemons[pid]

    register(app, daemon, Handover())
    consume(app, INVESTIGATE, CONCURRENCY)


if __name__ == "__main__":
    main(sys.argv[1])
