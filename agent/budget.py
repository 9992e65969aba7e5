"""The ceilings of one run, and whether the next model call still fits under them."""

from __future__ import annotations

from dataclasses import dataclass

from agent.deadline import Deadline
from agent.model import Usage
from agent.report import Stop

OUTPUT_TOKENS = 2_000  # kept back for the answer itself


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Running out is an outcome, not a fault: one last answer is asked for within what is kept back."""

    steps: int = 40  # model calls
    tokens: int = 1_000_000  # input and output, summed over the calls
    cost_usd: float = 5.0
    model_seconds: float = 180.0  # one model call
    tool_seconds: float = 60.0  # one tool call
    answer_seconds: float = 60.0  # kept back for the last answer
    result_tokens: int = 800  # of one tool result, as the model sees it; see the figures q1 and q4 in tests/bench
    turn_tokens: int = 12_000  # of all results of one turn together
    calls_per_turn: int = 32
    parallel_calls: int = 16
    schema_tokens: int = 12_000  # of the toolsets' schemas; past it tools are named, and found with find_tools
    nudges: int = 2  # in a row, for replies that can't be used
    repeats: int = 2  # the same call with the same result; from then on it is not run again
    fruitless_turns: int = 5  # in a row, in which no call could be run


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the run used so far."""

    steps: int
    usage: Usage
    last: Usage  # of the last model call
    fruitless: int


def near(limits: RunLimits, spent: Spent, request_tokens: int, deadline: Deadline, reserve: float) -> Stop | None:
    """The limit that leaves room for one more model call only, which must be the answer."""
    used = spent.usage.input_tokens + spent.usage.output_tokens
    if spent.steps + 1 >= limits.steps or spent.fruitless >= limits.fruitless_turns:
        return Stop.STEP_LIMIT
    if used + 2 * (request_tokens + OUTPUT_TOKENS) > limits.tokens:
        return Stop.TOKEN_LIMIT
    if (spent.usage.cost_usd or 0.0) + 2 * (spent.last.cost_usd or 0.0) >= limits.cost_usd:
        return Stop.COST_LIMIT
    return Stop.TIME_LIMIT if deadline.remaining <= reserve else None


def exhausted(limits: RunLimits, spent: Spent, deadline: Deadline) -> Stop | None:
    """The limit that leaves no room at all."""
    if spent.steps >= limits.steps:
        return Stop.STEP_LIMIT
    if spent.usage.input_tokens + spent.usage.output_tokens >= limits.tokens:
        return Stop.TOKEN_LIMIT
    if (spent.usage.cost_usd or 0.0) >= limits.cost_usd:
        return Stop.COST_LIMIT
    return Stop.TIME_LIMIT if deadline.passed else None
