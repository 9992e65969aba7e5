"""Prometheus and whatever speaks its query API: values, series, labels, rules and alerts, summarised."""

from toolsets.prometheus.toolset import build

__all__ = ["build"]
