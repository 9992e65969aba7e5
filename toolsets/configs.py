"""What an operator writes under `toolsets:`: one small model a kind, cheap to import, secrets as `SecretStr`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator


class _Section(BaseModel):
    """An unknown key is an error: a misspelt option must not be silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Server(_Section):
    """A data source that speaks HTTP. `external_url` is what a browser opens; unset, links use `url`."""

    url: str
    external_url: str = ""
    headers: dict[str, SecretStr] = {}
    username: str = ""
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None
    tenant: str = ""
    ca_file: Path | None = None
    verify: bool = True

    @field_validator("url", "external_url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        if url and not url.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _one_credential(self) -> Self:
        if bool(self.username) != (self.password is not None):
            raise ValueError("username and password go together")
        if self.username and self.bearer_token:
            raise ValueError("give username and password or bearer_token, not both")
        return self


class PrometheusConfig(_Server):
    """Prometheus, Thanos, Mimir, VictoriaMetrics: anything with the `/api/v1` query API. `tenant` is X-Scope-OrgID."""

    kind: Literal["prometheus"] = "prometheus"
    max_points: int = Field(default=300, gt=0, le=11_000)


class LokiConfig(_Server):
    """Grafana Loki; `tenant` is X-Scope-OrgID."""

    kind: Literal["loki"] = "loki"


class PlanConfig(_Section):
    """The model's own to-do list; nothing to configure."""

    kind: Literal["plan"] = "plan"


class KubernetesConfig(_Section):
    """A cluster, by the first of these that is given: `url` with `token` or `token_file`, `kubeconfig` (with
    `context`), or the service account of the pod we run in. An empty `namespaces` allows all of them."""

    kind: Literal["kubernetes"] = "kubernetes"
    url: str = ""
    token: SecretStr | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    verify: bool = True
    kubeconfig: Path | None = None
    context: str = ""
    namespaces: tuple[str, ...] = ()

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        if url and not url.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if self.url and self.kubeconfig:
            raise ValueError("give url or kubeconfig, not both")
        if self.context and not self.kubeconfig:
            raise ValueError("context needs kubeconfig")
        if self.token and self.token_file:
            raise ValueError("give token or token_file, not both")
        return self


class YamlConfig(_Section):
    """Command tools declared in YAML: `path` to a file, or the name of a `builtin` one.

    Commands see PATH, LANG, an empty HOME and what stands in `environment`; nothing of the daemon's own."""

    kind: Literal["yaml"] = "yaml"
    path: Path | None = None
    builtin: str = Field(default="", pattern=r"^[a-z0-9_-]*$")
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], SecretStr] = {}

    @model_validator(mode="after")
    def _one_file(self) -> Self:
        if bool(self.path) == bool(self.builtin):
            raise ValueError("give path or builtin, one of them")
        return self
