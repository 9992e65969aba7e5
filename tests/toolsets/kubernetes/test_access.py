from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from agent.deadline import Deadline
from agent.errors import ConfigError
from tests.support.kube_server import serving
from tests.support.kube_world import shop
from toolsets.configs import KubernetesConfig
from toolsets.kubernetes.access import IN_CLUSTER_URL, connect


def kubeconfig(tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> KubernetesConfig:
    path = tmp_path / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "prod",
                "contexts": [
                    {"name": "prod", "context": {"cluster": "c", "user": "u"}},
                    {"name": "lost", "context": {"cluster": "gone", "user": "u"}},
                ],
                "clusters": [{"name": "c", "cluster": {"server": "https://k8s.example:6443", **(cluster or {})}}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return KubernetesConfig(kubeconfig=path)


def test_a_kubeconfig_with_a_token(tmp_path: Path) -> None:
    http = connect(
        kubeconfig(tmp_path, {"token": "abc"}, {"certificate-authority": "ca.pem", "proxy-url": "http://p:1"})
    )
    assert http.base_url == "https://k8s.example:6443"
    assert http.headers == {"Authorization": "Bearer abc"}
    assert http.verify == str(tmp_path / "ca.pem")
    assert http.session.proxies["https"] == "http://p:1"


def test_a_kubeconfig_with_a_client_certificate_keeps_the_key_off_the_disk(tmp_path: Path) -> None:
    data = {f"client-{part}-data": base64.b64encode(part.encode()).decode() for part in ("certificate", "key")}
    http = connect(kubeconfig(tmp_path, data))
    assert isinstance(http.cert, tuple)
    assert [Path(part).read_bytes() for part in http.cert] == [b"certificate", b"key"]
    assert all(part.startswith("/proc/self/fd/") for part in http.cert)


def test_a_kubeconfig_with_basic_credentials(tmp_path: Path) -> None:
    http = connect(kubeconfig(tmp_path, {"username": "u", "password": "p"}, {"insecure-skip-tls-verify": True}))
    assert (http.auth, http.verify) == (("u", "p"), False)


@pytest.mark.parametrize(
    ("user", "context", "words"),
    [
        ({"exec": {"command": "aws"}}, "", "signs in by running a program"),
        ({"auth-provider": {"name": "gcp"}}, "", "signs in by running a program"),
        ({"client-key-data": "%%", "client-certificate-data": "%%"}, "", "is not base64"),
        ({}, "absent", "no context named 'absent'; there are lost, prod"),
        ({}, "lost", "no cluster named 'gone'; there are c"),
    ],
)
def test_a_kubeconfig_that_can_not_be_used_says_why(
    tmp_path: Path, user: dict[str, Any], context: str, words: str
) -> None:
    config = kubeconfig(tmp_path, user).model_copy(update={"context": context})
    with pytest.raises(ConfigError) as error:
        connect(config)
    assert words in str(error.value)
    assert str(tmp_path / "config") in str(error.value)


def test_the_service_account_of_the_pod(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    http = connect(KubernetesConfig(), service_account=tmp_path)
    assert (http.base_url, http.verify) == (IN_CLUSTER_URL, str(tmp_path / "ca.crt"))
    with pytest.raises(ConfigError, match="not in a cluster"):
        connect(KubernetesConfig(), service_account=tmp_path / "absent")


def test_a_rotated_token_is_used_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with serving(shop()) as kube:
        http = connect(KubernetesConfig(url=kube.url, token_file=token))
        for value in ("first", "second"):
            token.write_text(f"{value}\n")
            http.request("GET", "/version", deadline=Deadline.after(5))
        assert [headers["Authorization"] for _, _, _, headers in kube.requests] == ["Bearer first", "Bearer second"]


def test_the_token_shows_in_no_repr() -> None:
    config = KubernetesConfig(url="https://k", token=SecretStr("t0ken-of-ours"))
    assert "t0ken-of-ours" not in repr(config) + repr(connect(config))
