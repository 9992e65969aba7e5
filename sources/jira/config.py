"""What an operator writes for a source of kind `jira`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator

from agent.alert import Severity
from sources.configs import Names, SafeUrl, Seconds, Secrets
from sources.jira.jql import selection, split_order


def _jql(text: str) -> str:
    split_order(text)
    return text.strip()


Jql = Annotated[str, AfterValidator(_jql)]
FieldId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class JiraConfig(BaseModel):
    """Jira. Cloud: `email` and `api_token`. Data Center: `personal_access_token`, or user name and password in these.

    `jql` and `projects` say which issues are investigated. `severities` is by priority name, on top of Jira's own.
    `label_fields` maps a label to the field it is read from, such as `namespace: customfield_10042`.
    `site_url` is where people open issues when `url` is an API gateway (https://api.atlassian.com/ex/jira/CLOUD-ID).
    `public_comments` lets customers of a service project read the reports.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["jira"] = "jira"
    url: SafeUrl
    deployment: Literal["cloud", "data_center", "auto"] = "auto"
    email: str = ""
    api_token: SecretStr | None = None
    personal_access_token: SecretStr | None = None
    site_url: SafeUrl | None = None
    ca_file: Path | None = None
    jql: Jql = ""
    projects: Names = ()
    severities: dict[str, Severity] = {}
    label_fields: dict[str, FieldId] = {}
    webhook_secrets: Secrets = ()
    public_comments: bool = False
    max_comment_chars: int = Field(default=30_000, ge=1_000, le=32_767)
    poll_seconds: Seconds = 60
    lookback_seconds: float = Field(default=3_600, ge=0)
    overlap_seconds: float = Field(default=900, ge=0)
    write_to: str | None = None

    @property
    def takes_webhooks(self) -> bool:
        """Whether a webhook of this source can be told from a forged one."""
        return bool(self.webhook_secrets)

    @property
    def selected(self) -> str:
        return selection(self.jql, self.projects)

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if bool(self.email) != (self.api_token is not None):
            raise ValueError("email and api_token go together")
        if (self.api_token is None) == (self.personal_access_token is None):
            raise ValueError("give email and api_token, or personal_access_token")
        if not self.selected:
            raise ValueError("say which issues are alerts: give jql or projects (Jira Cloud refuses a search without)")
        if bad := [key for key in self.projects if not key.replace("_", "").isalnum()]:
            raise ValueError(f"not a project key: {', '.join(map(repr, bad))}")
        return self
