"""Pure parts: pod phases, roll-out differences, selectors, quantities, grammar."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ToolError
from toolsets.kubernetes import grammar, pods
from toolsets.kubernetes.describe import selector_of
from toolsets.kubernetes.fields import quantity
from toolsets.kubernetes.kinds import WELL_KNOWN, well_known
from toolsets.kubernetes.manifest import without_literals
from toolsets.kubernetes.rollout import differences


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, "Running"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "ImagePullBackOff",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9}}}]}, "Signal:9"),
        (
            {"phase": "Pending", "initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "Init:CrashLoopBackOff",
        ),
        (
            {
                "phase": "Running",
                "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
                "containerStatuses": [{"state": {"running": {}}}],
            },
            "Running",
        ),
        ({}, "Unknown"),
    ],
)
def test_the_phase_is_what_kubectl_shows(status: dict[str, Any], expected: str) -> None:
    assert pods.phase({"status": status}) == expected


def test_a_pod_on_its_way_out_is_terminating() -> None:
    assert (
        pods.phase({"metadata": {"deletionTimestamp": "2026-05-01T10:00:00Z"}, "status": {"phase": "Running"}})
        == "Terminating"
    )


def test_differences_go_by_name_whatever_the_order() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}
    after = {"spec": {"containers": [{"name": "b", "image": "b:2"}, {"name": "a", "image": "a:1", "tty": True}]}}
    assert differences(before, after) == ["containers[b].image: b:1 -> b:2", "containers[a].tty: (none) -> True"]


def test_differences_hide_passwords_and_leave_out_the_hash() -> None:
    def template(value: str, hashed: str) -> dict[str, Any]:
        env = [{"name": "DB_PASSWORD", "value": value}, {"name": "MODE", "value": value}]
        labels = {"pod-template-hash": hashed}
        return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "env": env}]}}

    assert differences(template("one", "x"), template("two", "y")) == [
        "containers[a].env[DB_PASSWORD].value: <hidden> -> <hidden>",
        "containers[a].env[MODE].value: one -> two",
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert differences(value, value) == []


@given(_JSON)
def test_hiding_literals_changes_nothing_else(value: Any) -> None:
    assert without_literals(value) == value


def test_a_selector_is_written_as_the_api_takes_it() -> None:
    rules = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "new", "operator": "Exists"},
    ]
    workload = {"spec": {"selector": {"matchLabels": {"app": "web"}, "matchExpressions": rules}}}
    assert selector_of(workload) == "app=web,tier in (a,b),!old,new"
    assert selector_of({"spec": {"selector": {"app": "web"}}}) == "app=web"
    assert selector_of({}) == ""


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("250m", 0.25),
        ("2", 2),
        ("1Gi", 2**30),
        ("1500000n", 0.0015),
        ("128974848", 128974848),
        ("1e3", 1000),
        ("", 0),
        ("x", 0),
    ],
)
def test_quantities(written: str, amount: float) -> None:
    assert quantity(written) == pytest.approx(amount)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", datetime(2026, 5, 1, 9, 30, tzinfo=UTC)),
        ("1h30m", datetime(2026, 5, 1, 8, 30, tzinfo=UTC)),
        ("2d", datetime(2026, 4, 29, 10, 0, tzinfo=UTC)),
        ("2026-05-01T08:00:00+02:00", datetime(2026, 5, 1, 6, 0, tzinfo=UTC)),
        ("", None),
    ],
)
def test_since_takes_durations_and_times(text: str, expected: datetime | None) -> None:
    assert grammar.since(text, datetime(2026, 5, 1, 10, 0, tzinfo=UTC)) == expected


@pytest.mark.parametrize("text", ["yesterday", "-5m", "5 minutes", "m", "99999999999d"])
def test_since_refuses_the_rest(text: str) -> None:
    with pytest.raises(ToolError, match="neither a duration"):
        grammar.since(text, datetime(2026, 5, 1, tzinfo=UTC))


@given(st.text())
def test_whatever_passes_as_a_name_is_one_path_step(text: str) -> None:
    try:
        name = grammar.name(text)
    except ToolError:
        return
    path = well_known("Pod").path("shop", name) if name else ""
    assert path in ("", f"/api/v1/namespaces/shop/pods/{name}")


def test_every_kind_goes_by_its_name_plural_and_short_names() -> None:
    for kind in WELL_KNOWN:
        for word in (kind.name, kind.name.lower(), kind.plural, *kind.short, f"{kind.plural}.{kind.group}".rstrip(".")):
            assert next(one for one in WELL_KNOWN if one.goes_by(word)) is kind
