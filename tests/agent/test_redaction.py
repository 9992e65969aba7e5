"""Secrets go, what looks like one stays, and the time is linear."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.redaction import Redactor

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nq8Zx0Q==\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "hidden", "kept"),
    [
        ("password=hunter2x", "hunter2x", "password="),
        ("db_password = 's3cr et'", "s3cr", "db_password = "),
        ('{"password":"hunter2x","user":"app"}', "hunter2x", '"user":"app"'),
        ('{\\"api_key\\":\\"abcdef\\"}', "abcdef", "api_key"),
        ("password: hunter2x", "hunter2x", "password: "),
        ("API-KEY: 12345abcde", "12345abcde", "API-KEY: "),
        ("aws_secret_access_key=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI", "aws_secret_access_key="),
        ("postgres://app:p4ss:word@db:5432/shop", "p4ss", "@db:5432/shop"),
        ("redis://:hunter2x@cache:6379/0", "hunter2x", "@cache:6379"),
        (f"cookie {JWT} seen", JWT, "cookie "),
        ("Authorization: Bearer zz-test-9981", "zz-test-9981", "Authorization: Bearer "),
        ("authorization: basic dXNlcjpwYXNz1g==", "dXNlcjpwYXNz1g", "basic "),
        (f"key:\n{PEM}\nend", "MIIEpAIBAAKCAQEA7bq", "-----END RSA PRIVATE KEY-----"),
        (PEM.replace("\n", "\\n"), "MIIEpAIBAAKCAQEA7bq", "-----END RSA PRIVATE KEY-----"),
        ("using sk-ant-REDACTED now", "sk-ant", "now"),
        ("token ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_", "token"),
        ("id AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7EXAMPLE", "used"),
    ],
)
def test_a_secret_is_masked_and_its_key_stays(text: str, hidden: str, kept: str) -> None:
    seen = Redactor().redact(text)
    assert hidden not in seen
    assert kept in seen
    assert "<redacted:1>" in seen


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "image shop/checkout@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "secretary: Ms Bloom",
        "token_expiry=2027-01-01",
        "tokens: 4096 max_tokens=4096",
        "checkout-7f9c6d5b8-x2x4z restarted",
        "10.0.3.17:8443 at 2026-12-01T10:00:00Z",
        "error: password authentication failed for user app",
        "invalid token: expired",
        "secret: not found",
        "secretName: db-credentials",
        "password: ${DB_PASSWORD}",
        "password=***",
        "bearer authentication failed",
        "see https://grafana/d/abc?from=now-1h@x",
        "monkey: banana-split2",
        "task-abcdefghijklmnop1 done",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().redact(text) == text


def test_own_credentials_go_by_value_wherever_they_stand() -> None:
    redactor = Redactor(["p@ss/word", "p@ss/word-longer", "", "abc"])
    assert (
        redactor("x p@ss/word-longer y p@ss/word z p%40ss%2Fword abc")
        == "x <redacted:1> y <redacted:2> z <redacted:3> abc"
    )


def test_a_value_keeps_its_placeholder() -> None:
    redactor = Redactor()
    assert redactor("password=hunter2x") == "password=<redacted:1>"
    assert redactor("password=other-1 password=hunter2x") == "password=<redacted:2> password=<redacted:1>"
    assert redactor.count == 2


def test_redacting_twice_changes_nothing() -> None:
    redactor = Redactor(["zz-test-9981"])
    once = redactor(f"password=hunter2x token: zz-test-9981 {JWT} {PEM} redis://:pw-1@h")
    assert redactor(once) == once


def test_no_secret_stands_in_the_repr() -> None:
    redactor = Redactor(["zz-test-9981"])
    redactor("zz-test-9981")
    assert "zz" not in repr(redactor)


MEGABYTE = 1_000_000
HOSTILE = {
    "letters": "a" * MEGABYTE,
    "jwt starts": "eyJ" * (MEGABYTE // 3),
    "dashed jwt starts": "eyJaaaaaaaaa." * (MEGABYTE // 13),
    "schemes": "://" * (MEGABYTE // 3),
    "users": "://a:" * (MEGABYTE // 5),
    "keys": "password" * (MEGABYTE // 8),
    "assignments": "password=" * (MEGABYTE // 9),
    "bearers": "bearer " * (MEGABYTE // 7),
    "pem starts": "-----BEGIN RSA PRIVATE KEY-----" * (MEGABYTE // 31),
    "open pems": "-----BEGIN PRIVATE KEY-----AAAA " * (MEGABYTE // 32),
    "prefixes": "sk-" * (MEGABYTE // 3),
    "logs": "2026-12-01T10:00:00Z INFO checkout-7f9c6d5b8-x2x4z GET /cart token_count=3 https://shop/x 200\n" * 10_500,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_takes_milliseconds(name: str) -> None:
    redactor = Redactor(["zz-test-9981", "another-credential"])
    best = min(_seconds(redactor, HOSTILE[name]) for _ in range(3))
    assert best < 0.25  # 0.05 on a quiet machine; a pattern that is not linear takes minutes


def _seconds(redactor: Redactor, text: str) -> float:
    begun = time.thread_time()
    redactor(text)
    return time.thread_time() - begun


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(Redactor(["secret"])(text), str)
