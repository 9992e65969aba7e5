"""Whether what a headline names was seen at all: its numbers and object names must stand in some result."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./:@-]*[A-Za-z0-9])?%?")
_NUMBER = re.compile(r"^\d[\d.,]*%?$")
_CLOCK = re.compile(r"^(?:\d{4}-\d\d-\d\d[T ]?)?\d{1,2}:\d\d(?::\d\d)?(?:Z|UTC)?$|^\d{4}-\d\d-\d\d$")
# Parts of compound English words; `out-of-memory` is not the name of anything.
_ENGLISH = re.compile(
    "a|after|and|as|at|back|based|by|cause|cluster|config|crash|cpu|down|due|end|error|fail|first|for|free|full|hard|heavy|"
    "high|in|io|less|level|limit|line|long|loop|low|memory|multi|never|no|node|non|of|off|old|on|one|only|open|out|over|"
    "pod|post|pre|quota|rate|re|read|root|run|scale|self|service|short|side|single|slow|soft|start|state|sub|the|time|to|"
    "too|two|under|up|user|wide|with|write|[a-z]+(?:ed|ing)"
)


def unfounded(headline: str, texts: Iterable[str]) -> list[str]:
    """The numbers and names of the headline that no text holds; the texts are read only while some are missing."""
    missing = set(names(headline))
    for text in texts:
        if not missing:
            break
        lowered = text.lower()
        missing = {name for name in missing if not _stands_in(name.lower(), lowered)}
    return sorted(missing)


def _stands_in(name: str, text: str) -> bool:
    """`1,024` may stand there as `1024`, `97%` as `97`, `shop/checkout` as its two parts."""
    if name in text:
        return True
    if _NUMBER.match(name):
        return name.rstrip("%").replace(",", "") in text
    parts = name.split("/")
    return len(parts) > 1 and all(part in text for part in parts)


def names(headline: str) -> list[str]:
    """What a headline claims to have seen: numbers of two digits or more, object names; clock times are left out
    because results write them in many ways."""
    tokens = (token.rstrip(".:,/") for token in _TOKEN.findall(headline))
    return [token for token in dict.fromkeys(tokens) if _is_claim(token)]


def _is_claim(token: str) -> bool:
    if _CLOCK.match(token):
        return False
    if _NUMBER.match(token):
        return len(token.strip("%").replace(",", "")) >= 2
    if any(mark in token for mark in "_./:@"):
        return len(token) > 3
    parts = token.lower().split("-")
    if len(parts) > 1:
        return not any(_ENGLISH.fullmatch(part) for part in parts)
    return False
