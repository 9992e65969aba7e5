"""How to reach a cluster: explicit address and token, a kubeconfig, or the service account of the pod we run in."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
import yaml
from requests.adapters import HTTPAdapter

from agent.errors import ConfigError
from agent.http import Http
from toolsets.configs import KubernetesConfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER_URL = "https://kubernetes.default.svc"  # a name every API server's certificate carries
PARALLEL = 16  # tool calls the loop runs at a time
MAX_LOG_AND_LIST_BYTES = 64_000_000


class TokenFile(Mapping[str, str]):
    """The Authorization header from a file that is read at each request: kubelets rotate the token about hourly."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __getitem__(self, name: str) -> str:
        if name != "Authorization":
            raise KeyError(name)
        return f"Bearer {self._path.read_text('utf-8').strip()}"

    def __iter__(self) -> Iterator[str]:
        return iter(("Authorization",))

    def __len__(self) -> int:
        return 1


def connect(config: KubernetesConfig, *, service_account: Path = SERVICE_ACCOUNT) -> Http:
    """A client for the cluster; opens no connection. Raises `ConfigError`."""
    if config.url:
        return _explicit(config)
    if config.kubeconfig:
        return _from_kubeconfig(config.kubeconfig, config.context)
    token = service_account / "token"
    if not token.is_file():
        raise ConfigError("not in a cluster (no service account token here): give url and token, or kubeconfig")
    return _http(IN_CLUSTER_URL, headers=TokenFile(token), verify=str(service_account / "ca.crt"))


def _explicit(config: KubernetesConfig) -> Http:
    headers: Mapping[str, str] = {}
    if config.token:
        headers = {"Authorization": f"Bearer {config.token.get_secret_value()}"}
    elif config.token_file:
        headers = TokenFile(config.token_file)
    verify: bool | str = str(config.ca_file) if config.ca_file else config.verify
    return _http(config.url, headers=headers, verify=verify)


def _http(
    url: str,
    *,
    headers: Mapping[str, str],
    verify: bool | str = True,
    auth: tuple[str, str] | None = None,
    cert: tuple[str, str] | None = None,
    proxy: str = "",
) -> Http:
    session = requests.Session()
    # A ~/.netrc entry would replace our token, and REQUESTS_CA_BUNDLE our certificate authority.
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=PARALLEL))
    if proxy:
        session.proxies = {"http": proxy, "https": proxy}
    return Http(
        base_url=url,
        headers=headers,
        auth=auth,
        verify=verify,
        cert=cert,
        session=session,
        max_body_bytes=MAX_LOG_AND_LIST_BYTES,
    )


def _from_kubeconfig(path: Path, context: str) -> Http:
    content = _read(path)
    name = context or content.get("current-context") or ""
    chosen = _named(content, "context", str(name), path)
    cluster = _named(content, "cluster", str(chosen.get("cluster", "")), path)
    user = _named(content, "user", str(chosen.get("user", "")), path) if chosen.get("user") else {}
    server = str(cluster.get("server", ""))
    if not server.startswith(("http://", "https://")):
        raise ConfigError("the cluster has no server address", file=str(path), key=f"contexts.{name}")
    if user.get("exec") or user.get("auth-provider"):
        raise ConfigError(
            "the user signs in by running a program, which an unattended daemon should not: "
            "give a service account's token instead",
            file=str(path),
            key=f"users.{chosen.get('user')}",
        )
    verify: bool | str = _file(cluster, "certificate-authority", path) or True
    return _http(
        server,
        headers=_user_headers(user, path),
        verify=False if cluster.get("insecure-skip-tls-verify") else verify,
        auth=(str(user["username"]), str(user.get("password", ""))) if user.get("username") else None,
        cert=_client_certificate(user, path),
        proxy=str(cluster.get("proxy-url") or ""),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"kubeconfig can't be read ({type(error).__name__})", file=str(path)) from error
    if not isinstance(content, dict):
        raise ConfigError("kubeconfig is not a mapping", file=str(path))
    return content


def _named(content: dict[str, Any], what: str, name: str, path: Path) -> dict[str, Any]:
    """The entry called `name` of the list `contexts`, `clusters` or `users`."""
    entries = {str(entry.get("name")): entry.get(what) for entry in content.get(f"{what}s") or [] if entry}
    if not isinstance(entry := entries.get(name), dict):
        there = ", ".join(sorted(entries)) or "none"
        raise ConfigError(f"no {what} named {name!r}; there are {there}", file=str(path), key=f"{what}s")
    return entry


def _user_headers(user: dict[str, Any], path: Path) -> Mapping[str, str]:
    if token_file := user.get("tokenFile"):
        return TokenFile(path.parent / str(token_file))
    if token := user.get("token"):
        return {"Authorization": f"Bearer {token}"}
    return {}


def _client_certificate(user: dict[str, Any], path: Path) -> tuple[str, str] | None:
    certificate, key = _file(user, "client-certificate", path), _file(user, "client-key", path)
    return (certificate, key) if certificate and key else None


def _file(section: dict[str, Any], key: str, path: Path) -> str:
    """The file named under `key`, or one in memory with what stands under `key`-data; "" for neither."""
    if data := section.get(f"{key}-data"):
        try:
            return _in_memory(base64.b64decode(str(data), validate=True))
        except (binascii.Error, ValueError) as error:
            raise ConfigError("is not base64", file=str(path), key=f"{key}-data") from error
    return str(path.parent / str(section[key])) if section.get(key) else ""


def _in_memory(content: bytes) -> str:
    """A path that TLS libraries can open, though the content (a private key) never lies on a disk. Linux only."""
    descriptor = os.memfd_create("kubeconfig", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    return f"/proc/self/fd/{descriptor}"
