"""Plays whatever takes reports by webhook: keeps every body, and counts deliveries by what they claim to be."""

from __future__ import annotations

from typing import Any

from deploy.demo.exchange import Reply, Request
from deploy.demo.scene import hexadecimal
from deploy.demo.state import State

TOKEN = "demo-sink-token"


class Sink:
    def __init__(self, state: State) -> None:
        self._state = state

    def handle(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply(status=401, payload={"error": "missing or wrong bearer token"})
        match request.method, request.parts:
            case "POST", [name]:
                return self._take(name, request)
            case "GET", [name]:
                return Reply(payload=self._told(name))
            case _:
                return Reply(status=404, payload={"error": "no such sink"})

    def _take(self, name: str, request: Request) -> Reply:
        body = request.json()
        if not isinstance(body, dict):
            return Reply(status=400, payload={"error": "the body is not a JSON object"})
        identity = request.headers.get("idempotency-key") or str(
            body.get("id") or hexadecimal(request.body.decode("utf-8", "replace"))
        )
        with self._state.changing() as data:
            kept = data["deliveries"].setdefault(name, [])
            kept.append({"identity": identity, "at": self._state.now(), "body": body})
        return Reply(status=201, payload={"id": identity})

    def _told(self, name: str) -> dict[str, Any]:
        deliveries = self._state.read("deliveries").get(name, [])
        counts: dict[str, int] = {}
        for one in deliveries:
            counts[one["identity"]] = counts.get(one["identity"], 0) + 1
        return {"name": name, "deliveries": deliveries, "counts": counts}
