"""Signatures of an App's requests."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.github.rs256 import UnreadableKey, json_web_token, read_key, sign
from tests.support import rsa_key
from tests.support.github_api import rs256_fits, unbase64


@pytest.mark.parametrize("pem", [rsa_key.PKCS1, rsa_key.PKCS8, f"a comment\n{rsa_key.PKCS1}\n\n"])
def test_the_signature_is_the_one_openssl_makes(pem: str) -> None:
    assert sign(rsa_key.MESSAGE, read_key(pem)) == base64.b64decode(rsa_key.SIGNATURE)


def test_a_token_has_its_claims_and_a_fitting_signature() -> None:
    token = json_web_token({"iss": "5", "iat": 1}, read_key(rsa_key.PKCS1))
    head, claims, signature = token.split(".")
    assert json.loads(unbase64(head)) == {"alg": "RS256", "typ": "JWT"}
    assert json.loads(unbase64(claims)) == {"iss": "5", "iat": 1}
    assert rs256_fits(f"{head}.{claims}".encode(), unbase64(signature), rsa_key.MODULUS, rsa_key.EXPONENT)
    assert not rs256_fits(f"{head}.{claims}x".encode(), unbase64(signature), rsa_key.MODULUS, rsa_key.EXPONENT)


def test_a_key_does_not_show() -> None:
    assert "Key()" in repr(read_key(rsa_key.PKCS1))


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300))
def test_any_other_content_is_unreadable_and_not_quoted(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    with pytest.raises(UnreadableKey) as caught:
        read_key(f"-----BEGIN RSA PRIVATE KEY-----\n{text}\n-----END RSA PRIVATE KEY-----")
    assert len(text) < 8 or text not in str(caught.value)
