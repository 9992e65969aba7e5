"""From Jira's issues to alerts, and from Jira's rich text to words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.alert import Alert, Severity, Status
from sources.jira.config import JiraConfig
from sources.jira.document import MAX_DEPTH, plain_value, text_of
from sources.jira.issues import read
from sources.port import Broken


def config(**options: Any) -> JiraConfig:
    fields = {"url": "https://acme.atlassian.net", "jql": "x = y", "email": "a@b", "api_token": "t", **options}
    return JiraConfig(**fields)


def alert(options: dict[str, Any] | None = None, **fields: Any) -> Alert:
    found = read("jira", {"id": "10001", "key": "OPS-1", "fields": fields}, config(**(options or {})))
    assert isinstance(found, Alert)
    return found


def test_the_fields_of_an_issue() -> None:
    seen = alert(
        summary="checkout is down",
        description="since noon",
        status={"name": "To Do", "statusCategory": {"key": "new"}},
        priority={"name": "Highest"},
        labels=["team-red", "namespace=shop", "cluster:eu", "https://x.example"],
        components=[{"name": "checkout"}, {"name": "cart"}],
        project={"key": "OPS"},
        issuetype={"name": "Incident"},
        environment={"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": "prod"}]}]},
        created="2024-07-31T14:38:13.985+0700",
        updated="2024-07-31T14:40:00.000+0700",
        reporter={"displayName": "Ann"},
    )
    assert (seen.key, seen.title, seen.body) == ("jira:10001", "checkout is down", "since noon")
    assert seen.url == "https://acme.atlassian.net/browse/OPS-1"
    assert (seen.severity, seen.status, seen.service) == (Severity.CRITICAL, Status.OPEN, "checkout")
    assert seen.starts_at == datetime(2024, 7, 31, 7, 38, 13, 985_000, UTC)
    assert seen.updated_at == datetime(2024, 7, 31, 7, 40, tzinfo=UTC)
    assert seen.labels == {
        "key": "OPS-1", "project": "OPS", "issuetype": "Incident", "priority": "Highest", "issue_status": "To Do",
        "components": "checkout, cart", "labels": "team-red, namespace=shop, cluster:eu, https://x.example",
        "environment": "prod", "reporter": "Ann", "namespace": "shop", "cluster": "eu",
    }  # fmt: skip


@pytest.mark.parametrize("zone", ["+0700", "-0330", "+00:00", "Z", "+1400"])
def test_times_are_read_with_their_offset(zone: str) -> None:
    expected = datetime.fromisoformat(f"2031-02-03T12:00:00{zone}").astimezone(UTC)
    assert alert(updated=f"2031-02-03T12:00:00.000{zone}").updated_at == expected


@pytest.mark.parametrize(("status", "resolution", "expected"), [
    ({"statusCategory": {"key": "new"}}, {"name": "Fixed"}, Status.OPEN),
    ({"statusCategory": {"key": "indeterminate"}}, None, Status.ACKNOWLEDGED),
    ({"statusCategory": {"key": "done"}}, None, Status.RESOLVED),
    ({"statusCategory": {"key": "undefined"}}, None, Status.OPEN),
    ({"name": "Closed"}, {"name": "Fixed"}, Status.RESOLVED),
    ({"name": "Closed"}, None, Status.OPEN),
    (None, None, Status.OPEN),
])  # fmt: skip
def test_the_category_decides_whether_it_is_resolved(status: Any, resolution: Any, expected: Status) -> None:
    seen = alert(status=status, resolution=resolution, resolutiondate="2031-02-03T12:00:00.000+0000")
    assert seen.status is expected
    assert (seen.ends_at is not None) is seen.resolved


@pytest.mark.parametrize(("priority", "severity"), [
    ("Highest", "critical"), ("Blocker", "critical"), ("High", "error"), ("Major", "error"), ("Medium", "warning"),
    ("Low", "info"), ("P1", "critical"), ("SEV-2", "error"), ("Everest", "unknown"), (None, "unknown"),
])  # fmt: skip
def test_the_priority_is_the_severity(priority: str | None, severity: str) -> None:
    assert alert(priority={"name": priority} if priority else None).severity == severity


def test_the_operators_priorities_come_first() -> None:
    options = {"severities": {"Everest": "critical", "high": "warning"}}
    assert alert(options, priority={"name": "everest"}).severity is Severity.CRITICAL
    assert alert(options, priority={"name": "High"}).severity is Severity.WARNING
    assert alert(options, priority={"name": "Low"}).severity is Severity.INFO


@pytest.mark.parametrize(("value", "label"), [
    ("prod", "prod"), (7, "7"), (True, "true"), ({"value": "EU"}, "EU"), ([{"value": "EU"}, {"value": "US"}], "EU, US"),
    ({"value": "EU", "child": {"value": "Paris"}}, "EU / Paris"), ({"displayName": "Ann"}, "Ann"),
    ({"name": "v1"}, "v1"),
    ({"type": "doc", "content": [{"type": "text", "text": "words"}]}, "words"), ({"a": 1}, '{"a": 1}'),
])  # fmt: skip
def test_a_label_can_be_read_from_any_field(value: Any, label: str) -> None:
    seen = alert({"label_fields": {"region": "customfield_1"}}, customfield_1=value, labels=["region=other"])
    assert seen.labels["region"] == label


def test_a_group_of_alerts_is_known_by_the_label_of_jiralert() -> None:
    assert alert(labels=["x", "JIRALERT{4f2a}"]).fingerprint == "JIRALERT{4f2a}"
    assert alert(labels=["x"]).fingerprint == ""


def test_links_go_to_where_people_open_issues() -> None:
    options = {"url": "https://api.atlassian.com/ex/jira/1", "site_url": "https://acme.atlassian.net/"}
    assert alert(options).url == "https://acme.atlassian.net/browse/OPS-1"


def paragraph(*content: Any) -> dict[str, Any]:
    return {"type": "paragraph", "content": list(content)}


def text(words: str, *marks: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, "marks": list(marks)}


def doc(*content: Any) -> dict[str, Any]:
    return {"type": "doc", "version": 1, "content": list(content)}


def test_a_document_becomes_lines() -> None:
    listed = [{"type": "listItem", "content": [paragraph(text(word))]} for word in ("one", "two")]
    cells = [{"type": "tableCell", "content": [paragraph(text(word))]} for word in ("a", "b")]
    link = {"type": "link", "attrs": {"href": "https://runbook.example"}}
    document = doc(
        {"type": "heading", "attrs": {"level": 1}, "content": [text("Down")]},
        paragraph(text("see "), text("the runbook", link), {"type": "hardBreak"}, text("now")),
        {"type": "bulletList", "content": listed},
        {"type": "codeBlock", "content": [text("line 1\nline 2")]},
        {"type": "table", "content": [{"type": "tableRow", "content": cells}]},
        paragraph({"type": "mention", "attrs": {"text": "@Ann"}}, {"type": "emoji", "attrs": {"shortName": ":fire:"}}),
        paragraph({"type": "inlineCard", "attrs": {"url": "https://x.example"}}),
        {"type": "mediaSingle", "content": [{"type": "media", "attrs": {"alt": "p.png"}}]},
    )
    assert text_of(document).splitlines()[:7] == [
        "Down", "see the runbook (https://runbook.example)", "now", "- one", "- two", "line 1", "line 2",
    ]  # fmt: skip
    rest = text_of(document)
    assert all(words in rest for words in ("a", "b", "@Ann:fire:", "https://x.example", "[attachment p.png]"))


@pytest.mark.parametrize("value", [None, 7, [], {}, {"content": 3}, {"type": "text"}, {"content": [None, 3, "x"]}])
def test_what_is_no_document_has_no_words(value: Any) -> None:
    assert text_of(value) == ""


def test_a_document_that_is_far_too_deep_is_read_as_far_as_it_goes() -> None:
    node = paragraph(text("bottom"))
    for _ in range(5_000):
        node = {"type": "blockquote", "content": [node]}
    assert text_of(doc(paragraph(text("top")), node)) == "top"
    assert MAX_DEPTH < 100


NAMES = ("type", "content", "text", "attrs", "marks", "key", "name", "value", "child", "statusCategory", "url")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
FIELD = st.sampled_from(["summary", "description", "status", "priority", "labels", "components", "project", "created"])


@given(JSON)
def test_any_value_is_read_as_text(value: Any) -> None:
    assert isinstance(text_of(value), str)
    assert isinstance(plain_value(value), str)


@given(st.dictionaries(FIELD, JSON, max_size=8))
@settings(max_examples=60)
def test_any_fields_give_an_alert_or_say_why_not(fields: dict[str, Any]) -> None:
    found = read("jira", {"id": "1", "key": "OPS-1", "fields": fields}, config())
    assert found.id == "1"
    assert isinstance(found, Alert | Broken)
