"""A small Kubernetes API server over real HTTP: objects at the usual paths, selectors, pages, logs, refusals."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

Object = dict[str, Any]
LIST_KINDS = {"pods": "PodList", "secrets": "SecretList", "events": "EventList"}


@dataclass(slots=True)
class KubeServer:
    """`objects` by path (`/api/v1/namespaces/shop/pods/web-1`); lists are made of them, cluster-wide too.

    `logs` by `namespace/pod/container` (`…/previous` for the run before); `refused` maps a path's beginning to a
    status and message; `documents` are served as they stand; `tables` gives columns to a plural.
    """

    objects: dict[str, Object] = field(default_factory=dict)
    documents: dict[str, Any] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    expire_after_pages: int | None = None
    drop_next: int = 0  # requests to hang up on without an answer
    url: str = ""

    def add(self, root: str, plural: str, *objects: Object) -> None:
        """Objects under an API root (`/api/v1`, `/apis/apps/v1`)."""
        for thing in objects:
            metadata = thing["metadata"]
            where = f"/namespaces/{metadata['namespace']}" if metadata.get("namespace") else ""
            self.objects[f"{root}{where}/{plural}/{metadata['name']}"] = thing

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.requests]

    def answer(self, path: str, params: dict[str, str], accept: str) -> tuple[int, Any]:
        for prefix, (status, message) in self.refused.items():
            if path.startswith(prefix):
                return status, _status(status, message)
        if path in self.documents:
            return 200, self.documents[path]
        if path in self.objects:
            return 200, self.objects[path]
        if path.endswith("/log"):
            return self._log(path, params)
        plural = path.rpartition("/")[2]
        if plural in {one.split("/")[-2] for one in self.objects}:
            return self._list(path, plural, params, accept)
        return 404, _status(404, f'{plural} "{path}" not found')

    def _lists(self, path: str, one: str) -> bool:
        """Whether the object's path lies under the list's, with or without a namespace step."""
        root, _, plural = path.rpartition("/")
        pattern = rf"{re.escape(root)}(/namespaces/[^/]+)?/{re.escape(plural)}/[^/]+"
        return re.fullmatch(pattern, one) is not None

    def _list(self, path: str, plural: str, params: dict[str, str], accept: str) -> tuple[int, Any]:
        items = [thing for one, thing in self.objects.items() if self._lists(path, one)]
        items = [item for item in items if _selected(item, params)]
        start, limit = int(params.get("continue", "0")), int(params.get("limit", "500"))
        if self.expire_after_pages is not None and start >= self.expire_after_pages * limit > 0:
            return 410, _status(410, "The provided continue parameter is too old")
        page, rest = items[start : start + limit], len(items) - start - limit
        metadata = {"continue": str(start + limit), "remainingItemCount": rest} if rest > 0 else {}
        if plural in self.tables and "as=Table" in accept:
            return 200, self._table(plural, page, metadata)
        plain = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in page]
        return 200, {"kind": LIST_KINDS.get(plural, "List"), "apiVersion": "v1", "metadata": metadata, "items": plain}

    def _table(self, plural: str, page: list[Object], metadata: Object) -> Object:
        columns = self.tables[plural]
        rows = [
            {
                "cells": [item["metadata"]["name"], *(str(item.get("cells", {}).get(c, "")) for c in columns)],
                "object": item,
            }
            for item in page
        ]
        definitions = [{"name": name} for name in ["Name", *columns]]
        return {"kind": "Table", "metadata": metadata, "columnDefinitions": definitions, "rows": rows}

    def _log(self, path: str, params: dict[str, str]) -> tuple[int, Any]:
        _, _, _, _, namespace, _, pod, _ = path.split("/")
        container = params["container"]
        key = f"{namespace}/{pod}/{container}" + ("/previous" if params.get("previous") == "true" else "")
        if key not in self.logs:
            message = f'previous terminated container "{container}" in pod "{pod}" not found'
            return 400, _status(400, message)
        lines = self.logs[key].splitlines()
        if since := params.get("sinceTime"):
            lines = [line for line in lines if line[:20] >= since[:19]]
        return 200, "".join(f"{line}\n" for line in lines[-int(params.get("tailLines", "100000")) :])


def _status(code: int, message: str) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


def _selected(item: Object, params: dict[str, str]) -> bool:
    labels = item["metadata"].get("labels", {})
    for part in re.split(r",(?![^(]*\))", params.get("labelSelector", "")):
        if part and not _label_matches(labels, part):
            return False
    for part in filter(None, params.get("fieldSelector", "").split(",")):
        path, _, wanted = part.partition("=")
        value: Any = item
        for step in path.split("."):
            value = value.get(step, "") if isinstance(value, dict) else ""
        if value != wanted:
            return False
    return True


def _label_matches(labels: dict[str, str], part: str) -> bool:
    if match := re.fullmatch(r"(\S+) (in|notin) \((.*)\)", part):
        return (labels.get(match[1]) in match[3].split(",")) is (match[2] == "in")
    if part.startswith("!"):
        return part[1:] not in labels
    if "!=" in part:
        key, _, value = part.partition("!=")
        return labels.get(key) != value
    key, _, value = part.partition("=")
    return labels.get(key) == value if "=" in part else key in labels


@contextmanager
def serving(kube: KubeServer) -> Iterator[KubeServer]:
    """Serve on a free loopback port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # one packet an answer: two would wait for each other's acknowledgement

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            params = dict(parse_qsl(parts.query))
            kube.requests.append((self.command, parts.path, params, dict(self.headers)))
            if kube.drop_next:
                kube.drop_next -= 1
                self.close_connection = True
                return
            status, body = kube.answer(unquote(parts.path), params, self.headers.get("Accept", ""))
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the base class's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    kube.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield kube
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
