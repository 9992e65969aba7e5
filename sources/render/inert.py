"""Hostile text made inert: what a model, a log or an alert says must not ping, link, load, command or hide.

`visible` is for every target; `neutral` adds what ticket systems and chats react to, so it is for text outside code.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Collection

from sources.port import MARKER_PREFIX

BREAK = "\u200b"  # zero width space: parts a trigger from its name, and looks the same
_SCHEMES = "https?|ftp|file|data|javascript|vbscript|mailto|slack|tel"
_HIDDEN = re.compile("[\U000e0000-\U000e0fff\ufeff\u2060-\u2064\u180e\u00ad\u115f\u3164]")  # tags, selectors, blanks
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u206a-\u206f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_URL = re.compile(rf"\b(?:{_SCHEMES}):(?://)?[^\s<>\"'`|\\^{{}}]+", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w.+-])@(?=[\w/-])")
_REFERENCE = re.compile(r"#(?=\d)|\b(GH)-(?=\d)", re.IGNORECASE)
_CLOSING = re.compile(
    r"\b((?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\s{0,3}:?\s{1,3}[a-z][a-z0-9_]{1,30})-(?=\d)", re.IGNORECASE
)
_COMMAND = re.compile(r"(?m)^([^\S\n]*)/(?=[A-Za-z][\w-]*(?:\s|$))")
_OPENERS = re.compile(r"(?<=[<\[])(?=[!@#~])")


def visible(text: str) -> str:
    """No character that hides, reorders or controls: they are dropped (tags) or shown as an escape."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    text = _HIDDEN.sub("", text.replace("\u2028", "\n").replace("\u2029", "\n"))
    text = _DIRECTION.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def neutral(text: str, hosts: Collection[str] = ()) -> str:
    """Nothing in it is a mention, a reference, a closing keyword, a slash command, our marker, or a link elsewhere."""
    text = visible(text).replace(MARKER_PREFIX, MARKER_PREFIX.replace(":", " "))
    text = _URL.sub(lambda found: found[0] if allowed(found[0], hosts) else _defanged(found[0]), text)
    text = re.sub(r"\bwww\.(?=\w)", "www[.]", text, flags=re.IGNORECASE)
    text = _MENTION.sub(f"@{BREAK}", text)
    text = _CLOSING.sub(rf"\1{BREAK}-", text)
    text = _REFERENCE.sub(lambda found: f"{found[1]}{BREAK}-" if found[1] else f"#{BREAK}", text)
    text = _OPENERS.sub(BREAK, text)
    return no_command(text)


def no_command(text: str) -> str:
    """No line of it is a slash command. Bots read comments as raw text, so code is no shelter from them."""
    return _COMMAND.sub(rf"\1{BREAK}/", text)


def allowed(url: str, hosts: Collection[str]) -> bool:
    """Whether a link may go there: http(s), no user info, and the host (with its port, if it names one) is listed."""
    try:
        parts = urllib.parse.urlsplit(url)
        netloc = parts.netloc.lower()
    except ValueError:
        return False
    if parts.scheme.lower() not in ("http", "https") or "@" in netloc or "\\" in url or url != visible(url):
        return False
    return bool(netloc) and (netloc in hosts or (parts.hostname or "") in hosts)


def _defanged(url: str) -> str:
    """Still readable, no longer a link."""
    scheme, _, rest = url.partition(":")
    return f"{scheme.lower().replace('t', 'x')}:{rest}" if scheme.lower().startswith("http") else f"{scheme}[:]{rest}"
