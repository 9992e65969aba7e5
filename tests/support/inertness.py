"""What no ticket, chat or terminal may see of `tests.support.reports.HOSTILE`."""

from __future__ import annotations

import re

LIVE = {
    "a mention": re.compile(r"(?<![\w.+-])@(oncall-team|here|bob)"),
    "a reference": re.compile(r"#\d"),
    "a closing keyword": re.compile(r"(?i)\b(fixes|closes) +(#\d|PROJ-\d)"),
    "a slash command": re.compile(r"(?m)^\s*/(lgtm|assign)\b"),
    "a link elsewhere": re.compile(r"https?://(www\.)?evil\.example"),
    "an address that is linked by itself": re.compile(r"\bwww\.evil"),
    "a script": re.compile(r"(?i)\bjavascript:"),
    "a control character": re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]"),
    "a change of direction": re.compile("[\u202a-\u202e\u2066-\u2069]"),
    "a tag character": re.compile("[\U000e0000-\U000e007f]"),
    "a forged marker": re.compile(r"rootcaused:v1:forged"),
}


def assert_inert(text: str, *, besides: tuple[str, ...] = ()) -> None:
    found = {name: match[0] for name, live in LIVE.items() if name not in besides and (match := live.search(text))}
    assert found == {}
    assert "user@host.example" in text, "text like an e-mail address stays readable"
