"""Runs benchmark figures: `python tests/bench/run.py FIGURE... [--data DIR] [--json] [--seed N] [--limit N]`.

A figure is a module beside this one with `run(options) -> Iterable[Figure]`. The exit status is 0 when all of them ran,
whatever they found.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]


def figures() -> list[str]:
    """The names of the modules that are figures: a letter and a number."""
    return sorted(path.stem for path in FOLDER.glob("[qp][0-9]*.py"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Benchmark figures; each is one line.")
    parser.add_argument("figure", nargs="+", choices=figures())
    parser.add_argument("--data", type=Path, help="a folder with the unpacked cases")
    parser.add_argument("--json", action="store_true", help="one JSON line a figure")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0, help="cases of each group at most; 0 is all")
    parser.add_argument("--verbose", action="store_true", help="what was missed, on the error stream")
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))  # this file is a program; its modules are tests.bench.*

    from tests.bench.figure import Options

    options = Options(data=given.data, seed=given.seed, limit=given.limit, verbose=given.verbose)
    for name in given.figure:
        for found in import_module(f"tests.bench.{name}").run(options):
            print(json.dumps(found.as_json()) if given.json else found.as_text(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
