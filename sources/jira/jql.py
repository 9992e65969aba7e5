"""Works on a person's JQL without changing what it selects: its ORDER BY apart, the rest wrapped and narrowed."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Order never changes an issue's place while we page: a creation time stays, and keys only tell equal times apart.
STABLE_ORDER = "created ASC, key ASC"
_TOKEN = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<order>order\s+by\b)
    |(?P<open>\()|(?P<close>\))
    |(?P<lone>["'])
    |[^\s"'()]+|\s+""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def split_order(jql: str) -> tuple[str, str]:
    """The condition, and what stands after its ORDER BY. Quoted text is left alone.

    Raises `ValueError` when a quote or parenthesis is not closed: wrapped, such a text would select something else.
    """
    depth = 0
    for found in _TOKEN.finditer(jql):
        if found["order"] and not depth:
            return jql[: found.start()].strip(), jql[found.end() :].strip()
        if found["lone"]:
            raise ValueError("a quote in the JQL is not closed")
        depth += bool(found["open"]) - bool(found["close"])
        if depth < 0:
            raise ValueError("a parenthesis in the JQL is closed that was never opened")
    if depth:
        raise ValueError("a parenthesis in the JQL is not closed")
    return jql.strip(), ""


def selection(jql: str, projects: Iterable[str]) -> str:
    """What is ours: the condition of `jql` inside `projects`, in parentheses; "" when neither is given."""
    condition, _ = split_order(jql)
    named = ", ".join(f'"{project}"' for project in projects)
    parts = [condition, f"project in ({named})" if named else ""]
    return " AND ".join(f"({part})" for part in parts if part)


def open_or_recent(selected: str, since: str) -> str:
    """Everything not done, and everything changed `since` in any state. There is no upper bound: an issue that changes
    all the time would never be caught. `since` is epoch milliseconds or relative, as dates are read in the user's zone.
    """
    return f"{selected} AND (statusCategory != Done OR updated >= {since}) ORDER BY {STABLE_ORDER}"
