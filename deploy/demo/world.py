"""The demo world: one local HTTP server that plays every system an investigation touches.

    python deploy/demo/world.py --port 0 --state DIR [--seed N]

Prints one JSON line with its address when it is ready. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(
        description="A local stand-in for the alert sources, Prometheus, Loki and Kubernetes."
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--state", type=Path, required=True, help="a folder for notes and deliveries; kept across restarts"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="varies when the incidents happened; kept in the state folder"
    )
    options = parser.parse_args()
    sys.path.insert(
        0, str(Path(__file__).resolve().parents[2])
    )  # this file is a program; its modules are deploy.demo.*

    from deploy.demo.server import World

    world = World(options.port, options.state, seed=options.seed)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=world.shutdown).start())
    print(json.dumps({"ready": True, "address": world.address, "pid": os.getpid()}), flush=True)
    world.serve_forever(poll_interval=0.1)
    world.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
