"""What an operator may write for GitHub."""

from __future__ import annotations

from typing import Any

import pytest

from agent.alert import Severity
from sources.github.config import GitHubConfig, split_label
from tests.support import rsa_key

GOOD: dict[str, Any] = {"token": "t-secret-1", "repositories": "Acme/Shop", "labels": "alert"}
APP: dict[str, Any] = {"token": None, "app_id": 5, "installation_id": 42, "private_key": rsa_key.PKCS1}


def test_single_values_need_no_list_and_a_repository_has_one_spelling() -> None:
    config = GitHubConfig(**GOOD)
    assert (config.repositories, config.labels) == (("acme/shop",), ("alert",))


@pytest.mark.parametrize(("changes", "said"), [
    ({"token": None}, "give token, or app_id"),
    ({**APP, "token": "t"}, "give token, or app_id"),
    ({**APP, "installation_id": None}, "an App needs"),
    ({**APP, "private_key": None}, "an App needs"),
    ({**APP, "private_key_file": "/x.pem"}, "not both"),
    ({**APP, "private_key": "rubbish"}, "not a PEM text"),
    ({**APP, "private_key": rsa_key.TOO_SHORT}, "at least 2048 bits"),
    ({**APP, "private_key": rsa_key.ENCRYPTED}, "not a PEM text"),
    ({**APP, "private_key": rsa_key.ELLIPTIC}, "not a PEM text"),
    ({"labels": ()}, "give labels or search"),
    ({"labels": ["a,b"]}, "has a comma"),
    ({"labels": [" "]}, "empty"),
    ({"repositories": ()}, "at least 1"),
    ({"repositories": "shop"}, "owner/name"),
    ({"repositories": "acme/.."}, "owner/name"),
    ({"repositories": "../shop"}, "owner/name"),
    ({"repositories": "acme/shop/issues"}, "owner/name"),
    ({"repositories": "acme/shop?x"}, "owner/name"),
    ({"url": "https://github.com/"}, "the API's address"),
    ({"url": "http://github.example.com/api/v3"}, "must start with https"),
    ({"max_comment_chars": 65_537}, "less than or equal"),
    ({"label": "x"}, "Extra inputs"),
    ({"severities": {"boom": "loud"}}, "severities"),
])  # fmt: skip
def test_what_cannot_work_is_refused_with_the_reason(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        GitHubConfig(**{**GOOD, **changes})
    assert "t-secret-1" not in str(caught.value)
    assert "PRIVATE KEY-----\nM" not in str(caught.value)


@pytest.mark.parametrize("changes", [
    {}, APP, {**APP, "private_key": rsa_key.PKCS8}, {**APP, "private_key": rsa_key.PKCS1.replace("\n", "\\n")},
    {**APP, "private_key": None, "private_key_file": "/k.pem"}, {**APP, "app_id": "Iv23liABC"},
    {"labels": (), "search": "label:a"}, {"url": "https://github.example.com/api/v3/"}, {"url": "http://127.0.0.1:1"},
])  # fmt: skip
def test_what_works_is_taken(changes: dict[str, Any]) -> None:
    assert GitHubConfig(**{**GOOD, **changes}).kind == "github"


def test_no_secret_shows() -> None:
    shown = repr(GitHubConfig(**{**GOOD, **APP, "webhook_secrets": "hook-secret"}))
    assert "hook-secret" not in shown
    assert "MII" not in shown


@pytest.mark.parametrize(("label", "severity"), [
    ("critical", Severity.CRITICAL), ("SEV1", Severity.CRITICAL), ("priority/P2", Severity.ERROR),
    ("severity: warning", Severity.WARNING), ("severity=info", Severity.INFO), ("area/critical", None),
    ("bug", None), ("boom", Severity.CRITICAL), ("p1", Severity.INFO),
])  # fmt: skip
def test_a_label_may_mean_a_severity_and_the_operators_word_comes_first(label: str, severity: Severity | None) -> None:
    config = GitHubConfig(**GOOD, severities={"Boom": "critical", "p1": "info"})
    assert config.severity_of(label) is severity


@pytest.mark.parametrize(("label", "parts"), [
    ("service:checkout", ("service", "checkout")), ("service/checkout", ("service", "checkout")),
    ("team = a b", ("team", "a b")), ("bug", ("", "")), ("a:", ("", "")), (":b", ("", "")), ("two words: x", ("", "")),
])  # fmt: skip
def test_labels_with_a_name_and_a_value(label: str, parts: tuple[str, str]) -> None:
    assert split_label(label) == parts
