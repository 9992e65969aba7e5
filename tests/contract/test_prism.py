"""Every request our adapters send, against the Prism mock server over the vendors' specs: a second opinion."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import requests

from tests.sources.jira.test_specs import everything_jira_is_asked
from tests.sources.opsgenie.test_specs import everything_jsm_ops_is_asked, everything_opsgenie_is_asked
from tests.sources.test_specs import everything_alertmanager_is_asked, everything_pagerduty_is_asked
from tests.support.http_server import Reply, Request
from tests.support.shared import shared_dir, shared_file

PRISM = os.environ.get("PRISM") or shutil.which("prism") or ""
pytestmark = [
    pytest.mark.contract,
    pytest.mark.skipif(shared_dir() is None, reason="needs the vendors' specs: set ROOTCAUSED_SHARED"),
    pytest.mark.skipif(not PRISM, reason="needs Prism: make test-contract installs it from npm"),
]
HOP = {"host", "content-length", "connection", "accept-encoding", "transfer-encoding"}


@dataclass(frozen=True)
class Vendor:
    """`covers` says which of the requests the spec is about, and `base` what its paths leave out: the derived specs
    are parts of the vendors' own."""

    spec: str
    asked: Callable[[], list[tuple[Request, Reply]]]
    covers: Callable[[Request], bool] = lambda request: True
    base: str = ""


VENDORS = {
    "pagerduty": Vendor(
        "specs/pagerduty/incidents-subset.prism.json",
        lambda: everything_pagerduty_is_asked(account_token=False),
        lambda request: request.path.startswith("/incidents"),
    ),
    "alertmanager": Vendor("specs/alertmanager/openapi.prism.yaml", everything_alertmanager_is_asked),
    "jira": Vendor(
        "specs/jira/platform-v3-subset.prism.json",
        everything_jira_is_asked,
        lambda request: request.path.startswith("/rest/api/3/"),
    ),
    "opsgenie": Vendor("specs/opsgenie/alerts-subset.prism.json", everything_opsgenie_is_asked),
    "jsm_ops": Vendor("specs/opsgenie/jsm-ops-alerts.transcribed.json", everything_jsm_ops_is_asked, base="/jsm/ops"),
}


@contextmanager
def mock(spec: Path) -> Iterator[str]:
    """A mock server over a spec that reports what a request violates; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [PRISM, "mock", str(spec), "-h", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None, "the mock server ended"
            assert time.monotonic() < deadline, "the mock server did not start"
            time.sleep(0.1)
        else:
            return


def violations(address: str, request: Request) -> str:
    """What the mock server finds wrong with a request, "" for nothing."""
    headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
    query = [(name, value) for name, values in request.query.items() for value in values]
    reply = requests.request(
        request.method, address + request.path, params=query, headers=headers, data=request.body, timeout=30
    )
    found = reply.headers.get("sl-violations", "")
    if '"location":["request"' not in found:  # the examples it answers with violate the specs now and then
        found = ""
    unmatched = reply.status_code in (404, 405, 406) and "errors#" in reply.text
    return found or (reply.text[:300] if unmatched else "")


def shape(request: Request) -> tuple[str, str, tuple[str, ...]]:
    """Requests that differ in an id only are one."""
    return request.method, re.sub(r"/[^/]*\d[^/]*", "/#", request.path), tuple(sorted(request.query))


@pytest.mark.parametrize("name", VENDORS)
def test_no_request_violates_the_vendor_s_spec(name: str) -> None:
    vendor = VENDORS[name]
    asked = [
        replace(request, path=re.sub(f"^{vendor.base}", "", request.path))
        for request, _ in vendor.asked()
        if vendor.covers(request)
    ]
    asked = list({shape(request): request for request in asked}.values())
    assert len({(request.method, request.path) for request in asked}) >= 2
    with mock(shared_file(vendor.spec)) as address:
        found = {f"{request.method} {request.path}": violations(address, request) for request in asked}
    assert {place: words for place, words in found.items() if words} == {}


def test_the_mock_server_refuses_planted_faults() -> None:
    note = next(
        request for request, _ in everything_pagerduty_is_asked(account_token=False) if request.method == "POST"
    )
    unwrapped = replace(note, body=b'{"content": "x"}')
    with mock(shared_file(VENDORS["pagerduty"].spec)) as address:
        assert not violations(address, note)
        assert "note" in violations(address, unwrapped)
