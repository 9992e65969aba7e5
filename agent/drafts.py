"""A draft from what a model handed in: a flawed object, or prose. No flaw may cost the rest of the report."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agent.plain import first_sentence
from agent.report import MAX_HEADLINE_CHARS, Draft
from agent.safeguards import json_object

MAX_BODY_CHARS = 20_000
_ROUNDS = 6


def draft_of(given: Mapping[str, Any]) -> Draft:
    """The draft with everything left out that does not fit its shape."""
    value = copy.deepcopy(dict(given))
    for _ in range(_ROUNDS):
        try:
            return Draft.model_validate(value)
        except ValidationError as error:
            flaws = error.errors(include_url=False, include_context=False)
            # From the back, so that places in a list still hold while items before them go.
            for flaw in sorted(flaws, key=lambda flaw: [str(part).zfill(6) for part in flaw["loc"]], reverse=True):
                _mend(value, flaw["loc"], flaw["type"], flaw.get("input"))
    return Draft.model_validate({key: str(value.get(key) or "") for key in ("headline", "body")})


def draft_of_text(text: str) -> Draft:
    """Prose as a report: the text is its body. A draft that was written as JSON text is read as a draft."""
    if (given := json_object(text)) is not None:
        return draft_of(given)
    return Draft(finding="inconclusive", headline=first_sentence(text, MAX_HEADLINE_CHARS), body=text[:MAX_BODY_CHARS])


def looks_like_draft(text: str) -> bool:
    given = json_object(text)
    return (
        given is not None and "headline" in given and bool({"finding", "body", "evidence", "root_cause"} & given.keys())
    )


def _mend(value: Any, place: tuple[int | str, ...], kind: str, given: Any) -> None:
    """Put right or take out the part at `place`."""
    parents = [value]
    for part in place[:-1]:
        value = _child(value, part)
        if value is None:
            return
        parents.append(value)
    holder, last = parents[-1], place[-1]
    if kind == "missing":  # the item is unusable without it
        if len(place) > 1:
            _remove(parents[-2], place[-2])
        return
    if kind in ("tuple_type", "list_type") and isinstance(given, str | dict) and _child(holder, last) is not None:
        holder[last] = [given]
        return
    _remove(holder, last)


def _child(holder: Any, part: int | str) -> Any:
    if isinstance(holder, dict):
        return holder.get(part)
    if isinstance(holder, list) and isinstance(part, int) and part < len(holder):
        return holder[part]
    return None


def _remove(holder: Any, part: int | str) -> None:
    if isinstance(holder, dict):
        holder.pop(part, None)
    elif isinstance(holder, list) and isinstance(part, int) and part < len(holder):
        del holder[part]
