"""The rules analyst: a `Model` that needs no language model, for when there is none or all of them fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent.deadline import Deadline
from agent.model import Message, Reply, ToolCall, ToolSchema, Usage
from agent.rules.draft import write_draft
from agent.rules.investigate import Planned, next_calls
from agent.rules.mechanisms.catalog import ALL
from agent.rules.mechanisms.port import Mechanism, category
from agent.rules.observe import acts_in, observe
from agent.rules.prose import as_prose
from agent.rules.scene import Scene
from agent.rules.scoring import Scored, judge, weigh
from agent.rules.subject import read_subject
from agent.rules.toolbox import REPORT, Act, open_toolbox
from agent.rules.transcript import CALL_ID_PREFIX, read_transcript
from agent.tools import compact_json

WINDOW_TOKENS = 100_000_000  # it reads text, not tokens; the loop need never compact for it
NO_TIME_SECONDS = 5.0  # less than this is kept for the answer
RESULT_TOKENS = 1_000_000  # of one result: a loop without a language model has no reason to cut at less


class RulesAnalyst:
    """A pure function of the messages: it can take over in the middle of a language model's conversation, and a
    resumed run gives the same answer. Raises nothing and costs nothing."""

    name = "rules"
    window_tokens = WINDOW_TOKENS

    def __init__(self, mechanisms: Iterable[Mechanism] = ALL) -> None:
        self._mechanisms = tuple(mechanisms)

    def suspects(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> list[tuple[str, str]]:
        """Component and category of every hypothesis that stands, the likeliest first: for measuring."""
        scene, scored, _ = self._seen(messages, tools)
        verdict = judge(scene, scored)
        ranked = [*([verdict.best] if verdict.best else []), *(one for one in scored if one.points > 0)]
        found = (one.hypothesis for one in ranked)
        return list(dict.fromkeys((h.component.name, category(h, h.mechanism.account(h, scene))) for h in found))

    def _seen(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema]
    ) -> tuple[Scene, tuple[Scored, ...], dict[str, Act]]:
        transcript = read_transcript(messages)
        acts = acts_in(transcript.readings, [str((tool.get("function") or {}).get("name", "")) for tool in tools])
        scene = Scene(read_subject(transcript.alert), observe(transcript.readings, acts), transcript.readings)
        return scene, weigh(scene, self._mechanisms), acts

    def reply(self, messages: Sequence[Message], tools: Sequence[ToolSchema], *, deadline: Deadline) -> Reply:
        transcript = read_transcript(messages)
        scene, scored, acts = self._seen(messages, tools)
        toolbox = open_toolbox(tools, hint=f"{scene.subject.cluster}\n{scene.subject.title}")
        may_ask = bool(tools) and deadline.remaining > NO_TIME_SECONDS
        if may_ask and (calls := next_calls(scene, toolbox, transcript, scored)):
            return _asking(calls, transcript.calls)
        draft = write_draft(scene, judge(scene, scored), toolbox, acts)
        if not toolbox.can_report:
            return _answer(as_prose(draft))
        body = draft.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return _asking([Planned(tool=REPORT, arguments=body)], transcript.calls)


def _asking(calls: Sequence[Planned], already: int) -> Reply:
    """Ids go on from those of earlier turns, so that no two calls of a run share one."""
    made = tuple(
        ToolCall(id=f"{CALL_ID_PREFIX}{already + number}", name=call.tool, arguments=compact_json(call.arguments))
        for number, call in enumerate(calls, start=1)
    )
    tool_calls: list[dict[str, Any]] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in made
    ]
    message: Message = {"role": "assistant", "content": None, "tool_calls": tool_calls}
    return Reply(message=message, calls=made, finish="tool_calls", usage=Usage(cost_usd=0.0), model="rules")


def _answer(text: str) -> Reply:
    message: Message = {"role": "assistant", "content": text}
    return Reply(message=message, text=text, finish="stop", usage=Usage(cost_usd=0.0), model="rules")
