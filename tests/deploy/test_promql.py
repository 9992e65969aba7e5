"""The PromQL evaluator against values computed by hand."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.demo.promql import functions
from deploy.demo.promql.evaluator import Database, Series, instant, over_range
from deploy.demo.promql.parser import parse
from deploy.demo.promql.syntax import Binary, Number, QueryError
from deploy.demo.shapes import between, counted, levels, steady, through

AT = 3_000.0  # a multiple of the scrape interval


def series(name, shape, **labels):
    return Series({"__name__": name, **labels}, shape)


DATABASE = Database(
    [
        series("up", steady(1), job="a", instance="a1"),
        series("up", steady(0), job="a", instance="a2"),
        series("up", steady(1), job="b", instance="b1"),
        series("requests_total", counted(((0.0, 2.0),), 0.0), job="a", code="200"),
        series("requests_total", counted(((0.0, 0.5),), 0.0), job="a", code="500"),
        series("requests_total", counted(((0.0, 4.0),), 0.0), job="b", code="200"),
        series("memory", through(((0.0, 0.0), (3_000.0, 300.0))), job="a"),
        series("memory", steady(50), job="b"),
        series("limit", steady(600), job="a"),
        series("limit", steady(100), job="b"),
        series("replicas", levels(((0.0, 3.0), (2_900.0, 1.0))), job="a"),
        series("gone", between(steady(1), 0, 2_001), job="a"),
        series("just_gone", between(steady(7), 0, 2_999), job="a"),
        *(
            series("latency_bucket", steady(count), le=bound)
            for bound, count in (("0.1", 50), ("0.5", 90), ("1", 100), ("+Inf", 100))
        ),
    ]
)


def vector(query, at=AT):
    """{sorted label text: value} of an instant query."""
    found = instant(DATABASE, query, at)
    assert isinstance(found, dict)
    return {",".join(f"{n}={v}" for n, v in labels): value for labels, value in found.items()}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('up{instance="a1"}', {"__name__=up,instance=a1,job=a": 1}),
        ('up{instance!="a1",job="a"}', {"__name__=up,instance=a2,job=a": 0}),
        ('up{instance=~"a.|nothing"} == 0', {"__name__=up,instance=a2,job=a": 0}),
        ('up{job!~"a|c"}', {"__name__=up,instance=b1,job=b": 1}),
        ('up{instance=~"a"}', {}),  # regular expressions are anchored
        ('{__name__="limit",job="a"}', {"__name__=limit,job=a": 600}),
        ('rate(requests_total{job="b"}[5m])', {"code=200,job=b": 4}),
        ('increase(requests_total{code="500"}[10m])', {"code=500,job=a": 300}),
        ('irate(requests_total{code="500"}[10m])', {"code=500,job=a": 0.5}),
        ("sum(rate(requests_total[5m]))", {"": 6.5}),
        ("sum by (job) (rate(requests_total[5m]))", {"job=a": 2.5, "job=b": 4}),
        ("sum without (code) (rate(requests_total[5m]))", {"job=a": 2.5, "job=b": 4}),
        ("sum(rate(requests_total[5m])) by (code)", {"code=200": 6, "code=500": 0.5}),
        ("avg(up)", {"": 2 / 3}),
        ("max by (job) (up)", {"job=a": 1, "job=b": 1}),
        ("min by (job) (up)", {"job=a": 0, "job=b": 1}),
        ("count(up == 1)", {"": 2}),
        ("topk(1, limit)", {"__name__=limit,job=a": 600}),
        ("bottomk(1, limit)", {"__name__=limit,job=b": 100}),
        ("memory / limit", {"job=a": 0.5, "job=b": 0.5}),
        ("memory > 100", {"__name__=memory,job=a": 300}),
        ("memory > bool 100", {"job=a": 1, "job=b": 0}),
        ("limit - memory", {"job=a": 300, "job=b": 50}),
        ('up{instance="b1"} * on(job) group_left limit', {"instance=b1,job=b": 100}),
        ('requests_total{code="500"} / ignoring(code) requests_total{code="200"}', {"job=a": 0.25}),
        ('up{job="a"} and up == 0', {"__name__=up,instance=a2,job=a": 0}),
        ('up{job="a"} unless up == 0', {"__name__=up,instance=a1,job=a": 1}),
        ('limit{job="a"} or limit', {"__name__=limit,job=a": 600, "__name__=limit,job=b": 100}),
        ("histogram_quantile(0.5, latency_bucket)", {"": 0.1}),
        ("histogram_quantile(0.7, latency_bucket)", {"": 0.3}),
        ("histogram_quantile(0.99, latency_bucket)", {"": 0.95}),
        ('absent(nothing{job="x"})', {"job=x": 1}),
        ("absent(up)", {}),
        ('abs(0 - limit{job="a"})', {"job=a": 600}),
        ("clamp(limit, 150, 500)", {"job=a": 500, "job=b": 150}),
        ("vector(7)", {"": 7}),
        ('vector(scalar(limit{job="a"}) / 2)', {"": 300}),
        ("vector(time())", {"": AT}),
        ('memory{job="a"} offset 10m', {"__name__=memory,job=a": 240}),
        ('deriv(memory{job="a"}[5m]) * 60', {"job=a": 6}),
        ('delta(memory{job="a"}[5m])', {"job=a": 30}),
        ('avg_over_time(memory{job="a"}[1m])', {"job=a": 298.5}),
        ('max_over_time(memory{job="a"}[5m])', {"job=a": 300}),
        ('min_over_time(memory{job="a"}[1m])', {"job=a": 297}),
        ('sum_over_time(limit{job="b"}[1m])', {"job=b": 200}),
        ('last_over_time(limit{job="b"}[1m])', {"__name__=limit,job=b": 100}),
        ("changes(replicas[5m])", {"job=a": 1}),
        ("resets(replicas[5m])", {"job=a": 1}),
        ("max_over_time(sum(up)[5m:1m])", {"": 2}),
        ('predict_linear(memory{job="a"}[10m], 600)', {"job=a": 360}),
        ("gone", {}),
        ("just_gone", {}),  # stale at once
        ("last_over_time(just_gone[5m])", {"__name__=just_gone,job=a": 7}),
        ('limit{job="a"} - 2 * 3 ^ 2', {"job=a": 582}),
        ('-limit{job="b"}', {"job=b": -100}),
        ('2 ^ 3 ^ 2 + 0 * limit{job="a"}', {"job=a": 512}),
        ('label_replace(limit{job="a"}, "team", "$1-x", "job", "(.*)")', {"__name__=limit,job=a,team=a-x": 600}),
    ],
)
def test_an_expression_has_the_value_computed_by_hand(query, expected):
    assert vector(query) == {labels: pytest.approx(value) for labels, value in expected.items()}


def test_a_scalar_expression_is_a_scalar():
    assert instant(DATABASE, "1 + 2 * 3 > bool 6", AT) == 1.0


def test_a_bare_range_selector_gives_the_samples_of_the_half_open_window():
    assert instant(DATABASE, 'limit{job="b"}[1m]', AT) == [
        ((("__name__", "limit"), ("job", "b")), [(2_970.0, 100), (3_000.0, 100)])
    ]


def test_a_counter_reset_counts_as_growth():
    samples = [(0.0, 10.0), (30.0, 20.0), (60.0, 5.0), (90.0, 15.0)]
    assert functions.increase(samples, 0.0, 90.0) == pytest.approx(25.0)
    assert functions.delta(samples, 0.0, 90.0) == pytest.approx(5.0)


def test_a_range_query_evaluates_at_every_step():
    found = over_range(DATABASE, 'memory{job="a"}', 2_400, 3_000, 300)
    assert list(found.values()) == [[(2_400, 240.0), (2_700, 270.0), (3_000, 300.0)]]


def test_a_range_query_leaves_out_steps_without_a_value():
    found = over_range(DATABASE, "gone", 1_900, 2_600, 100)
    [values] = found.values()
    assert [at for at, _ in values] == [1_900, 2_000]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "no expression found"),
        ("sum(", "unexpected end of input"),
        ("up{job=}", 'unexpected "}"'),
        ("rate(up)", "expected type range vector"),
        ("up[5m] + 1", "range vector"),
        ("holt_winters(up[5m], 1, 2)", "unknown function"),
        ("1 == 1", "BOOL modifier"),
        ("{}", "non-empty matcher"),
        ('up{job=~"("}', "error parsing regexp"),
        ("limit * on(job) up", "many-to-many"),
        ("up * on(job) limit", "group_left"),
        ("up @ 5", "not supported"),
        ("clamp(up, 1)", "expected 3 argument(s)"),
        ("up up", 'unexpected "up"'),
        ("sum(1)", "expected type instant vector"),
        ("up and 1", "set operator"),
    ],
)
def test_what_is_wrong_or_outside_the_subset_is_refused_in_words(query, words):
    with pytest.raises(QueryError) as refusal:
        instant(DATABASE, query, AT)
    assert words in str(refusal.value)


def test_too_many_points_are_refused():
    with pytest.raises(QueryError, match="11,000 points"):
        over_range(DATABASE, "up", 0, 100_000, 1)


def test_division_by_zero_follows_ieee():
    assert instant(DATABASE, "1 / 0", AT) == math.inf
    assert str(instant(DATABASE, "0 / 0", AT)) == "nan"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(0, 1))
def test_a_quantile_lies_between_the_extremes(values, share):
    assert min(values) <= functions.quantile(share, values) <= max(values)


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 20)), min_size=2, max_size=5), st.floats(1, 5_000))
def test_a_counter_never_falls(steps, at):
    points, edge = [], 0.0
    for width, rate in steps:
        points.append((edge, rate))
        edge += width + 1
    count = counted(points, 0.0)
    before, after = count(at), count(at + 17.0)
    assert before is not None
    assert after is not None
    assert before <= after


@given(st.text(alphabet="up{}()[]\"'=~!<>+-*/^,.: 5mabyson", max_size=30))
def test_any_text_is_either_read_or_refused(text):
    with contextlib.suppress(QueryError):  # anything else fails the test
        parse(text)


def test_power_groups_to_the_right_and_binds_tighter_than_minus():
    match parse("2 - 3 ^ 2"):
        case Binary("-", Number(2.0), Binary("^", Number(3.0), Number(2.0))):
            pass
        case other:
            pytest.fail(f"read as {other}")
