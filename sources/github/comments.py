"""Comments on an issue: whose they are, finding ours, writing and editing."""

from __future__ import annotations

import re
import urllib.parse
from typing import Any

from agent.deadline import Deadline
from agent.errors import Transient
from agent.http import checked
from agent.report import Report
from sources.github.client import GitHubApi
from sources.github.issues import Ref, login
from sources.github.paging import all_pages
from sources.github.transport import Gone, Invalid
from sources.port import MARKER_PREFIX, Receipt
from sources.render.markdown import markdown

MAX_COMMENTS_READ = 50  # of other people, the newest
_MARKER = re.compile(rf"^<!-- {MARKER_PREFIX}(\S{{1,100}}) -->\s*$", re.MULTILINE)
_TOO_LONG = re.compile(r"too (?:long|large)", re.IGNORECASE)


class Comments:
    """The comments of issues, read and written as one user. `limit` is in characters, as GitHub counts."""

    def __init__(self, api: GitHubApi, limit: int) -> None:
        self._api = api
        self._limit = limit

    def find(self, ref: Ref, deadline: Deadline) -> Receipt | None:
        """Our newest comment: the author is us and a line of it is the marker, so that a quoted marker is not ours."""
        me = self._api.me(deadline)
        ours = [comment for comment in self._all(ref, deadline) if me.is_author(comment) and marked(comment)]
        if not ours:
            return None
        newest = max(ours, key=lambda comment: (str(comment.get("created_at")), str(comment.get("id")).zfill(20)))
        return _receipt(newest)

    def publish(self, ref: Ref, report: Report, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Edit `previous`, else add. A comment that someone deleted meanwhile is added again."""
        self._api.me(deadline)  # first, because a comment we could not find again would be written twice
        if previous is not None:
            native = urllib.parse.quote(previous.id, safe="")
            try:
                return self._written("PATCH", f"/repos/{ref.repository}/issues/comments/{native}", report, deadline)
            except Gone:
                pass
        return self._written("POST", f"{ref.path}/comments", report, deadline)

    def of_others(self, ref: Ref, deadline: Deadline) -> list[str]:
        """What people and other tools wrote, the newest last."""
        me = self._api.me(deadline)
        others = [c for c in self._all(ref, deadline) if c.get("body") and not (marked(c) and me.is_author(c))]
        return [
            f"Comment of {comment.get('created_at')}, by {login(comment.get('user')) or 'a deleted user'}:"
            f"\n{comment['body']}"
            for comment in others[-MAX_COMMENTS_READ:]
        ]

    def _written(self, method: str, path: str, report: Report, deadline: Deadline) -> Receipt:
        """One request; two when the first was refused as too long, which may be because we count otherwise."""
        whole = markdown(report, self._limit)
        try:
            return self._sent(method, path, whole, deadline)
        except Invalid as error:
            shorter = markdown(report, self._limit // 2)
            if shorter == whole or not _TOO_LONG.search(str(error)):
                raise
        return self._sent(method, path, shorter, deadline)

    def _sent(self, method: str, path: str, body: str, deadline: Deadline) -> Receipt:
        """Raises `Transient` on an unreadable reply: the comment may be there, so the next try looks first."""
        response = self._api.write(method, path, {"body": body}, deadline=deadline)
        comment = checked(method, response).json()
        if not isinstance(comment, dict) or not isinstance(comment.get("id"), int):
            raise Transient("github comments: a reply without a comment")
        return _receipt(comment, investigation=marked({"body": body}))

    def _all(self, ref: Ref, deadline: Deadline) -> list[dict[str, Any]]:
        pages = all_pages(self._api, f"{ref.path}/comments", f"github comments of {ref}", deadline)
        return [comment for page in pages for comment in page if isinstance(comment, dict)]


def marked(comment: dict[str, Any]) -> str:
    """The investigation named by the marker line; "" when there is none."""
    found = _MARKER.findall(str(comment.get("body") or ""))
    return found[-1] if found else ""


def _receipt(comment: dict[str, Any], investigation: str = "") -> Receipt:
    url = comment.get("html_url")
    return Receipt(
        id=str(comment.get("id")),
        url=url if isinstance(url, str) else "",
        investigation=investigation or marked(comment),
    )
