"""Comments on a Jira issue: whose they are, finding ours, writing and editing, internal in service projects."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent.alert import Alert, parse_time
from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.http import Response
from agent.report import Report
from sources.jira.client import JiraApi, user_id
from sources.jira.config import JiraConfig
from sources.jira.document import plain_value, text_of
from sources.port import MARKER_PREFIX, Receipt
from sources.render.adf import adf, adf_code
from sources.render.wiki import wiki

PAGE = 100
MIN_CHARS = 1_000  # figures and marker need this much
MAX_PAGES = 60  # an issue takes 5,000 comments
MAX_COMMENTS_READ = 20  # of other people, the newest
# Jira Service Management: without this property the customer reads the comment and is mailed it.
PROPERTY = "sd.public.comment"
INTERNAL = {"key": PROPERTY, "value": {"internal": True}}
_TOO_LONG = re.compile(r"too long|exceeds the (?:allowed|maximum)|CONTENT_LIMIT_EXCEEDED", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a report goes: an issue, our earlier comment on it, and whether customers must not see it."""

    alert: Alert
    previous: Receipt | None
    internal: bool


class Comments:
    """The comments one user reads and writes."""

    def __init__(self, api: JiraApi, config: JiraConfig) -> None:
        self._api = api
        self._config = config

    def find(self, alert: Alert, deadline: Deadline) -> Receipt | None:
        """Our newest comment: the author is us and a line of it is the marker, so that a quoted marker is not ours."""
        me = self._api.me(deadline)
        for page in self._pages(alert.id, deadline):
            if ours := [comment for comment in page if user_id(comment.get("author")) == me and marked(comment)]:
                newest = max(ours, key=_created)
                return _receipt(alert, str(newest.get("id")), marked(newest))
        return None

    def publish(self, alert: Alert, report: Report, previous: Receipt | None, deadline: Deadline) -> Receipt:
        """Edit `previous`, else add. A comment that someone deleted meanwhile is added again."""
        self._api.me(deadline)  # first, because a comment we could not find again would be written twice
        place = _Place(alert, previous, self._must_be_internal(alert.id, deadline))
        response = self._written(place, report, deadline)
        self._refuse_refusals(place, response)
        body = self._api.checked("POST", response).json()
        native = body.get("id") if isinstance(body, dict) else None
        if not isinstance(native, str) or not native:
            raise Transient("jira comment: a reply without an id")  # it may be there, so the next try looks first
        if place.internal and body.get("jsdPublic") is True:
            self._withdraw(alert.id, native, deadline)
        return _receipt(alert, native, report.run.investigation)

    def of_others(self, native: str, deadline: Deadline) -> list[tuple[str, str, str]]:
        """(time, author, text) of the newest comments that are not ours, oldest first."""
        me = self._api.me(deadline)
        newest = next(self._pages(native, deadline), [])
        others = [c for c in newest if not (user_id(c.get("author")) == me and marked(c)) and text_of(c.get("body"))]
        others = sorted(others, key=_created)[-MAX_COMMENTS_READ:]
        return [(str(c.get("created")), plain_value(c.get("author")), text_of(c.get("body"))) for c in others]

    def _pages(self, native: str, deadline: Deadline) -> Iterator[list[dict[str, Any]]]:
        """All comments, newest first. What is added meanwhile only repeats some."""
        start = 0
        for _ in range(MAX_PAGES):
            params = {"orderBy": "-created", "startAt": start, "maxResults": PAGE}
            body = self._api.get(f"{issue_path(native)}/comment", params, deadline=deadline).json()
            comments = body.get("comments") if isinstance(body, dict) else None
            if not isinstance(comments, list):
                raise Transient("jira comments: a 200 without a list of comments")
            yield [comment for comment in comments if isinstance(comment, dict)]
            start += len(comments)
            total = body.get("total")
            if not comments or (isinstance(total, int) and start >= total):
                return

    def _must_be_internal(self, native: str, deadline: Deadline) -> bool:
        """Whether the issue is in a service project now; what does not say so may be one."""
        if self._config.public_comments:
            return False
        body = self._api.get(issue_path(native), {"fields": "project"}, deadline=deadline).json()
        fields = body.get("fields") if isinstance(body, dict) else None
        project = fields.get("project") if isinstance(fields, dict) else None
        if not isinstance(project, dict):
            raise Transient("jira issue: a 200 without a project")
        return project.get("projectTypeKey") not in ("software", "business", "product_discovery")

    def _written(self, place: _Place, report: Report, deadline: Deadline) -> Response:
        """Sent once, and again only after Jira said no: half as long, then on Cloud in the plainest form."""
        limit = self._config.max_comment_chars
        cloud = self._api.cloud(deadline)
        response = self._sent(place, adf(report, limit) if cloud else wiki(report, limit), deadline)
        if response.status in (400, 413) and _TOO_LONG.search(response.text):
            limit = max(limit // 2, MIN_CHARS)
            response = self._sent(place, adf(report, limit) if cloud else wiki(report, limit), deadline)
        if cloud and _document_refused(response):
            response = self._sent(place, adf_code(report, limit), deadline)
        return response

    def _sent(self, place: _Place, body: object, deadline: Deadline) -> Response:
        payload = {"body": body, **({"properties": [INTERNAL]} if place.internal else {})}
        comments = f"{issue_path(place.alert.id)}/comment"
        if place.previous is not None:
            path = f"{comments}/{urllib.parse.quote(place.previous.id, safe='')}"
            response = self._api.send("PUT", path, payload=payload, deadline=deadline)
            if response.status != 404:
                return response
        return self._api.send("POST", comments, payload=payload, deadline=deadline)

    def _refuse_refusals(self, place: _Place, response: Response) -> None:
        """What Jira's own words leave unsaid. Raises `Permanent`; never writes for the customer instead."""
        if _TOO_LONG.search(response.text):
            return
        try:
            self._api.checked("POST", response)
        except Permanent as error:
            if response.status == 413:
                raise Permanent(f"{error}: the issue takes no more comments") from error
            if place.internal and response.status in (400, 403):
                raise Permanent(
                    f"{error}: in a service project reports are internal comments, and Jira refused one. Nothing was"
                    " shown to the customer; make our user an agent of the project, or set public_comments"
                ) from error
            raise

    def _withdraw(self, native: str, comment: str, deadline: Deadline) -> None:
        """Jira took the comment and made it public all the same."""
        path = f"{issue_path(native)}/comment/{urllib.parse.quote(comment, safe='')}"
        try:
            self._api.checked("DELETE", self._api.send("DELETE", path, deadline=deadline))
            then = "it was deleted again"
        except RootcausedError as error:
            then = f"DELETE IT BY HAND: {error}"
        raise Permanent(f"jira comment {comment}: asked to be internal, but Jira showed it to the customer; {then}")


def issue_path(native: str) -> str:
    return f"/issue/{urllib.parse.quote(native, safe='')}"


def marked(comment: dict[str, Any]) -> str:
    """The investigation named by the marker line; "" when there is none."""
    for line in reversed(text_of(comment.get("body")).splitlines()):
        if line.strip().startswith(MARKER_PREFIX):
            return line.strip().removeprefix(MARKER_PREFIX)
    return ""


def _document_refused(response: Response) -> bool:
    """A 400 in Jira's own form, so not a gateway's, and about the comment, not about its property."""
    if response.status != 400 or _TOO_LONG.search(response.text) or PROPERTY in response.text:
        return False
    try:
        body: object = response.json()
    except Transient:
        return False
    return isinstance(body, dict) and bool(body.get("errorMessages") or body.get("errors"))


def _receipt(alert: Alert, native: str, investigation: str) -> Receipt:
    url = f"{alert.url}?focusedCommentId={urllib.parse.quote(native, safe='')}" if alert.url else ""
    return Receipt(id=native, url=url, investigation=investigation)


def _created(comment: dict[str, Any]) -> float:
    at = parse_time(comment.get("created"))
    return at.timestamp() if at else 0.0
