from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.alert import Severity
from tests.support.alerts import alert
from worker.matching import Matcher, all_hold, parse_matcher, value_of


@pytest.mark.parametrize(
    ("text", "matcher"),
    [
        ("severity=info", Matcher("severity", "=", "info")),
        ("team != platform", Matcher("team", "!=", "platform")),
        ('title=~"Disk.*"', Matcher("title", "=~", "Disk.*")),
        ("namespace!~dev|test", Matcher("namespace", "!~", "dev|test")),
        ("query=a=b", Matcher("query", "=", "a=b")),
        ("query==b", Matcher("query", "=", "=b")),
        ("expr=x!=y", Matcher("expr", "=", "x!=y")),
        (r'path="a \"quoted\" \\ name"', Matcher("path", "=", r'a "quoted" \ name')),
        (r'title=~"\d+ pods"', Matcher("title", "=~", r"\d+ pods")),
        ("k8s.namespace.name=shop", Matcher("k8s.namespace.name", "=", "shop")),
        ("team=", Matcher("team", "=", "")),
        ('team=""', Matcher("team", "=", "")),
    ],
)
def test_a_matcher_is_read_up_to_its_first_operator(text: str, matcher: Matcher) -> None:
    assert parse_matcher(text) == matcher


@pytest.mark.parametrize("text", ["", "severity", "=info", "1x=2", 'title="open', 'title="a" b', "title=~(", "a b=c"])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"matcher|quotes|unterminated"):
        parse_matcher(text)


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
def test_a_quoted_value_means_itself_whatever_it_holds(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_matcher(f'title="{escaped}"').value == value


def test_an_expression_matches_the_whole_value() -> None:
    assert not all_hold(["title=~checkout"], alert(title="checkout is slow"))
    assert all_hold(["title=~checkout.*"], alert(title="checkout is slow"))


def test_all_matchers_must_hold() -> None:
    one = alert(labels={"team": "shop"}, severity=Severity.INFO)
    assert all_hold(["team=shop", "severity=info"], one)
    assert not all_hold(["team=shop", "severity=critical"], one)
    assert all_hold([], one)


def test_a_missing_label_is_empty() -> None:
    assert all_hold(["team=", "team!=shop", "team!~shop|pay", "team=~(shop)?"], alert())


def test_a_label_with_the_name_of_a_field_is_reached_by_its_prefix() -> None:
    one = alert(severity=Severity.CRITICAL, labels={"severity": "page", "labels.odd": "x"})
    assert value_of(one, "severity") == "critical"
    assert value_of(one, "labels.severity") == "page"
    assert value_of(one, "labels.odd") == "x"
