"""Prometheus Alertmanager: alerts in by API v2 and webhook v4."""
