"""The cluster's HTTP API: GET alone, pages joined, secrets emptied on arrival, refusals put in words for the model."""

from __future__ import annotations

import difflib
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from agent.alert import clean
from agent.deadline import Clock, Deadline
from agent.errors import Permanent, ToolError, Transient
from agent.http import Http, Response
from toolsets.kubernetes.fields import Object, name_of, namespace_of
from toolsets.kubernetes.kinds import Kind, Kinds, well_known

PAGE_OBJECTS = 500
MAX_OBJECTS = 2_000
JSON = "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
QUICK_SECONDS = 1.0
HIDDEN = "<hidden>"


class ApiError(ToolError):
    """Raised when the API answers with an error, or not at all: then `status` is 0. `path` is what was asked."""

    def __init__(self, message: str, *, status: int, path: str) -> None:
        super().__init__(message, status=status, path=path)
        self.status, self.path = status, path


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Objects of one kind. `total` is None when there are more and the API did not say how many.

    `table` is the server's own table (`columnDefinitions`, `rows`), where it was asked for and given.
    """

    items: list[Object]
    complete: bool = True
    total: int | None = None
    table: Object | None = None

    @property
    def note(self) -> str:
        """`PARTIAL: 2000 of 7312 …`, or "" when nothing is missing."""
        if self.complete:
            return ""
        return f"PARTIAL: {len(self.items)} of {self.total or 'more'}; narrow it down by namespace or selector\n"


@dataclass(slots=True)
class Cluster:
    """One cluster. `namespaces` is the allow-list; empty allows all."""

    http: Http
    namespaces: frozenset[str] = frozenset()
    clock: Clock = time.monotonic
    kinds: Kinds = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = Kinds(self.get, self.clock)

    def get(self, path: str, deadline: Deadline, params: dict[str, str] | None = None, *, accept: str = JSON) -> Any:
        """The JSON at `path`. Raises `ApiError`."""
        response = self._ask(path, params or {}, accept, deadline)
        try:
            return _without_secrets(response.json())
        except Transient as error:
            raise ApiError("the API answered with something that is not JSON", status=0, path=path) from error

    def text(self, path: str, deadline: Deadline, params: dict[str, str]) -> str:
        """The text at `path`. Raises like `get`."""
        return self._ask(path, params, "*/*", deadline).text

    def _ask(self, path: str, params: dict[str, str], accept: str, deadline: Deadline) -> Response:
        asked = path + (f"?{urlencode(params)}" if params else "")
        try:
            response = self._request(path, params, accept, deadline)
        except (Transient, Permanent) as error:
            raise ApiError(f"no answer from the cluster's API: {error}", status=0, path=asked) from error
        if response.status != 200:
            raise ApiError(_words(response), status=response.status, path=asked)
        return response

    def _request(self, path: str, params: dict[str, str], accept: str, deadline: Deadline) -> Response:
        """One GET; once more when it fails at once, as when the server has just closed an idle connection."""
        headers = {"Accept": accept}
        started = self.clock()
        try:
            return self.http.request("GET", path, params=params, headers=headers, deadline=deadline)
        except Transient:
            if self.clock() - started > QUICK_SECONDS:
                raise
        return self.http.request("GET", path, params=params, headers=headers, deadline=deadline)

    def allow(self, namespace: str) -> None:
        """Raises `ToolError` for a namespace that is not on the allow-list."""
        if self.namespaces and namespace not in self.namespaces:
            raise ToolError(f"namespace {namespace!r} is not open to this tool; open are: {_joined(self.namespaces)}")

    def list(
        self,
        kind: Kind,
        namespace: str,
        deadline: Deadline,
        *,
        selector: str = "",
        fields: str = "",
        table: bool = False,
    ) -> Listing:
        """Objects of one namespace, or of all that are open. Raises like `get`."""
        params = {"limit": str(PAGE_OBJECTS)}
        if selector:
            params["labelSelector"] = selector
        if fields:
            params["fieldSelector"] = fields
        listings = [
            self._pages(kind.path(scope), dict(params), TABLE if table else JSON, deadline)
            for scope in self._scopes(kind, namespace)
        ]
        return self._visible(kind, _merged(listings))

    def _scopes(self, kind: Kind, namespace: str) -> Iterable[str]:
        if not kind.namespaced:
            return [""]
        if namespace:
            self.allow(namespace)
            return [namespace]
        return sorted(self.namespaces) or [""]

    def _visible(self, kind: Kind, listing: Listing) -> Listing:
        """Namespaces that are not open are not listed either."""
        if kind.name != "Namespace" or not self.namespaces:
            return listing
        return Listing(items=[item for item in listing.items if name_of(item) in self.namespaces])

    def _pages(self, path: str, params: dict[str, str], accept: str, deadline: Deadline) -> Listing:
        items: list[Object] = []
        table: Object | None = None
        while True:
            try:
                page = self.get(path, deadline, params, accept=accept)
            except ApiError as refusal:
                if refusal.status == 410 and items:  # the list's snapshot has expired between two pages
                    return Listing(items=items, complete=False, table=table)
                raise
            if page.get("kind") == "Table":
                rows = page.get("rows") or []
                table = {**page, "rows": [*(table["rows"] if table else []), *rows]}
                items += [row.get("object") or {} for row in rows]
            else:
                items += page.get("items") or []
            rest = page.get("metadata") or {}
            if not rest.get("continue"):
                return Listing(items=items, table=table)
            if len(items) >= MAX_OBJECTS:
                remaining = rest.get("remainingItemCount")
                return Listing(
                    items=items, complete=False, total=len(items) + remaining if remaining else None, table=table
                )
            params["continue"] = rest["continue"]

    def object(self, kind: Kind, namespace: str, name: str, deadline: Deadline) -> Object:
        """One object. Without a namespace, the one of that name wherever it is. Raises `ApiError`, `ToolError`."""
        if kind.namespaced and not namespace:
            return self._anywhere(kind, name, deadline)
        if kind.namespaced or kind.name == "Namespace":
            self.allow(namespace if kind.namespaced else name)
        try:
            found: Object = self.get(kind.path(namespace, name), deadline)
        except ApiError as refusal:
            if refusal.status != 404:
                raise
            near = self._near(kind, namespace, name, deadline)
            raise ApiError(f"{refusal}; {near}", status=404, path=refusal.path) from refusal
        return found

    def _anywhere(self, kind: Kind, name: str, deadline: Deadline) -> Object:
        listing = self.list(kind, "", deadline, fields=f"metadata.name={name}")
        named = [item for item in listing.items if name_of(item) == name]
        if not named:
            near = self._near(kind, "", name, deadline)
            raise ApiError(f"{kind.shown} {name!r} not found in any namespace; {near}", status=404, path=kind.path())
        if len(named) > 1:
            places = _joined(namespace_of(item) for item in named)
            raise ToolError(f"{kind.shown} {name!r} is in several namespaces: {places}; give namespace")
        return named[0]

    def _near(self, kind: Kind, namespace: str, name: str, deadline: Deadline) -> str:
        """What exists instead, in words."""
        try:
            items = self.list(kind, namespace, deadline).items
        except ToolError:
            return "the names that exist can't be listed"
        if not items and namespace and kind.namespaced:
            return f"there are no {kind.shown} in namespace {namespace!r}{self.missing_namespace(namespace, deadline)}"
        names = {name_of(item): f"{namespace_of(item)}/{name_of(item)}".lstrip("/") for item in items}
        alike = [other for other in names if name in other or other in name]
        near = dict.fromkeys([*alike, *difflib.get_close_matches(name, names, n=8, cutoff=0.5)])
        chosen = list(near)[:8] or sorted(names)[:20]
        return (
            f"there are: {', '.join(names[one] for one in chosen)}" if chosen else f"there are no {kind.shown} at all"
        )

    def missing_namespace(self, namespace: str, deadline: Deadline) -> str:
        """ ", and the namespace does not exist; …" when that is so; listing in a missing one is no error to the API."""
        kind = well_known("Namespace")
        try:
            self.get(kind.path(name=namespace), deadline)
        except ApiError as refusal:
            if refusal.status == 404:
                return f", and there is no such namespace; {self._near(kind, '', namespace, deadline)}"
        except ToolError:
            pass
        return ""


def kubectl(*words: str) -> str:
    """The command that shows a person the same."""
    return shlex.join(["kubectl", *(word for word in words if word)])


def in_namespace(kind: Kind, namespace: str) -> tuple[str, ...]:
    """The namespace flags of a kubectl command."""
    if not kind.namespaced:
        return ()
    return ("-n", namespace) if namespace else ("--all-namespaces",)


def _merged(listings: list[Listing]) -> Listing:
    if len(listings) == 1:
        return listings[0]
    tables = [listing.table for listing in listings if listing.table]
    rows = [row for table in tables for row in table["rows"]]
    return Listing(
        items=[item for listing in listings for item in listing.items],
        complete=all(listing.complete for listing in listings),
        table={**tables[0], "rows": rows} if tables else None,
    )


def _without_secrets(document: Any) -> Any:
    """The document with the values of every Secret in it emptied: here, so that no tool can show one."""
    if isinstance(document, dict):
        match document.get("kind"):
            case "Secret":
                return _emptied(document)
            case "SecretList":
                return {**document, "items": [_emptied(item) for item in document.get("items") or []]}
    return document


def _emptied(secret: Object) -> Object:
    kept = {key: value for key, value in secret.items() if key not in ("data", "stringData")}
    keys = {**(secret.get("data") or {}), **(secret.get("stringData") or {})}
    metadata = {key: value for key, value in (secret.get("metadata") or {}).items() if key != "annotations"}
    return {**kept, "metadata": metadata, "data": dict.fromkeys(keys, HIDDEN)}


def _words(response: Response) -> str:
    """The API's own message, and what follows from it."""
    message = _api_message(response)
    match response.status:
        case 401:
            return f"401: the cluster does not accept our credentials ({message}); only the operator can change that"
        case 403 if "/namespaces/" not in response.url:
            return f"403: {message}; this permission is missing for the whole cluster: give a namespace, or do without"
        case 403:
            return f"403: {message}; this permission is missing, so go on without it"
        case 404:
            return f"404: {message}"
        case 429 | 500 | 502 | 503 | 504:
            return f"{response.status}: {message}; trying once more may help"
        case status:
            return f"{status}: {message}"


def _api_message(response: Response) -> str:
    try:
        status = response.json()
    except Transient:
        status = None
    words = str(status.get("message") or "") if isinstance(status, dict) else ""
    words = words or response.text[:400]
    for secret in response.hide:
        words = words.replace(secret, "<redacted>")
    return " ".join(clean(words).split())[:600] or "no message"


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))
