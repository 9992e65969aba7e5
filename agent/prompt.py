"""The first messages of a run: who the model is and how it works, then the alert, framed as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from agent.case import Case
from agent.model import Message
from agent.plain import plain, shorten
from agent.report import Related
from agent.runbooks import Runbook
from agent.spill import BYTES_PER_TOKEN
from agent.tools import compact_json

MAX_TICKET_CHARS = 12_000
MAX_INSTRUCTIONS_CHARS = 8_000
MAX_PRIOR_CHARS = 600
MAX_RUNBOOK_CHARS = 6_000
ALERT_SHARE = 0.25  # of the window; a longer alert is cut, with a mark
_FRAME = re.compile(r"<(?=/?\s*(?:alert|ticket|prior|runbook|instructions)\b)", re.IGNORECASE)


def first_messages(case: Case, guides: Mapping[str, str], *, now: datetime, window_tokens: int) -> list[Message]:
    """System prompt and alert. `guides` are the instructions of the enabled toolsets by name.

    The system prompt holds nothing of the case, so that providers can cache it.
    """
    room = int(window_tokens * ALERT_SHARE) * BYTES_PER_TOKEN
    ticket = framed(case.redact(plain(case.ticket_context)))
    alert = _alert_json(case, room)
    user = _template("alert.jinja2").render(
        now=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        alert=alert,
        ticket_context=shorten(ticket, max(200, min(MAX_TICKET_CHARS, room - len(alert)))) if ticket else "",
        prior=[_framed_prior(item, case) for item in case.prior],
        runbooks=[_framed_runbook(runbook) for runbook in case.runbooks],
        instructions=shorten(framed(plain(case.instructions)), MAX_INSTRUCTIONS_CHARS),
    )
    system = _template("system.jinja2").render(guides=guides)
    return [{"role": "system", "content": system.strip()}, {"role": "user", "content": user.strip()}]


def framed(text: str) -> str:
    """Text that can't end the frame it stands in."""
    return _FRAME.sub("&lt;", text)


def _framed_prior(item: Related, case: Case) -> Related:
    why = shorten(framed(case.redact(plain(item.why))), MAX_PRIOR_CHARS)
    return item.model_copy(update={"why": why, "id": framed(plain(item.id))})


def _framed_runbook(runbook: Runbook) -> dict[str, str]:
    text = shorten(framed(plain(runbook.text)), MAX_RUNBOOK_CHARS)
    return {"title": framed(plain(runbook.title)), "name": framed(plain(runbook.name)), "text": text}


def _alert_json(case: Case, room: int) -> str:
    """The alert as JSON in which no `<` stands, cut to the room there is: first the body, then what labels hold."""
    value = case.alert.model_dump(mode="json", exclude={"raw"})
    value = {key: item for key, item in value.items() if item not in ("", None, {})}
    text = compact_json(_clean(value, case))
    if len(text) > room:
        spare = len(text) - len(str(value.get("body", "")))
        value["body"] = _cut(str(value.get("body", "")), max(200, room - spare))
        text = compact_json(_clean(value, case))
    if len(text) > room:
        for name in ("labels", "annotations"):
            value[name] = {key: _cut(str(item), 100) for key, item in list(value.get(name, {}).items())[:30]}
        text = compact_json(_clean(value, case))
    return text.replace("<", "\\u003c")


def _clean(value: object, case: Case) -> object:
    if isinstance(value, dict):
        return {plain(str(key)): _clean(item, case) for key, item in value.items()}
    return case.redact(plain(value)) if isinstance(value, str) else value


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [cut: {len(text)} characters in all]"


@cache
def _template(name: str) -> Template:
    folder = Path(__file__).with_name("prompts")
    environment = Environment(  # noqa: S701  the text is for a model, not for a browser
        loader=FileSystemLoader(folder), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(name)
