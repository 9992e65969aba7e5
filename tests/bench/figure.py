"""One figure of the benchmark, and the options that every figure is run with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Bound = Literal[">=", "<=", "=="]

_HOLDS: Mapping[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, "==": operator.eq}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`data` is a folder of unpacked cases; `limit` is how many cases of each group are run at most, 0 all."""

    data: Path | None
    seed: int = 0
    limit: int = 0
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`name` is dotted: `q2.boutique.a1`. Without a target it is told and not judged."""

    name: str
    value: float
    n: int
    unit: str = "share"
    target: float | None = None
    bound: Bound = ">="

    @property
    def holds(self) -> bool | None:
        return None if self.target is None else bool(_HOLDS[self.bound](self.value, self.target))

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "figure": self.name,
            "value": round(self.value, 4),
            "n": self.n,
            "unit": self.unit,
        }
        if self.target is not None:
            told |= {"target": self.target, "bound": self.bound, "holds": self.holds}
        return told

    def as_text(self) -> str:
        goal = "" if self.target is None else f"  {self.bound} {self.target:g}  {'holds' if self.holds else 'MISSED'}"
        return f"{self.name:<44} {self.value:8.3f} {self.unit} of {self.n}{goal}"
