"""What an operator writes for OpsGenie and for its successor, Jira Service Management Operations."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from sources.configs import SafeUrl, Seconds

MAX_NOTE_CHARS = 25_000  # of OpsGenie, in UTF-16 units; JSM Operations states no limit of its own


class _OpsConfig(BaseModel):
    """What both have. `query` is in the alert search language and is ANDed with what the poll asks for.

    `webhook_token` is what every webhook must carry in the header `webhook_header`: neither signs its webhooks.
    `lookback_seconds` is how far back the very first poll asks for alerts that are no longer open.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = ""
    webhook_token: SecretStr | None = None
    webhook_header: str = Field(default="x-rootcaused-token", pattern=r"^[A-Za-z0-9-]{1,100}$")
    poll_seconds: Seconds = 30
    lookback_seconds: float = Field(default=3_600, ge=0)
    overlap_seconds: float = Field(default=600, ge=0)
    max_note_chars: int = Field(default=MAX_NOTE_CHARS, ge=1_000, le=MAX_NOTE_CHARS)
    write_to: str | None = None

    @property
    def takes_webhooks(self) -> bool:
        """Whether a webhook of this source can be told from a forged one."""
        return self.webhook_token is not None


class OpsGenieConfig(_OpsConfig):
    """OpsGenie, REST v2. `url` is https://api.eu.opsgenie.com in the EU region.

    `user` is the name notes are written under, and by which we know them again. `tag`, when set, is put on every
    alert that has a report, so that people and queries (`NOT tag:rootcaused`) see which have one.
    """

    kind: Literal["opsgenie"] = "opsgenie"
    api_key: SecretStr
    url: SafeUrl = "https://api.opsgenie.com"
    user: str = Field(default="rootcaused", min_length=1, max_length=100)
    tag: str = Field(default="", max_length=50)

    @property
    def notice(self) -> str:
        """What the operator must know at start-up. Dates are the vendor's, read 2026-12-01."""
        return (
            "OpsGenie reaches its end of life on 2027-04-05: from then on its API does not answer, and for a migrated"
            " account 120 days after the migration; configure the successor, kind: jsm_ops, before"
        )


class JsmOpsConfig(_OpsConfig):
    """Jira Service Management Operations. `site` is the address of the Atlassian site, such as
    https://acme.atlassian.net; `cloud_id` is its id, looked up there when it is not given.

    Notes are written as the user of `email` and `api_token`; `account_id` names that user where the token may not
    ask Jira who it is.
    """

    kind: Literal["jsm_ops"] = "jsm_ops"
    email: str = Field(pattern=r"^[^@\s:]+@[^@\s]+$")
    api_token: SecretStr
    site: SafeUrl | None = None
    cloud_id: str = Field(default="", pattern=r"^[A-Za-z0-9-]*$")
    account_id: str = ""
    url: SafeUrl = "https://api.atlassian.com"

    @model_validator(mode="after")
    def _can_be_found(self) -> Self:
        if not self.site and not self.cloud_id:
            raise ValueError("give site (https://NAME.atlassian.net) or cloud_id")
        return self

    @property
    def notice(self) -> str:
        return ""
