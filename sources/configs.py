"""What an operator writes under `sources:` and `sinks:`: one small model a kind, cheap to import."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

# Alertmanager answers an unreadable matcher with 200 and an empty list, so it has to be refused here.
_MATCHER = re.compile(r'^\s*(?:[a-zA-Z_:][a-zA-Z0-9_:.]*|"[^"]+")\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"\s*$')


def _http(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address that starts with http:// or https://")
    return url.rstrip("/")


def _https_or_loopback(url: str) -> str:
    url = _http(url)
    if url.startswith("http://") and not _loopback(urllib.parse.urlsplit(url).hostname or ""):
        raise ValueError("must start with https:// (http:// is for loopback only: the token would travel in clear)")
    return url


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _secret_http(url: SecretStr) -> SecretStr:
    _http(url.get_secret_value())
    return url


def _matcher(text: str) -> str:
    if not _MATCHER.match(text):
        raise ValueError(
            f'{text!r} is not a matcher; write name="value", name!="value", name=~"regex" or name!~"regex"'
        )
    return text.strip()


def _one_or_many(value: object) -> object:
    """A single value may be written without the list around it."""
    return (value,) if isinstance(value, str | SecretStr) else value


Url = Annotated[str, AfterValidator(_http)]
SafeUrl = Annotated[str, AfterValidator(_https_or_loopback)]
SecretUrl = Annotated[SecretStr, AfterValidator(_secret_http)]
Matcher = Annotated[str, AfterValidator(_matcher)]
Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]
Secrets = Annotated[tuple[SecretStr, ...], BeforeValidator(_one_or_many)]
Seconds = Annotated[float, Field(gt=0)]


class _Section(BaseModel):
    """An unknown key is an error: a misspelt option must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PagerDutyConfig(_Section):
    """PagerDuty. `from_email` is the user notes are written as; `url` is https://api.eu.pagerduty.com in the EU region.

    `lookback_seconds` is how far back the very first poll asks for incidents that are no longer open.
    """

    kind: Literal["pagerduty"] = "pagerduty"
    token: SecretStr
    from_email: str = Field(pattern=r"^[^@\s]+@[^@\s]+$")
    url: SafeUrl = "https://api.pagerduty.com"
    webhook_secrets: Secrets = ()
    service_ids: Names = ()
    team_ids: Names = ()
    urgencies: tuple[Literal["high", "low"], ...] = ()
    poll_seconds: Seconds = 30
    lookback_seconds: float = Field(default=3_600, ge=0)
    overlap_seconds: float = Field(default=600, ge=0)
    max_note_chars: int = Field(default=10_000, ge=1_000)
    write_to: str | None = None

    @property
    def takes_webhooks(self) -> bool:
        """Whether a webhook of this source can be told from a forged one."""
        return bool(self.webhook_secrets)


class AlertmanagerConfig(_Section):
    """Prometheus Alertmanager. `url` includes the route prefix; `members` are the other members of its cluster.

    `matchers` and `receiver` (a regular expression) select what is polled; what is pushed is selected by
    Alertmanager's own routes. `webhook_token` is the bearer token every webhook must carry.
    """

    kind: Literal["alertmanager"] = "alertmanager"
    url: Url
    members: tuple[Url, ...] = ()
    username: str = ""
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    matchers: tuple[Matcher, ...] = ()
    receiver: str = ""
    webhook_token: SecretStr | None = None
    poll_seconds: Seconds = 20
    write_to: str | None = None

    @property
    def takes_webhooks(self) -> bool:
        """Whether a webhook of this source can be told from a forged one."""
        return self.webhook_token is not None

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        if bool(self.username) != (self.password is not None):
            raise ValueError("username and password go together")
        if self.username and self.bearer_token:
            raise ValueError("give username and password or bearer_token, not both")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs cert_file")
        return self


class WebhookSinkConfig(_Section):
    """Any HTTP endpoint: one JSON object a report. `link_hosts` are the hosts links may go to."""

    kind: Literal["webhook"] = "webhook"
    url: SecretUrl
    bearer_token: SecretStr | None = None
    ca_file: Path | None = None
    link_hosts: Names = ()


class SlackSinkConfig(_Section):
    """A Slack-compatible incoming webhook. `link_hosts` are the hosts links may go to."""

    kind: Literal["slack"] = "slack"
    url: SecretUrl
    link_hosts: Names = ()


class FileSinkConfig(_Section):
    """A file of JSON lines, one a report; the last line for a ticket is the current one."""

    kind: Literal["file"] = "file"
    path: Path
