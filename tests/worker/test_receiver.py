"""The receiver over real HTTP, with real sources, a real store and no queue."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from agent.errors import ConfigError, Transient
from sources.catalog import build_source
from tests.support.alerts import alert
from tests.support.app_server import chunks, serving, status_of
from tests.support.published import Published
from tests.support.reports import report
from worker.front import Front
from worker.receiver import check_bind, create_app
from worker.record import State
from worker.redis_client import connect
from worker.settings import RedisSettings, ServerSettings, Settings
from worker.store import Store

TOKEN = {"Authorization": "Bearer made-up-webhook-token"}
SECRET = "made-up-signing-secret"


def settings(**changes: Any) -> Settings:
    pagerduty = {"kind": "pagerduty", "token": "t", "from_email": "a@example.com", "url": "http://127.0.0.1:1"}
    return Settings.model_validate(
        {
            "sources": {
                "am": {
                    "kind": "alertmanager",
                    "url": "http://127.0.0.1:1",
                    "webhook_token": "made-up-webhook-token",
                    "write_to": "out",
                },
                "pd": {**pagerduty, "webhook_secrets": [SECRET]},
                "silent": pagerduty,
            },
            "sinks": {"out": {"kind": "file", "path": "/dev/null"}},
            **changes,
        }
    )


def front(redis_url: str, **changes: Any) -> Front:
    made = settings(**changes)
    sources = {name: build_source(name, config) for name, config in made.sources.items()}
    store = Store(connect(redis_url, RedisSettings(timeout_seconds=2)))
    return Front(settings=made, store=store, publisher=Published(), sources=sources)


@contextmanager
def receiver(made: Front, **options: Any) -> Iterator[str]:
    with serving(create_app(made, **options)) as address:
        yield address


@pytest.fixture(scope="module")
def shared(redis_process: Any) -> Iterator[tuple[str, Front]]:
    made = front(redis_process.url)
    with receiver(made) as address:
        yield address, made


@pytest.fixture
def served(shared: tuple[str, Front], redis_url: str) -> tuple[str, Front]:
    """The module's one server, with its database emptied."""
    return shared


def group(**labels: str) -> dict[str, Any]:
    firing = {
        "status": "firing",
        "labels": {"alertname": "Slow", **labels},
        "annotations": {},
        "startsAt": "2031-02-03T04:05:06Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": "0011223344556677",
    }
    return {"version": "4", "groupKey": "k", "status": "firing", "alerts": [firing]}


def test_a_firing_alert_is_recorded_once_and_a_second_peers_copy_is_known(served: tuple[str, Front]) -> None:
    address, made = served
    first = requests.post(f"{address}/webhooks/am", json=group(), headers=TOKEN, timeout=30)
    second = requests.post(f"{address}/webhooks/am", json=group(), headers=TOKEN, timeout=30)
    assert (first.status_code, first.json()["queued"]) == (202, 1)
    assert (second.status_code, second.json()["queued"]) == (200, 0)
    assert made.store.counts()["queued"] == 1


def test_two_peers_at_the_same_moment_start_one_investigation(served: tuple[str, Front]) -> None:
    address, _ = served
    barrier = threading.Barrier(6)
    queued: list[int] = []

    def post() -> None:
        barrier.wait()
        reply = requests.post(f"{address}/webhooks/am", json=group(job="both"), headers=TOKEN, timeout=30)
        queued.append(reply.json()["queued"])

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(queued) == [0, 0, 0, 0, 0, 1]


def signed(body: bytes, secret: str = SECRET) -> str:
    return "v1=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


PAGEY = b'{"event":{"id":"e1","event_type":"pagey.ping","data":{"message":"\xf0\x9f\x91\x8b  odd   spacing"}}}'


@pytest.mark.parametrize(
    ("signature", "status"),
    [
        (signed(PAGEY), 200),
        (f"v1={'0' * 64},{signed(PAGEY)}", 200),
        (f"v2=x, {signed(PAGEY).upper().replace('V1', 'v1')}", 200),
        (signed(PAGEY, "another"), 401),
        ("v1=", 401),
        ("", 401),
    ],
)
def test_a_signature_is_checked_over_the_raw_bytes(served: tuple[str, Front], signature: str, status: int) -> None:
    address, _ = served
    headers = {"X-PagerDuty-Signature": signature, "Content-Type": "application/json"}
    reply = requests.post(f"{address}/webhooks/pd", data=PAGEY, headers=headers, timeout=30)
    assert reply.status_code == status
    assert SECRET not in reply.text


@pytest.mark.parametrize(
    ("path", "body", "headers", "answer"),
    [
        ("nowhere", b"{}", TOKEN, (404, "there is no such source")),
        ("silent", b"{}", TOKEN, (403, "webhooks are not enabled for this source")),
        ("am", b"{}", {}, (401, "unauthorised")),
        ("am", b"{}", {"Authorization": "Bearer wrong"}, (401, "unauthorised")),
        ("am", b"{", TOKEN, (400, "malformed")),
        ("am", b'"a string"', TOKEN, (400, "malformed")),
        ("am", b"[" * 100_000, TOKEN, (400, "malformed")),
        ("am", b"\xff\xfe\x00", TOKEN, (400, "malformed")),
    ],
)
def test_a_bad_request_gets_the_status_its_sender_needs(
    served: tuple[str, Front], path: str, body: bytes, headers: dict[str, str], answer: tuple[int, str]
) -> None:
    address, _ = served
    assert status_of(requests.post(f"{address}/webhooks/{path}", data=body, headers=headers, timeout=30)) == answer


def test_a_malformed_body_is_quarantined(served: tuple[str, Front]) -> None:
    address, made = served
    requests.post(f"{address}/webhooks/am", data=b"{broken", headers=TOKEN, timeout=30)
    assert [(one["source"], one["raw"]) for one in made.store.broken()] == [("am", "{broken")]


@pytest.mark.parametrize("chunked", [False, True])
def test_five_megabytes_are_refused_without_being_held(served: tuple[str, Front], chunked: bool) -> None:
    address, _ = served
    body = chunks(5_000_000) if chunked else b"x" * 5_000_000
    try:
        reply = requests.post(f"{address}/webhooks/am", data=body, headers=TOKEN, timeout=30)
    except requests.ConnectionError:
        return  # answered and closed while we were still sending
    assert status_of(reply) == (413, "the body is too large")


def test_a_lone_surrogate_in_an_alert_costs_neither_it_nor_its_neighbours(served: tuple[str, Front]) -> None:
    address, made = served
    both = group(alertname="bad \ud800 name", service="sv\udfff")
    both["alerts"].append({**group(job="ok")["alerts"][0], "fingerprint": "8899aabbccddeeff"})
    reply = requests.post(f"{address}/webhooks/am", data=json.dumps(both), headers=TOKEN, timeout=30)
    assert reply.status_code in (200, 202)
    assert reply.json()["alerts"] + reply.json()["broken"] == 2
    assert requests.get(f"{address}/api/v1/alerts", timeout=30).status_code == 200
    assert made.store.counts()["queued"] == 2 - reply.json()["broken"]


def test_with_redis_away_a_webhook_is_to_be_sent_again_and_the_process_is_alive_but_not_ready(tmp_path: Path) -> None:
    with receiver(front(f"unix://{tmp_path}/none.sock")) as address:
        reply = requests.post(f"{address}/webhooks/am", json=group(), headers=TOKEN, timeout=30)
        assert status_of(reply) == (503, "not recorded; send it again")
        assert int(reply.headers["Retry-After"]) > 0
        assert requests.get(f"{address}/healthz", timeout=30).status_code == 200
        assert requests.get(f"{address}/readyz", timeout=30).status_code == 503
        listed = requests.get(f"{address}/api/v1/alerts", timeout=30)
        assert listed.status_code == 503
        metrics = requests.get(f"{address}/metrics", timeout=30).text
        assert "rootcaused_redis_up 0.0" in metrics
        assert 'rootcaused_webhook_requests_total{outcome="not_recorded",source="am"} 1.0' in metrics


class Stuck:
    """A store that hangs until the test lets go, as one behind a network fault does."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def admit(self, *_: Any, **__: Any) -> None:
        self.released.wait(20)
        raise Transient("redis: TimeoutError")

    def ping(self) -> None:
        """Redis answers again, for everybody else."""


def test_webhooks_that_hang_are_answered_in_time_and_leave_the_rest_alone() -> None:
    stuck = Stuck()
    made = front("unix:///none")
    hung = Front(settings=made.settings, store=stuck, publisher=made.publisher, sources=made.sources)  # type: ignore[arg-type]
    with receiver(hung, admit_seconds=0.2) as address:
        try:
            send = partial(requests.post, f"{address}/webhooks/am", json=group(), headers=TOKEN, timeout=30)
            posts = [threading.Thread(target=send) for _ in range(12)]
            for post in posts:
                post.start()
            began = time.monotonic()
            reply = send()
            assert time.monotonic() - began < 1.5
            assert reply.status_code == 503
            assert requests.get(f"{address}/readyz", timeout=2).status_code == 200
            for post in posts:
                post.join()
        finally:
            stuck.released.set()


class Crashing:
    def admit(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(f"a bug, and a secret: {SECRET}")


def test_a_bug_shows_nothing_of_itself_outside() -> None:
    made = front("unix:///none")
    buggy = Front(settings=made.settings, store=Crashing(), publisher=made.publisher, sources=made.sources)  # type: ignore[arg-type]
    with receiver(buggy) as address:
        reply = requests.post(f"{address}/webhooks/am", json=group(), headers=TOKEN, timeout=30)
        assert status_of(reply) == (503, "not recorded; send it again")
        crash = requests.get(f"{address}/api/v1/alerts", timeout=30)
        assert status_of(crash) == (500, "internal error")


def test_a_name_from_outside_makes_no_series_of_its_own(served: tuple[str, Front]) -> None:
    address, _ = served
    requests.post(f"{address}/webhooks/evil-name-7", timeout=30)
    metrics = requests.get(f"{address}/metrics", timeout=30).text
    assert 'outcome="unknown_source",source="unknown"' in metrics
    assert "evil-name-7" not in metrics


def test_metrics_count_records_by_state(served: tuple[str, Front]) -> None:
    address, made = served
    made.store.admit(alert(source="am"), via="poll")
    made.store.remember_poll("am", seen=0, error="503")
    metrics = requests.get(f"{address}/metrics", timeout=30).text
    assert 'rootcaused_alerts{state="queued"} 1.0' in metrics
    assert 'rootcaused_poll_failed{source="am"} 1.0' in metrics


def test_the_api_lists_shows_and_requeues(served: tuple[str, Front]) -> None:
    address, made = served
    made.store.admit(alert(source="gone", id="org/repo#12"), via="poll", skip="resolved")
    listed = requests.get(f"{address}/api/v1/alerts", params={"state": "skipped", "limit": "5"}, timeout=30).json()
    assert [one["key"] for one in listed["alerts"]] == ["gone:org/repo#12"]
    path = f"{address}/api/v1/alerts/gone:org%2Frepo%2312"
    shown = requests.get(path, timeout=30).json()
    assert (shown["state"], shown["report"]) == ("skipped", None)
    again = requests.post(f"{path}/requeue", json={"instructions": "look at DNS"}, timeout=30)
    assert (again.status_code, again.json()["verdict"]) == (202, "requeued")
    record = made.store.get("gone:org/repo#12")
    assert record is not None
    assert (record.state, record.instructions) == (State.QUEUED, "look at DNS")


def test_the_api_gives_an_investigation_with_its_events(served: tuple[str, Front]) -> None:
    address, made = served
    finished = report()
    made.store.keep_report(finished)
    shown = requests.get(f"{address}/api/v1/investigations/{finished.run.investigation}", timeout=30).json()
    assert shown["report"]["headline"] == finished.headline
    assert shown["events"] == []


@pytest.mark.parametrize("path", ["alerts/am:nope", "investigations/inv-nope", "nope"])
def test_what_does_not_exist_is_404_in_json(served: tuple[str, Front], path: str) -> None:
    address, _ = served
    reply = requests.get(f"{address}/api/v1/{path}", timeout=30)
    assert reply.status_code == 404
    assert "error" in reply.json()


def test_a_requeue_of_nothing_is_404_and_one_that_a_web_page_could_send_is_refused(served: tuple[str, Front]) -> None:
    address, _ = served
    path = f"{address}/api/v1/alerts/gone:nope/requeue"
    assert requests.post(path, json={}, timeout=30).status_code == 404
    assert requests.post(path, data="{}", headers={"Content-Type": "text/plain"}, timeout=30).status_code == 415
    assert requests.post(path, json={"instruction": ""}, timeout=30).status_code == 400


def test_a_bad_query_is_told_without_its_value(served: tuple[str, Front]) -> None:
    address, _ = served
    reply = requests.get(f"{address}/api/v1/alerts", params={"state": "sekrit"}, timeout=30)
    assert reply.status_code == 422
    assert "queued" in reply.json()["error"]
    assert "sekrit" not in reply.text


def test_without_a_token_a_foreign_host_name_is_refused(served: tuple[str, Front]) -> None:
    address, _ = served
    reply = requests.get(f"{address}/api/v1/alerts", headers={"Host": "evil.example"}, timeout=30)
    assert reply.status_code == 403


def test_with_a_token_only_its_bearer_gets_in(redis_url: str) -> None:
    with receiver(front(redis_url, server={"token": "made-up-api-token"})) as address:
        url = f"{address}/api/v1/alerts"
        assert requests.get(url, timeout=30).status_code == 401
        for wrong in ("Bearer x", "made-up-api-token", "Bearer made-up-api-token2", "Bearer \xff"):
            assert requests.get(url, headers={"Authorization": wrong.encode("latin-1")}, timeout=30).status_code == 401
        right = {"Authorization": "Bearer made-up-api-token", "Host": "rootcaused.example"}
        assert requests.get(url, headers=right, timeout=30).status_code == 200
        assert requests.get(f"{address}/healthz", timeout=30).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "rootcaused.example"])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match=r"server\.token"):
        check_bind(ServerSettings(host=host))
    check_bind(ServerSettings.model_validate({"host": host, "token": "t"}))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_none(host: str) -> None:
    check_bind(ServerSettings(host=host))


def test_the_receiver_loads_neither_the_queue_nor_a_model_library() -> None:
    code = "import sys, worker.receiver; print(sorted({'celery', 'kombu', 'litellm', 'openai'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
