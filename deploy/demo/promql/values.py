"""What PromQL expressions evaluate to."""

from __future__ import annotations

from deploy.demo.promql.syntax import Labels

Key = tuple[tuple[str, str], ...]  # labels as sorted pairs, so that they can be a dictionary's key
Scalar = float
Vector = dict[Key, float]
Value = Scalar | Vector


def key(labels: Labels) -> Key:
    """Empty values are no labels."""
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def labels_of(labels: Key) -> dict[str, str]:
    return dict(labels)


def bare(labels: Key) -> Key:
    """Without the metric's name, which every computation drops."""
    return tuple(pair for pair in labels if pair[0] != "__name__")
