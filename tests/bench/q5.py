"""Q5, grounding: reports spoiled on purpose must be found out, and honest ones left alone."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.bench.cloudopsbench.cases import Place, load, places
from tests.bench.figure import Figure, Options
from tests.bench.grounding.mutations import MUTATIONS, rejected
from tests.bench.grounding.recorded import record

CASES_A_SYSTEM = 60
SURE = ("quote", "id", "time")  # of these none may pass


def run(options: Options) -> Iterator[Figure]:
    if options.data is None:
        raise SystemExit("q5 needs --data DIR")
    chosen = list(places(options.data, limit=options.limit or CASES_A_SYSTEM, seed=options.seed))
    if not chosen:
        raise SystemExit(f"no cases under {options.data}/benchmark")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        results = [one for one in pool.map(partial(spoil, seed=options.seed), chosen, chunksize=4) if one is not None]
    caught: Counter[str] = Counter()
    for found in results:
        caught.update({name: 1 for name, held in found.items() if held})
    n = len(results)
    for name in MUTATIONS:
        target = 1.0 if name in SURE else None
        yield Figure(name=f"q5.recall.{name}", value=caught[name] / max(1, n), n=n, target=target)
    spoiled = n * len(MUTATIONS)
    yield Figure(
        name="q5.recall", value=sum(caught[name] for name in MUTATIONS) / max(1, spoiled), n=spoiled, target=0.95
    )
    yield Figure(name="q5.false_rejects", value=caught["honest"] / max(1, n), n=n, target=0.02, bound="<=")
    if options.verbose:
        missed = [name for found in results for name in MUTATIONS if not found[name]]
        print(Counter(missed), file=sys.stderr)


def spoil(place: Place, seed: int) -> dict[str, bool] | None:
    """By mutation, whether it was caught; under `honest`, whether the untouched report was rejected."""
    recorded = record(load(place))
    if recorded is None or not recorded.draft.evidence:
        return None
    chance = random.Random(f"{seed}/{place.system}/{place.category}/{place.id}")
    found = {"honest": rejected(recorded.report)}
    for name, mutation in MUTATIONS.items():
        spoiled = mutation.make(recorded, chance)
        found[name] = mutation.caught(recorded.check(spoiled), recorded)
    return found
