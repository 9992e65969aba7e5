"""What an operator writes for GitHub issues."""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from agent.alert import Severity
from sources.configs import SafeUrl, Seconds, Secrets
from sources.github.rs256 import UnreadableKey, read_key

MAX_COMMENT_CHARS = 65_536  # of GitHub: 422 "Body is too long (maximum is 65536 characters)"
REPOSITORY = re.compile(r"(?!\.{1,2}/)[A-Za-z0-9_.-]{1,100}/(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}")
SEVERITIES = {
    **dict.fromkeys(("critical", "sev0", "sev1", "sev-0", "sev-1", "p0", "p1", "urgent"), Severity.CRITICAL),
    **dict.fromkeys(("error", "high", "major", "sev2", "sev-2", "p2"), Severity.ERROR),
    **dict.fromkeys(("warning", "medium", "moderate", "sev3", "sev-3", "p3"), Severity.WARNING),
    **dict.fromkeys(("info", "low", "minor", "sev4", "sev-4", "sev5", "sev-5", "p4", "p5"), Severity.INFO),
}


def _repository(name: str) -> str:
    if not REPOSITORY.fullmatch(name):
        raise ValueError(f"{name!r} is not of the form owner/name")
    return name.lower()  # GitHub tells names apart without regard to case, and a key must have one spelling


def _label(name: str) -> str:
    if not name.strip() or "," in name:
        raise ValueError(f"{name!r} is not a label GitHub can filter by: it is empty or has a comma")
    return name.strip()


def _api(url: str) -> str:
    if urllib.parse.urlsplit(url).hostname in ("github.com", "www.github.com"):
        raise ValueError("must be the API's address: https://api.github.com, or https://HOST/api/v3")
    return url


def _pem(key: SecretStr) -> SecretStr:
    try:
        read_key(key.get_secret_value())
    except UnreadableKey as error:
        raise ValueError(str(error)) from None
    return key


Repositories = Annotated[tuple[Annotated[str, AfterValidator(_repository)], ...], Field(min_length=1)]
Labels = tuple[Annotated[str, AfterValidator(_label)], ...]


class GitHubConfig(BaseModel):
    """GitHub issues. `url` is https://HOST/api/v3 on an Enterprise Server. Credentials are a (fine-grained) `token`,
    or an App: `app_id`, `installation_id` and its private key.

    An issue is an alert when it has all `labels`, or when the issue search `search` finds it among the open ones.
    `severities` says what a label means for the severity and comes before the built-in `SEVERITIES`.
    `lookback_seconds` is how far back the very first poll asks for issues that are closed by then.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    kind: Literal["github"] = "github"
    url: Annotated[SafeUrl, AfterValidator(_api)] = "https://api.github.com"
    token: SecretStr | None = None
    app_id: Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)] = Field(
        default="", pattern=r"^[A-Za-z0-9._-]*$"
    )
    installation_id: int | None = Field(default=None, gt=0)
    private_key: Annotated[SecretStr, AfterValidator(_pem)] | None = None
    private_key_file: Path | None = None
    repositories: Annotated[Repositories, BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
    labels: Annotated[Labels, BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)] = ()
    search: str = Field(default="", max_length=256)
    severities: dict[str, Severity] = {}
    webhook_secrets: Secrets = ()
    poll_seconds: Seconds = 60
    lookback_seconds: float = Field(default=3_600, ge=0)
    overlap_seconds: float = Field(default=600, ge=0)
    max_comment_chars: int = Field(default=60_000, ge=1_000, le=MAX_COMMENT_CHARS)
    write_to: str | None = None

    @property
    def takes_webhooks(self) -> bool:
        """Whether a webhook of this source can be told from a forged one."""
        return bool(self.webhook_secrets)

    @model_validator(mode="after")
    def _has_credentials(self) -> Self:
        app = (self.app_id, self.installation_id, self.private_key or self.private_key_file)
        if bool(self.token) == any(app):
            raise ValueError("give token, or app_id, installation_id and private_key (or private_key_file)")
        if any(app) and not all(app):
            raise ValueError("an App needs app_id, installation_id and private_key (or private_key_file)")
        if self.private_key and self.private_key_file:
            raise ValueError("give private_key or private_key_file, not both")
        return self

    @model_validator(mode="after")
    def _selects(self) -> Self:
        if not self.labels and not self.search.strip():
            raise ValueError("give labels or search: without either every issue would be investigated")
        return self

    def severity_of(self, label: str) -> Severity | None:
        """What a label means: as a whole, or the value of one such as `severity:critical` or `priority/p1`."""
        own = {name.lower(): severity for name, severity in self.severities.items()}
        label = label.strip().lower()
        name, value = split_label(label)
        known = {**SEVERITIES, **own}
        if label in known:
            return known[label]
        return known.get(value) if name in ("severity", "sev", "priority", "prio", "urgency") else None


def split_label(label: str) -> tuple[str, str]:
    """The name and value of a label such as `service:checkout`, `service=checkout` or `service/checkout`."""
    found = re.fullmatch(r"([A-Za-z_][\w.-]*)\s*[:=/]\s*(\S.*)", label.strip())
    return (found[1], found[2].strip()) if found else ("", "")
