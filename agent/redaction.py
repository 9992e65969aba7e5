"""Secrets out of text: our own credentials by exact value, others by their shape; each value keeps one placeholder.

Only shapes that are hard to mistake are matched, so that commit ids, UUIDs, digests and pod names stay readable.
Every pattern is anchored on a literal and bounded or possessive: the time is linear in the text.
"""

from __future__ import annotations

import json
import re
import string
import threading
from collections.abc import Iterable, Iterator
from urllib.parse import quote

MIN_SECRET_CHARS = 4  # a shorter configured value would shred ordinary text
_ASCII_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
PLACEHOLDER = re.compile(r"<redacted:\d+>")

_PEM = re.compile(
    r"(?P<keep>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)"
    r"(?P<secret>(?:[A-Za-z0-9+/=\s:,.]++|-(?!----)|\\[nr])++)"
)
_JWT = re.compile(r"(?<![\w-])(?P<secret>eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+)", re.ASCII)
_USERINFO = re.compile(r"(?P<keep>://[^\s:/@\"'<>]{0,256}+:)(?P<secret>[^\s@/\"'<>]{1,512}+)(?=@)")
_SCHEME = re.compile(
    r"(?P<keep>\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]{1,4}+)"
    r"(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[\w.~+/=-]{8,}+)",
    re.ASCII,
)
_KEYS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "credentials"),
    *(f"{kind}{between}key" for kind in ("api", "access", "private") for between in ("", "_", "-")),
)
_QUOTE = r"\\?[\"']"
_REFERENCE = r"(?![$*{<%]|null\b|none\b|true\b|false\b)"  # `${VAR}`, `***`, a placeholder: nothing to hide
_VALUE = r"[^\s\"'&,;<>\\]"
# What follows a key. Without quotes `token: expired` is prose; a value with a digit or a symbol in it is not.
_ASSIGNED = re.compile(
    rf"(?:{_QUOTE})?[ \t]?(?:=[ \t]?(?:{_QUOTE})?|:[ \t]?{_QUOTE})(?P<secret>{_REFERENCE}{_VALUE}{{3,}}+)"
    rf"|[ \t]?:[ \t]?"
    rf"(?P<told>{_REFERENCE}(?=[A-Za-z_-]{{0,200}}[\d!@#$%^*+=/]){_VALUE}{{6,}}+)",
    re.IGNORECASE,
)
_KNOWN = re.compile(
    r"(?<![\w-])(?P<secret>(?:sk-|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|hf_|npm_|pypi-|dop_v1_|ATATT3|SG\.)[\w.-]{12,}+"
    r"|A(?:KIA|SIA)[0-9A-Z]{16}(?!\w)|AIza[\w-]{35})",
    re.ASCII,
)
# Each pattern with the literals of which one must occur: most texts hold none and are never searched.
_SHAPES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (_PEM, ("-----BEGIN ",)),
    (_JWT, ("eyJ",)),
    (_USERINFO, ("://",)),
    (_SCHEME, ("earer", "asic", "BEARER", "BASIC")),
    (
        _KNOWN,
        ("sk-", "gh", "glpat-", "xox", "hf_", "npm_", "pypi-", "dop_v1_", "ATATT3", "SG.", "AKIA", "ASIA", "AIza"),
    ),
)


class Redactor:
    """Replaces secrets by `<redacted:n>`, the same n for the same value. Safe to share between threads."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        own = {form for secret in secrets if len(secret) >= MIN_SECRET_CHARS for form in _forms(secret)}
        longest_first = sorted(own, key=lambda form: (-len(form), form))
        self._own = re.compile("|".join(map(re.escape, longest_first))) if own else None
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Redactor({self.count} values)"

    def __call__(self, text: str) -> str:
        return self.redact(text)

    @property
    def count(self) -> int:
        """How many different values were replaced so far."""
        return len(self._numbers)

    def redact(self, text: str) -> str:
        if self._own is not None:
            text = self._own.sub(lambda found: self._placeholder(found.group()), text)
        for pattern, hints in _SHAPES:
            if any(hint in text for hint in hints):
                text = pattern.sub(self._replace, text)
        return self._assignments(text)

    def _assignments(self, text: str) -> str:
        """Values behind a telling key. The keys are found by plain search: one pattern for all is ten times slower."""
        lowered = text.lower()
        if len(lowered) != len(text):  # a few capitals have longer small forms; then ASCII alone is lowered
            lowered = text.translate(_ASCII_LOWER)
        parts: list[str] = []
        done = 0
        for end in sorted({end for key in _KEYS for end in _ends(lowered, key)}):
            found = _ASSIGNED.match(text, end) if end >= done else None
            if found is not None:
                name = "secret" if found["secret"] else "told"
                parts += [text[done : found.start(name)], self._placeholder(found[name])]
                done = found.end()
        return "".join([*parts, text[done:]]) if parts else text

    def _replace(self, found: re.Match[str]) -> str:
        groups = found.groupdict()
        return f"{groups.get('keep') or ''}{self._placeholder(groups['secret'])}"

    def _placeholder(self, value: str) -> str:
        with self._lock:
            number = self._numbers.setdefault(value, len(self._numbers) + 1)
        return f"<redacted:{number}>"


def _ends(text: str, key: str) -> Iterator[int]:
    at = text.find(key)
    while at >= 0:
        yield at + len(key)
        at = text.find(key, at + len(key))


def _forms(secret: str) -> tuple[str, ...]:
    """The value as it stands, in a URL and in JSON."""
    return secret, quote(secret, safe=""), json.dumps(secret)[1:-1]
