"""The JSON around what was asked for: `data` and `paging`, or `values` and `links`; either API may send either."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.errors import Transient
from agent.http import Response


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list. `next` holds the parameters of the page after it, None when there is none.

    Only the parameters of the address they send are used, and in place of ours, never added to them: the request
    goes to the configured host whatever the address says.
    """

    items: list[object]
    next: Mapping[str, str] | None = None


def listed(response: Response, what: str) -> Listed:
    """Raises `Transient` for a 200 without a list: rubbish is not "nothing there"."""
    body = response.json()
    items = body if isinstance(body, list) else None
    links: object = None
    if isinstance(body, dict):
        items = next((body[name] for name in ("values", "data") if isinstance(body.get(name), list)), None)
        links = body.get("paging") or body.get("links")
    if items is None:
        raise Transient(f"{what}: a {response.status} without a list")
    address = links.get("next") if isinstance(links, dict) else None
    return Listed(items, _parameters(address) if isinstance(address, str) and address.strip() else None)


def single(response: Response, what: str) -> dict[str, Any]:
    """The one object, with or without `data` around it. Raises `Transient` when there is none."""
    body = response.json()
    inner = body.get("data", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict) or not inner:
        raise Transient(f"{what}: a {response.status} without an object")
    return inner


def _parameters(address: str) -> dict[str, str]:
    try:
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query, keep_blank_values=True))
    except ValueError:
        return {}
