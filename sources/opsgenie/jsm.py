"""The API of Jira Service Management Operations: OpsGenie's successor on the Atlassian platform."""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from agent.http import Http, Response
from sources.opsgenie.client import ExplainingHttp, rate_limit
from sources.opsgenie.config import JsmOpsConfig

WRONG_TOKEN = "email or api_token is wrong, or the token was revoked or has expired"
WRONG_SCOPE = (
    "the token is good but lacks a scope: it needs read:ops-alert:jira-service-management"
    " and write:ops-alert:jira-service-management"
)
HINTS = {
    401: WRONG_TOKEN,
    402: "alerts are not part of the site's Jira Service Management plan",
    403: "the user needs access to Operations in Jira Service Management, and to the team that has the alerts",
}
_CLOUD_ID = re.compile(r"[A-Za-z0-9-]{1,100}")


@dataclass(slots=True)
class JsmOpsDialect:
    config: JsmOpsConfig
    sleep: Callable[[float], None] = time.sleep
    kind: str = "jsm_ops"
    alerts: str = "/v1/alerts"
    size: str = "size"
    last_offset: int = 19_999  # the sum must be less than 20,000
    edits: bool = True
    by_id: Mapping[str, str] = field(default_factory=dict)
    note_pages: Mapping[str, str] = field(default_factory=lambda: {"size": "100"})
    _cloud_id: str = ""

    def http(self) -> Http:
        return ExplainingHttp(
            base_url=self.config.url,
            auth=(self.config.email, self.config.api_token.get_secret_value()),
            wait=rate_limit,
            sleep=self.sleep,
            explain=_explain,
        )

    def root(self, deadline: Deadline) -> str:
        return f"/jsm/ops/api/{self._cloud(deadline)}"

    def authors(self, http: Http, deadline: Deadline) -> frozenset[str]:
        """Notes carry an account id as a rule; the address and the name are taken too, because it is not documented."""
        if self.config.account_id:
            return frozenset({self.config.account_id, self.config.email})
        try:
            me = http.get(f"/ex/jira/{self._cloud(deadline)}/rest/api/3/myself", deadline=deadline).json()
        except Permanent as error:
            raise Permanent(
                f"jsm_ops: can't tell which user writes our notes, so they could not be found again; set account_id"
                f" to the Atlassian account id of {self.config.email} ({error})"
            ) from None
        account = me.get("accountId") if isinstance(me, dict) else None
        if not isinstance(account, str) or not account:
            raise Transient("jsm_ops: a 200 without the account id of our user")
        names = (me.get("emailAddress"), me.get("displayName"))
        return frozenset({account, self.config.email, *(name for name in names if isinstance(name, str) and name)})

    def note(self, content: str) -> dict[str, Any]:
        return {"note": content}

    def link(self, native: str) -> str:
        """As the product's own notifications link it; the API names no address."""
        return f"{self.config.site}/jira/ops/alerts/{urllib.parse.quote(native, safe='')}" if self.config.site else ""

    def _cloud(self, deadline: Deadline) -> str:
        if not self._cloud_id:
            self._cloud_id = self.config.cloud_id or self._asked(deadline)
        return self._cloud_id

    def _asked(self, deadline: Deadline) -> str:
        """The site says its id to anybody, so no credentials go there."""
        assert self.config.site is not None
        body = Http(base_url=self.config.site, sleep=self.sleep).get("/_edge/tenant_info", deadline=deadline).json()
        found = body.get("cloudId") if isinstance(body, dict) else None
        if not isinstance(found, str) or not _CLOUD_ID.fullmatch(found):
            raise Permanent(f"jsm_ops: {self.config.site} does not name its cloud id; is site right? Else set cloud_id")
        return found


def _explain(response: Response) -> str:
    """A missing scope is a 401 there as well, told apart by its words alone."""
    if response.status == 401 and "scope" in response.text[:2_000].lower():
        return WRONG_SCOPE
    return HINTS.get(response.status, "")
