"""The HTTP policy, against a real server."""

from __future__ import annotations

import contextlib
import gzip
import socket
import traceback
from collections.abc import Callable, Iterator

import pytest

from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from agent.http import MAX_WAIT_SECONDS, Http, Response, checked, retry_after, server_time
from tests.support.http_server import HttpServer, Reply

SECRET = "s3cr3t-token-value"
QUERY_SECRET = "query-secret"
MORE = ("userinfo-pw", "header-secret")
SOON = Deadline.never()


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer(lambda request: Reply(body={"ok": True})) as running:
        yield running


def client(server: HttpServer, **options) -> Http:
    pauses: list[float] = []
    return Http(**{"base_url": server.url, "sleep": pauses.append, **options})


def in_turn(*replies: Reply) -> Callable[..., Reply]:
    left = list(replies)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def test_a_reading_is_tried_again_after_a_passing_fault(server: HttpServer) -> None:
    server.answer = in_turn(Reply(503), Reply(cut="before"), Reply(body={"ok": 1}))
    assert client(server).get("/x", deadline=SOON).json() == {"ok": 1}
    assert len(server.requests) == 3


def test_a_reading_gives_up_after_three_attempts(server: HttpServer) -> None:
    server.answer = in_turn(Reply(503, {"message": "busy"}))
    with pytest.raises(Transient, match="503: busy"):
        client(server).get("/x", deadline=SOON)
    assert len(server.requests) == 3


def test_a_reading_waits_as_long_as_the_server_asks(server: HttpServer) -> None:
    server.answer = in_turn(Reply(429, headers={"Retry-After": "2"}), Reply(body={}))
    pauses: list[float] = []
    client(server, sleep=pauses.append).get("/x", deadline=SOON)
    assert pauses == [2.0]


@pytest.mark.parametrize("wait", ["60", "4"])
def test_a_wait_that_is_long_or_past_the_deadline_is_left_to_the_caller(server: HttpServer, wait: str) -> None:
    server.answer = in_turn(Reply(429, headers={"Retry-After": wait}))
    with pytest.raises(Transient) as caught:
        client(server).get("/x", deadline=Deadline.after(3))
    assert caught.value.retry_after == float(wait)
    assert len(server.requests) == 1


def test_a_vendor_may_name_the_wait_in_a_header_of_its_own(server: HttpServer) -> None:
    server.answer = in_turn(Reply(429, headers={"X-Reset": "77"}))
    with pytest.raises(Transient) as caught:
        client(server, wait=lambda headers: float(headers["x-reset"])).get("/x", deadline=SOON)
    assert caught.value.retry_after == 77


def test_a_refusal_is_not_tried_again(server: HttpServer) -> None:
    server.answer = in_turn(Reply(403))
    with pytest.raises(Permanent):
        client(server).get("/x", deadline=SOON)
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [Reply(503), Reply(cut="before"), Reply(429)])
def test_a_plain_request_is_sent_exactly_once(server: HttpServer, reply: Reply) -> None:
    server.answer = in_turn(reply)
    with contextlib.suppress(Transient):
        client(server).request("POST", "/x", payload={}, deadline=SOON)
    assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "kind"), [
    (301, Permanent), (400, Permanent), (401, Permanent), (403, Permanent), (404, Permanent), (408, Transient),
    (409, Permanent), (410, Permanent), (413, Permanent), (422, Permanent), (425, Transient), (429, Transient),
    (500, Transient), (501, Transient), (502, Transient), (503, Transient), (504, Transient), (520, Transient),
])  # fmt: skip
def test_the_status_decides_who_must_act(status: int, kind: type[RootcausedError]) -> None:
    with pytest.raises(kind):
        checked("GET", Response(status=status, headers={}, body=b"", url="http://h/x"))


def test_a_redirect_is_not_followed_and_the_error_says_so(server: HttpServer) -> None:
    server.answer = in_turn(Reply(302, headers={"Location": "https://user:pw@other.example/login?token=abc"}))
    with pytest.raises(Permanent, match=r"redirected to https://other.example/login; redirects are not followed"):
        client(server).get("/x", deadline=SOON)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"", b"<html>login</html>", b'{"a": ', b"\xff\xfe", b"[" * 100_000])
def test_a_success_with_rubbish_is_a_failed_read(server: HttpServer, body: bytes) -> None:
    server.answer = in_turn(Reply(200, body, {"Content-Type": "application/json"}))
    with pytest.raises(Transient, match="not JSON"):
        client(server).get("/x", deadline=SOON).json()


def test_a_lying_content_type_does_not_matter(server: HttpServer) -> None:
    server.answer = in_turn(Reply(200, b'{"a": 1}', {"Content-Type": "text/html; charset=latin-1"}))
    assert client(server).get("/x", deadline=SOON).json() == {"a": 1}


def test_a_body_that_is_cut_short_is_a_failed_read(server: HttpServer) -> None:
    server.answer = in_turn(Reply(200, b"[1, 2, 3, 4]", cut="body"))
    with pytest.raises(Transient):
        client(server, attempts=1).get("/x", deadline=SOON)


def test_a_body_over_the_cap_is_refused_also_when_it_is_small_on_the_wire(server: HttpServer) -> None:
    bomb = gzip.compress(b"0" * 10_000_000)
    server.answer = in_turn(Reply(200, bomb, {"Content-Encoding": "gzip"}))
    with pytest.raises(Permanent, match="body over 1000000 bytes"):
        client(server, max_body_bytes=1_000_000).get("/x", deadline=SOON)


def test_a_body_that_is_not_what_its_encoding_says_is_a_failed_read(server: HttpServer) -> None:
    server.answer = in_turn(Reply(200, b"plain", {"Content-Encoding": "gzip"}))
    with pytest.raises(Transient):
        client(server, attempts=1).get("/x", deadline=SOON)


def test_the_deadline_holds_while_the_body_drips(server: HttpServer) -> None:
    ticks = iter(range(10_000))
    deadline = Deadline(4, clock=lambda: float(next(ticks)))  # each look at the clock is a second
    server.answer = in_turn(Reply(200, b"x" * 1_000_000))
    with pytest.raises(Transient, match="out of time after"):
        client(server).request("GET", "/x", deadline=deadline)


def test_nothing_is_sent_when_no_time_is_left(server: HttpServer) -> None:
    with pytest.raises(Transient, match="no time left"):
        client(server).get("/x", deadline=Deadline.after(-1))
    assert server.requests == []


def _everything(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


def refused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("reply", [Reply(cut="before"), Reply(500, {"error": f"bad {SECRET}"}), Reply(302), Reply(401)])
def test_no_error_holds_credentials_user_info_or_query(server: HttpServer, reply: Reply) -> None:
    server.answer = in_turn(reply)
    http = client(
        server,
        base_url=server.url.replace("//", f"//me:{MORE[0]}@"),
        headers={"Authorization": f"Bearer {SECRET}", "X-Key": MORE[1]},
        attempts=1,
    )
    with pytest.raises(RootcausedError) as caught:
        http.get("/x", params={"key": QUERY_SECRET}, deadline=SOON)
    shown = _everything(caught.value) + repr(http)
    for secret in (SECRET, *MORE, QUERY_SECRET):
        assert secret not in shown
    assert "/x" in str(caught.value)


def test_a_refused_connection_says_so_without_the_query() -> None:
    http = Http(base_url=f"http://127.0.0.1:{refused_port()}", attempts=1)
    with pytest.raises(Transient, match="Connection refused") as caught:
        http.get("/x", params={"key": QUERY_SECRET}, deadline=SOON)
    assert QUERY_SECRET not in _everything(caught.value)


def test_an_address_that_is_a_secret_is_never_shown(server: HttpServer) -> None:
    server.answer = in_turn(Reply(500))
    http = client(server, base_url=f"{server.url}/T1/{SECRET}", label="https://hooks.example/...", attempts=1)
    with pytest.raises(Transient, match=r"hooks.example/\.\.\.: 500") as caught:
        http.get("", deadline=SOON)
    assert SECRET not in _everything(caught.value) + repr(http)


@pytest.mark.parametrize("headers", [{"X": "a\nb"}, {"X": "\u2603"}])
def test_an_unusable_header_is_a_mistake_in_the_configuration(server: HttpServer, headers: dict[str, str]) -> None:
    with pytest.raises(Permanent):
        client(server, headers=headers).request("GET", "/x", deadline=SOON)


def test_an_unusable_address_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(Permanent):
        Http(base_url="htp://x").request("GET", "/x", deadline=SOON)


def test_user_and_password_in_the_address_are_sent_as_basic_authentication(server: HttpServer) -> None:
    client(server, base_url=server.url.replace("//", "//me:p%40ss@")).get("/x", deadline=SOON)
    assert server.requests[0].headers["authorization"] == "Basic bWU6cEBzcw=="


def test_a_netrc_login_does_not_replace_our_credentials(server: HttpServer, tmp_path, monkeypatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    client(server, headers={"Authorization": "Bearer ours"}).get("/x", deadline=SOON)
    assert server.requests[0].headers["authorization"] == "Bearer ours"


def test_a_proxy_of_the_environment_is_used(server: HttpServer, monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    Http(base_url="http://data.example").get("/x", deadline=SOON)
    assert server.requests[0].headers["host"] == "data.example"


@pytest.mark.parametrize(("body", "words"), [
    ({"error": {"message": "Invalid Input Provided", "code": 2001, "errors": ["From is wrong"]}},
     "Invalid Input Provided: From is wrong"),
    ({"status": "error", "errorType": "bad_data", "error": "parse error at char 3"}, "parse error at char 3"),
    ({"kind": "Status", "message": "pods is forbidden"}, "pods is forbidden"),
    (b"too many\n\x1b[31m outstanding requests", "too many [31m outstanding requests"),
    ({"other": [1]}, '{"other": [1]}'),
])  # fmt: skip
def test_the_apis_own_words_are_in_the_error(server: HttpServer, body: object, words: str) -> None:
    server.answer = in_turn(Reply(400, body))
    with pytest.raises(Permanent) as caught:
        client(server).get("/x", deadline=SOON)
    assert str(caught.value).endswith(f"400: {words}")


def test_an_html_error_page_is_left_out(server: HttpServer) -> None:
    server.answer = in_turn(Reply(400, b"<html><body>Bad gateway</body></html>"))
    with pytest.raises(Permanent, match=r"400$"):
        client(server).get("/x", deadline=SOON)


@pytest.mark.parametrize(("value", "seconds"), [
    ("", None), ("7", 7.0), ("1.5", 1.5), ("soon", None), ("-3", None), ("٣", None),
    ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ("9" * 400, MAX_WAIT_SECONDS), ("Fri, 31 Dec 9999 00:00:00 GMT", MAX_WAIT_SECONDS),
    ("Thu, 01 Jan 1970 00:01:40 -0000", 90.0),
])  # fmt: skip
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}, now=10.0) == seconds


@pytest.mark.parametrize(("value", "shown"), [
    ("Mon, 03 Feb 2031 12:00:00 GMT", "2031-02-03T12:00:00+00:00"),
    ("Mon, 03 Feb 2031 12:00:00 -0000", "2031-02-03T12:00:00+00:00"),
    ("Mon, 03 Feb 2031 20:00:00 +0800", "2031-02-03T12:00:00+00:00"),
    ("yesterday", "None"), ("", "None"),
])  # fmt: skip
def test_the_servers_clock_is_its_date_header_in_utc(value: str, shown: str) -> None:
    at = server_time({"date": value})
    assert (at.isoformat() if at else "None") == shown


def test_each_client_has_its_own_pool(server: HttpServer) -> None:
    assert client(server).session is not client(server).session
