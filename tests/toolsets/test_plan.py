"""The to-do list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.alert import Alert
from agent.deadline import Deadline
from agent.tools import HealthState, ResultStatus, ToolContext, ToolResult, compact_json
from toolsets.configs import PlanConfig
from toolsets.plan import MAX_STEPS, build

PLAN = build("plan", PlanConfig())
CONTEXT = ToolContext(deadline=Deadline.never(), alert=Alert(source="am", id="1", title="t"))


def plan(steps: Any) -> ToolResult:
    return PLAN.tools[0].run({"steps": steps}, CONTEXT)


def test_it_is_one_core_tool_of_few_tokens() -> None:
    (tool,) = PLAN.tools
    assert (tool.name, tool.core) == ("plan", True)
    assert len(compact_json(tool.schema())) / 4 <= 120
    assert PLAN.check(Deadline.never()).state is HealthState.OK


def test_the_list_comes_back_in_order_with_what_was_found() -> None:
    result = plan(
        [
            {"title": "Look at events", "status": "done", "finding": "OOMKilled\nat 02:00"},
            {"title": "Look at memory", "status": "doing"},
            {"title": "Ask the mesh", "status": "dropped"},
            {"title": "Write it down", "status": "pending"},
        ]
    )
    assert result.data.splitlines() == [
        "[x] 1. Look at events: OOMKilled at 02:00",
        "[>] 2. Look at memory",
        "[-] 3. Ask the mesh",
        "[ ] 4. Write it down",
        "2 of 4 left",
    ]


@pytest.mark.parametrize(
    "steps",
    [
        ["one", "two"],
        '["one", "two"]',
        "one\ntwo",
        [{"title": "one", "status": "??"}, {"title": "two", "status": None}],
    ],
)
def test_looser_forms_are_taken_as_pending_steps(steps: Any) -> None:
    assert plan(steps).data == "[ ] 1. one\n[ ] 2. two\n2 of 2 left"


@pytest.mark.parametrize("steps", [None, [], {}, 7, "", [{}], [None], ["x"] * (MAX_STEPS + 1)])
def test_what_is_no_list_of_steps_is_an_error_for_the_model(steps: Any) -> None:
    result = plan(steps)
    assert result.status is ResultStatus.ERROR
    assert result.error


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["title", "status", "finding"]), inner)
        ),
        max_leaves=8,
    )
)
def test_nothing_a_model_sends_breaks_it(steps: Any) -> None:
    assert plan(steps).status in (ResultStatus.SUCCESS, ResultStatus.ERROR)
