"""GitHub's issue search, for queries people write: it lags and shows 1,000 hits, so no watermark comes from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent.deadline import Deadline
from agent.errors import Permanent, Transient
from sources.github.client import GitHubApi
from sources.github.paging import PAGE

MAX_HITS = 1_000  # the search shows no more, however many there are
_KIND = re.compile(r"(?<!\S)(?:is|type):(?:issue|pr)\b", re.IGNORECASE)
_OR = re.compile(r"(?<!\S)OR(?!\S)")
_STATE = re.compile(r"(?<!\S)-?(?:is:(?:open|closed)|state:)", re.IGNORECASE)


def full_query(query: str, repositories: Iterable[str], labels: Iterable[str]) -> str:
    """The query for issues of these repositories; open ones when it says nothing of the state.

    An empty query finds what has the labels.
    """
    words = [query.strip() or " ".join(f'label:"{label}"' for label in labels)]
    if _OR.search(query):
        words = [f"({query.strip()})"]  # else what follows narrows the last alternative only
    if not _KIND.search(query):
        words.append("is:issue")
    if not _STATE.search(query):
        words.append("is:open")
    return " ".join(filter(None, [*words, *(f"repo:{name}" for name in repositories)]))


def hits(api: GitHubApi, query: str, deadline: Deadline) -> Iterator[list[object]]:
    """What it finds, newest first, in pages. Raises at the end what kept it from showing all."""
    seen: set[str] = set()
    cut_short, total = False, 0
    for page in range(1, MAX_HITS // PAGE + 1):
        params = {"q": query, "sort": "created", "order": "desc", "per_page": str(PAGE), "page": str(page)}
        body = api.get("/search/issues", params, deadline=deadline).json()
        items = body.get("items") if isinstance(body, dict) else None
        if not isinstance(items, list):
            raise Transient("github search: a 200 without a list of items")
        cut_short |= body.get("incomplete_results") is True
        total = body["total_count"] if isinstance(body.get("total_count"), int) else len(items)
        yield [item for item in items if _fresh(item, seen)]
        if len(items) < PAGE:
            break
    if cut_short:
        raise Transient("github search: ran out of time (incomplete_results), so some issues may be missing")
    if total > MAX_HITS:
        raise Permanent(f"github search: {total} issues fit and only {MAX_HITS} are shown; narrow the query")


def _fresh(item: object, seen: set[str]) -> bool:
    native = str(item.get("id")) if isinstance(item, dict) else ""
    known = bool(native) and native in seen
    seen.add(native)
    return not known
