"""Hostile text made inert."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.render.inert import BREAK, allowed, neutral, visible
from tests.support.inertness import LIVE, assert_inert
from tests.support.reports import HOSTILE

HOSTS = frozenset({"grafana.example.org", "127.0.0.1:3000"})


@pytest.mark.parametrize("name", LIVE)
def test_the_check_itself_finds_hostile_text(name: str) -> None:
    assert LIVE[name].search(HOSTILE)


def test_the_whole_hostile_text_is_inert() -> None:
    assert_inert(neutral(HOSTILE))


@pytest.mark.parametrize(("text", "shown"), [
    ("ok\n2026-01-01 ERROR forged", "ok\n2026-01-01 ERROR forged"),
    ("\x1b]52;c;AAAA\x07", r"\x1b]52;c;AAAA\x07"),
    ("over\rwrite", r"over\x0dwrite"),
    ("one\r\ntwo", "one\ntwo"),
    ("\u202egnp.exe", r"\u202egnp.exe"),
    ("a\U000e0041\U000e007fb", "ab"),
    ("a\ufeffb\u2060c", "abc"),
    ("tab\tstays", "tab\tstays"),
    ("\ud800", "?"),
    ("日本 🔥 é", "日本 🔥 é"),
])  # fmt: skip
def test_what_hides_or_controls_is_dropped_or_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(("text", "shown"), [
    ("ask @oncall now", f"ask @{BREAK}oncall now"),
    ("user@host.example", "user@host.example"),
    ("(@here)", f"(@{BREAK}here)"),
    ("org/repo#12", f"org/repo#{BREAK}12"),
    ("GH-7", f"GH{BREAK}-7"),
    ("# heading", "# heading"),
    ("closes PROJ-1", f"closes PROJ{BREAK}-1"),
    ("UTF-8 and E-1", "UTF-8 and E-1"),
    ("/lgtm", f"{BREAK}/lgtm"),
    ("  /assign @bob", f"  {BREAK}/assign @{BREAK}bob"),
    ("/var/log/syslog is full", "/var/log/syslog is full"),
    ("see /healthz", "see /healthz"),
    ("[~accountid:1]", f"[{BREAK}~accountid:1]"),
    ("<!channel>", f"<{BREAK}!channel>"),
    ("www.evil.example", "www[.]evil.example"),
    ("https://evil.example/a?b=c", "hxxps://evil.example/a?b=c"),
    ("HTTP://EVIL.example", "hxxp://EVIL.example"),
    ("https://grafana.example.org/d/1", "https://grafana.example.org/d/1"),
    ("http://127.0.0.1:3000/x", "http://127.0.0.1:3000/x"),
    ("https://grafana.example.org@evil.example/", f"hxxps://grafana.example.org@{BREAK}evil.example/"),
    ("javascript:alert(1)", "javascript[:]alert(1)"),
    ("data:text/html;base64,AA", "data[:]text/html;base64,AA"),
    ("rootcaused:v1:abc", "rootcaused v1 abc"),
])  # fmt: skip
def test_what_triggers_something_no_longer_does(text: str, shown: str) -> None:
    assert neutral(text, HOSTS).replace(f"g@{BREAK}", "g@") == shown.replace(f"g@{BREAK}", "g@")


@pytest.mark.parametrize("url", [
    "https://grafana.example.org.evil.example/", "https://evil.example/grafana.example.org", "//grafana.example.org/",
    "https://grafana.example.org/\u202e", "https://u@grafana.example.org/", "https://[", "ftp://grafana.example.org",
    "https://evil.example\\@grafana.example.org/", "https:///x", "https://127.0.0.1:3001/", "",
])  # fmt: skip
def test_a_link_to_another_host_is_not_allowed(url: str) -> None:
    assert not allowed(url, HOSTS)


@given(st.text(max_size=200))
def test_any_text_is_inert_and_stays_so(text: str) -> None:
    once = neutral(text)
    assert_inert(once + " user@host.example")
    assert visible(once) == once
