"""A strict fake provider over HTTP: refuses what the real one refuses, and otherwise says what a script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

from agent.llm import LiteLLMModel
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.providers.turn import Refused, Turn

BYTES_PER_TOKEN = 4
Script = Sequence[Turn] | Callable[[dict[str, Any]], Turn]


class Family(Protocol):
    """One wire format. `name` is the LiteLLM name that leads to it, `base` what follows host and port."""

    name: str
    base: str

    def check(self, body: dict[str, Any]) -> None:
        """Raises `Refused` for what the real one answers with 400."""
        ...

    def answer(self, turn: Turn, number: int, tokens: int) -> dict[str, Any]: ...

    def error(self, status: int, words: str) -> dict[str, Any]: ...

    def overflow(self, tokens: int, window: int) -> str: ...


class StrictProvider:
    """Use it in a `with`. `bodies` are the accepted requests; `refusals` the words of what was refused."""

    def __init__(self, family: Family, script: Script, *, window: int = 200_000) -> None:
        self.family, self.window = family, window
        self.bodies: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self._script = script
        self._lock = threading.Lock()
        self._http = HttpServer(self._answer)

    def model(self, **given: Any) -> LiteLLMModel:
        settings = {"name": self.family.name, "api_key": "sk-test", "api_base": self._http.url + self.family.base}
        return LiteLLMModel(**{**settings, "window": self.window, **given})

    def __enter__(self) -> Self:
        self._http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.__exit__(None, None, None)

    def _answer(self, request: Request) -> Reply:
        if request.path.endswith("/api/show"):  # LiteLLM asks Ollama what a model can do
            return Reply(200, {"capabilities": ["completion", "tools"], "template": ".Tools"}, CLOSE)
        with self._lock:
            body = request.json()
            tokens = _tokens(body)
            try:
                self.family.check(body)
                if tokens > self.window:
                    raise Refused(self.family.overflow(tokens, self.window), overflow=True)
            except Refused as refused:
                self.refusals.append(str(refused))
                return Reply(400, self.family.error(400, str(refused)), CLOSE)
            self.bodies.append(body)
            turn = self._turn(body)
            if turn.status != 200:
                return Reply(turn.status, self.family.error(turn.status, turn.error), {**CLOSE, **turn.headers})
            return Reply(200, self.family.answer(turn, len(self.bodies), tokens), CLOSE)

    def _turn(self, body: dict[str, Any]) -> Turn:
        if callable(self._script):
            return self._script(body)
        return self._script[min(len(self.bodies), len(self._script)) - 1]


CLOSE: Mapping[str, str | None] = {"Connection": "close"}  # a kept connection would outlive the test that made it


def _tokens(body: dict[str, Any]) -> int:
    return len(json.dumps(body, ensure_ascii=False).encode()) // BYTES_PER_TOKEN
