"""What an operator may write, and how a person's JQL is narrowed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sources.jira.config import JiraConfig
from sources.jira.jql import selection, split_order

CLOUD = {"url": "https://acme.atlassian.net", "email": "a@b.example", "api_token": "secret-1", "jql": "project = OPS"}
SERVER = {"url": "https://jira.example.org/jira", "personal_access_token": "secret-2", "projects": "OPS"}


@pytest.mark.parametrize("written", [CLOUD, SERVER, {**SERVER, "deployment": "data_center", "ca_file": "/ca.pem"}])
def test_what_is_enough(written: dict[str, Any]) -> None:
    JiraConfig(**written)


@pytest.mark.parametrize(("changes", "words"), [
    ({"api_token": None}, "go together"), ({"email": ""}, "go together"),
    ({"personal_access_token": "x"}, "or personal_access_token"), ({"email": "", "api_token": None}, "or personal"),
    ({"jql": ""}, "say which issues"), ({"jql": "ORDER BY created"}, "say which issues"),
    ({"jql": "a = b) OR (c = d"}, "never opened"), ({"jql": "(a = b"}, "not closed"), ({"jql": 'a = "b'}, "not closed"),
    ({"projects": 'OPS") OR ("'}, "not a project key"), ({"url": "http://jira.example.org"}, "https"),
    ({"label_fields": {"x": "a b"}}, "label_fields"), ({"severities": {"High": "bad"}}, "severities"),
    ({"max_comment_chars": 40_000}, "max_comment_chars"), ({"tokn": 1}, "tokn"),
    ({"deployment": "server"}, "deployment"),
])  # fmt: skip
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words) as caught:
        JiraConfig(**{**CLOUD, **changes})
    assert "secret-" not in str(caught.value.errors(include_input=False))


def test_no_configuration_shows_its_secrets() -> None:
    assert "secret-" not in repr(JiraConfig(**CLOUD)) + repr(JiraConfig(**{**SERVER, "webhook_secrets": "secret-3"}))


def test_reading_the_configuration_loads_no_client() -> None:
    heavy = "{'requests', 'urllib3', 'jira', 'celery'}"
    script = f"import sys, sources.jira.config; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(("jql", "condition", "order"), [
    ("project = OPS", "project = OPS", ""),
    ("project = OPS ORDER BY created DESC", "project = OPS", "created DESC"),
    ("project = OPS\norder\n by rank", "project = OPS", "rank"),
    ("(a = b)order by x", "(a = b)", "x"),
    ("ORDER BY x", "", "x"),
    ('summary ~ "ORDER BY x"', 'summary ~ "ORDER BY x"', ""),
    ("summary ~ 'order by \\' x' ORDER BY y", "summary ~ 'order by \\' x'", "y"),
    (r'summary ~ "a \" ORDER BY" and b = c', r'summary ~ "a \" ORDER BY" and b = c', ""),
    ("reorder by = 3", "reorder by = 3", ""),
    ("summary ~ ')(' AND a in (1, 2)", "summary ~ ')(' AND a in (1, 2)", ""),
])  # fmt: skip
def test_the_order_is_told_from_the_condition(jql: str, condition: str, order: str) -> None:
    assert split_order(jql) == (condition, order)


def test_a_condition_can_not_reach_out_of_its_parentheses() -> None:
    assert selection("a = b OR c = d ORDER BY e", ["OPS", "WEB"]) == '(a = b OR c = d) AND (project in ("OPS", "WEB"))'
    assert selection("", ["OPS"]) == '(project in ("OPS"))'
    assert selection("a = b", []) == "(a = b)"


@given(st.text(alphabet="()\"'\\ orderby=x", max_size=40))
def test_what_is_taken_is_closed(jql: str) -> None:
    try:
        condition, _ = split_order(jql)
    except ValueError:
        return
    assert split_order(f"({condition}) AND x = y") == (f"({condition}) AND x = y", "")
