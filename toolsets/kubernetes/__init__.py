"""Kubernetes over its HTTP API, by GET alone: objects, their story, events, logs, usage."""
