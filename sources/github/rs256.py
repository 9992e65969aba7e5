"""Signs JSON Web Tokens with an App's RSA key (RS256), by the `cryptography` package; loaded when a key is read."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

MIN_BITS = 2_048
_PEM = re.compile(r"-----BEGIN ((?:RSA )?PRIVATE KEY)-----[A-Za-z0-9+/=\s]+-----END \1-----")


class UnreadableKey(ValueError):
    """Raised when a text is not an RSA private key in PEM; never holds a part of it."""


@dataclass(frozen=True, slots=True)
class Key:
    rsa: RSAPrivateKey = field(repr=False)


def read_key(pem: str) -> Key:
    """The key of a PEM file as GitHub gives it (PKCS#1) or as openssl converts it (PKCS#8). Raises `UnreadableKey`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _PEM.search(pem.replace("\\n", "\n"))  # environment variables often hold the two characters
    if not found:
        raise UnreadableKey("not a PEM text with an unencrypted RSA private key (-----BEGIN RSA PRIVATE KEY-----)")
    try:
        key = load_pem_private_key(found[0].encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnreadableKey(f"not an RSA private key: {type(error).__name__}") from None
    if not isinstance(key, RSAPrivateKey) or key.key_size < MIN_BITS:
        raise UnreadableKey(f"not an RSA private key of at least {MIN_BITS} bits")
    return Key(key)


def json_web_token(claims: Mapping[str, Any], key: Key) -> str:
    """The claims in compact form, signed."""
    parts = ({"alg": "RS256", "typ": "JWT"}, dict(claims))
    signed = ".".join(_base64(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    return f"{signed}.{_base64(sign(signed.encode(), key))}"


def sign(message: bytes, key: Key) -> bytes:
    """RSASSA-PKCS1-v1_5 with SHA-256."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    return key.rsa.sign(message, PKCS1v15(), SHA256())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
