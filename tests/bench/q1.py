"""Q1, evidence recall: whether what an expert underlined is in what the model would see of each long result."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from agent.digest import BYTES_PER_TOKEN, digest
from agent.plain import plain
from agent.redaction import Redactor
from agent.tools import ToolResult
from tests.bench.cloudopsbench.cases import Place, load, places
from tests.bench.cloudopsbench.decisive import pattern
from tests.bench.figure import Figure, Options

SIZES = {500: None, 800: None, 1_000: 0.98, 2_000: None}
RUN_TOKENS = 20_000


@dataclass(frozen=True, slots=True)
class Recall:
    """Of one case: the long outputs that hold something decisive, and in how many of them it stayed visible."""

    place: Place
    shown: int
    wanted: int
    missed: str = ""

    @property
    def whole(self) -> bool:
        return self.shown == self.wanted


def run(options: Options) -> Iterator[Figure]:
    if options.data is None:
        raise SystemExit("q1 needs --data DIR")
    cases = list(places(options.data, limit=options.limit, seed=options.seed))
    for tokens, target in SIZES.items():
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(recall, repeat(options.data), cases, repeat(tokens), chunksize=8))
        judged = [one for one in found if one.wanted]
        if options.verbose:
            for one in judged:
                if not one.whole:
                    print(f"{tokens} {one.place.folder}: {one.missed}", file=sys.stderr)
        share = sum(one.whole for one in judged) / len(judged) if judged else 0.0
        yield Figure(name=f"q1.recall_{tokens}", value=share, n=len(judged), target=target)


def recall(data: Path, place: Place, tokens: int) -> Recall:
    """Each expert path is one investigation: its results share the tokens of a run."""
    case = load(place)
    telling = pattern(case.answer)
    if telling is None:
        return Recall(place, 0, 0)
    shown = wanted = 0
    missed = ""
    for path in sorted((data / "golden-trajectory" / place.system / place.category / place.id).glob("*.json")):
        left = RUN_TOKENS
        for step in json.loads(path.read_text())["diagnostic_trace"]:
            text = output_of(step)
            view = seen(text, min(tokens, max(100, left)))
            left -= len(view.encode()) // BYTES_PER_TOKEN
            if telling.search(text):
                wanted += 1
                visible = telling.search(view) is not None
                shown += visible
                missed = missed if visible else f"{path.name} {step['calling'][:140]}"
    return Recall(place, shown, wanted, missed)


def seen(text: str, tokens: int) -> str:
    """As the loop shows it: plain, redacted, digested, with the head of a result."""
    kept = Redactor()(plain(text))
    return ToolResult.success("").to_model("T1", digest(kept, tokens, "T1"))


def output_of(step: dict[str, Any]) -> str:
    """A recorded output as a toolset would give it: lists of lines and quoted texts are put down as text."""
    text = step["output"] if isinstance(step["output"], str) else json.dumps(step["output"])
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            return "\n".join(value)
    return text
