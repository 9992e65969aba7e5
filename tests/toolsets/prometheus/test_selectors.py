"""The selectors inside a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsets.prometheus.explain import closest
from toolsets.prometheus.selectors import selectors


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("up", ["up"]),
        ("sum by (job, instance) (rate(http_requests_total[5m] offset 1h))", ["http_requests_total"]),
        ('up{job="a{b}"} == 0', ['up{job="a{b}"}']),
        ("a / on (pod) group_left(node) b", ["a", "b"]),
        ("histogram_quantile(0.99, sum(rate(x_bucket[5m])) without (pod))", ["x_bucket"]),
        ('{__name__=~"a|b", x!="y"}', ['{__name__=~"a|b", x!="y"}']),
        ('label_replace(up, "dst", "$1", "src", "(.*)")', ["up"]),
        ("up # a comment with words\n + down", ["up", "down"]),
        ("job:up:sum > bool 1 and topk(3, foo) unless vector(1)", ["job:up:sum", "foo"]),
        ("max_over_time(rate(a[5m])[1h:1m])", ["a"]),
        ("up + up", ["up"]),
        ("1e3 + Inf - NaN", []),
    ],
)
def test_selectors_are_found_and_nothing_else_is(query: str, expected: list[str]) -> None:
    assert [one.text for one in selectors(query)] == expected


def test_a_selectors_matchers_are_read() -> None:
    (one,) = selectors("""{__name__="up", job!~'a.*', path="a\\"b", raw=`\\d`}""")
    assert one.name == "up"
    assert [(matcher.label, matcher.operator, matcher.value) for matcher in one.matchers] == [
        ("job", "!~", "a.*"),
        ("path", "=", 'a"b'),
        ("raw", "=", "\\d"),
    ]


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(query: str) -> None:
    assert isinstance(selectors(query), tuple)


def test_a_hostile_query_is_read_in_linear_time() -> None:
    assert selectors("{" * 4_000) == ()
    assert selectors('x{a="' + "\\" * 3_999) == selectors('x{a="' + "\\" * 3_999)


def test_the_closest_of_fifty_thousand_names_is_found_quickly() -> None:
    names = frozenset(f"service_{index}_requests_total" for index in range(50_000)) | {"container_memory_rss"}
    assert closest("container_memory_rs", names)[0] == "container_memory_rss"
