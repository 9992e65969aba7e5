"""The two sources as a test builds them: no pause between attempts, and a clock that moves with the pauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from agent.deadline import Deadline
from sources.opsgenie.config import JsmOpsConfig, OpsGenieConfig
from sources.opsgenie.source import JsmOps, OpsAlerts, OpsGenie
from tests.support.http_server import HttpServer, Reply, Request
from tests.support.opsgenie_api import (
    API_KEY,
    API_TOKEN,
    CLOUD_ID,
    EMAIL,
    JsmOpsApiFake,
    OpsGenieApiFake,
    ops_alert,
)

SOON = Deadline.never()
WEBHOOK_TOKEN = "hook-secret-123"


@dataclass
class Pauses:
    """A clock in which time passes by sleeping alone."""

    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def clock(self) -> float:
        return sum(self.slept)


def opsgenie(url: str, pauses: Pauses | None = None, **options: Any) -> OpsGenie:
    pauses = pauses or Pauses()
    config = {"api_key": API_KEY, "url": url, "webhook_token": WEBHOOK_TOKEN, **options}
    return OpsGenie("ops", OpsGenieConfig.model_validate(config), sleep=pauses.sleep, clock=pauses.clock)


def jsm_ops(url: str, pauses: Pauses | None = None, **options: Any) -> JsmOps:
    pauses = pauses or Pauses()
    login = {"email": EMAIL, "api_token": API_TOKEN, "site": url, "cloud_id": CLOUD_ID}
    config = {**login, "url": url, "webhook_token": WEBHOOK_TOKEN, **options}
    return JsmOps("ops", JsmOpsConfig.model_validate(config), sleep=pauses.sleep, clock=pauses.clock)


@dataclass(frozen=True)
class Kind:
    """One of the two, for tests that hold for both."""

    name: str
    api: Callable[[], OpsGenieApiFake | JsmOpsApiFake]
    build: Callable[..., OpsAlerts]
    alerts: str  # the path of the list

    def __repr__(self) -> str:
        return self.name


KINDS = [
    Kind("opsgenie", OpsGenieApiFake, opsgenie, "/v2/alerts"),
    Kind("jsm_ops", lambda: JsmOpsApiFake(last_offset=19_999), jsm_ops, f"/jsm/ops/api/{CLOUD_ID}/v1/alerts"),
]


def ids(pages) -> list[str]:
    return [alert.id for page in pages for alert in page.alerts]


def only(pages):
    (alert,) = [alert for page in pages for alert in page.alerts]
    return alert


def many(count: int, **changes) -> list[dict[str, Any]]:
    """Open alerts, a second apart, oldest first."""
    return [ops_alert(f"A{n:05d}", age=timedelta(seconds=count - n + 1), **changes) for n in range(count)]


def lists(server: HttpServer, kind: Kind) -> list[Request]:
    return [request for request in server.requests if request.path == kind.alerts]


def queries(server: HttpServer, kind: Kind) -> list[str]:
    return [request.query.get("query", [""])[0] for request in lists(server, kind)]


def pages_of(kind: Kind, *pages: tuple[list, bool]) -> Callable[[Request], Reply | None]:
    left = list(pages)

    def answer(request: Request) -> Reply | None:
        if request.path != kind.alerts:
            return None
        alerts, more = left.pop(0) if len(left) > 1 else left[0]
        links = {"next": "https://elsewhere.example/v2/alerts?offset=100"} if more else {}
        return Reply(200, {"data": alerts, "paging": links, "took": 0.1, "requestId": "r"})

    return answer
