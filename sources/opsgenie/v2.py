"""OpsGenie's REST API v2."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.deadline import Deadline
from agent.http import Http, Response
from sources.opsgenie.client import ExplainingHttp, rate_limit
from sources.opsgenie.config import OpsGenieConfig

SOURCE = "rootcaused"  # what the activity log names as the origin of a note
HINTS = {
    401: "the api_key is wrong, or of another region: url is https://api.eu.opsgenie.com for an account in the EU",
    402: "the API is not part of the account's plan",
    403: "the api_key may not do this: an integration's key needs read, create and update access,"
    " and a team's key sees that team's alerts only",
}


@dataclass(frozen=True, slots=True)
class OpsGenieDialect:
    config: OpsGenieConfig
    sleep: Callable[[float], None] = time.sleep
    kind: str = "opsgenie"
    alerts: str = "/v2/alerts"
    size: str = "limit"
    last_offset: int = 20_000
    edits: bool = False

    @property
    def by_id(self) -> Mapping[str, str]:
        return {"identifierType": "id"}

    @property
    def note_pages(self) -> Mapping[str, str]:
        return {"identifierType": "id", "limit": "100", "order": "asc"}

    def http(self) -> Http:
        return ExplainingHttp(
            base_url=self.config.url,
            headers={"Authorization": f"GenieKey {self.config.api_key.get_secret_value()}"},
            wait=rate_limit,
            sleep=self.sleep,
            explain=_explain,
        )

    def root(self, deadline: Deadline) -> str:  # noqa: ARG002  (the other dialect asks the network)
        return ""

    def authors(self, http: Http, deadline: Deadline) -> frozenset[str]:  # noqa: ARG002  (likewise)
        return frozenset({self.config.user})

    def note(self, content: str) -> dict[str, Any]:
        return {"note": content, "user": self.config.user, "source": SOURCE}

    def link(self, native: str) -> str:
        """The web page is on `app` where the API is on `api`."""
        host = urllib.parse.urlsplit(self.config.url).hostname or ""
        if not host.startswith("api.") or not host.endswith("opsgenie.com"):
            return ""
        return f"https://app.{host.removeprefix('api.')}/alert/detail/{urllib.parse.quote(native, safe='')}/details"


def _explain(response: Response) -> str:
    return HINTS.get(response.status, "")
