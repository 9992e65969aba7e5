"""An App's installation: tokens are made when needed, renewed before they expire, and never shown."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.deadline import Deadline
from agent.errors import Permanent, RootcausedError, Transient
from sources.github.source import GitHub
from tests.support import rsa_key
from tests.support.alerts import alert
from tests.support.github_api import BOT, NOW, GitHubApiFake, issue
from tests.support.http_server import HttpServer, Reply
from tests.support.reports import report

SOON = Deadline.never()
APP: dict[str, Any] = {"app_id": 5, "installation_id": 42, "private_key": rsa_key.PKCS1}
ALERT = alert(source="gh", id="acme/shop#1")


@pytest.fixture
def api() -> GitHubApiFake:
    fake = GitHubApiFake(app=(rsa_key.MODULUS, rsa_key.EXPONENT))
    fake.issues["acme/shop"] = [issue(1)]
    return fake


@pytest.fixture
def app(server: HttpServer, source: Callable[..., GitHub]) -> GitHub:
    return source(server.url, **APP)


def test_an_installation_token_is_made_once_and_used(api, server, app) -> None:
    for _ in range(3):
        assert app.fetch("acme/shop#1", deadline=SOON).id == "acme/shop#1"
    assert api.mints == 1
    assert server.asked("GET")[0].headers["authorization"] == "Bearer ghs_minted1"


def test_the_key_may_be_in_a_file(server, source, tmp_path: Path) -> None:
    file = tmp_path / "app.pem"
    file.write_text(rsa_key.PKCS8)
    reader = source(server.url, app_id="5", installation_id=42, private_key_file=file)
    assert reader.fetch("acme/shop#1", deadline=SOON).id == "acme/shop#1"
    file.write_text("nothing")
    with pytest.raises(Permanent, match="private key: not a PEM"):
        source(server.url, app_id="5", installation_id=42, private_key_file=file).fetch("acme/shop#1", deadline=SOON)
    file.unlink()
    with pytest.raises(Permanent, match="private_key_file can't be read"):
        source(server.url, app_id="5", installation_id=42, private_key_file=file).fetch("acme/shop#1", deadline=SOON)


def test_a_token_is_renewed_five_minutes_before_it_expires(api, app, time) -> None:
    app.fetch("acme/shop#1", deadline=SOON)
    time.seconds += 54 * 60
    app.fetch("acme/shop#1", deadline=SOON)
    assert api.mints == 1
    time.seconds += 61
    app.fetch("acme/shop#1", deadline=SOON)
    assert api.mints == 2


def test_a_token_that_is_refused_is_replaced_once_for_a_write_too(api, server, app) -> None:
    app.find(ALERT, deadline=SOON)
    api.minted.clear()
    app.publish(ALERT, report(), previous=None, deadline=SOON)
    assert len(api.comments["acme/shop#1"]) == 1
    api.before = lambda request: None if "access_tokens" in request.path else Reply(401, {"message": "Bad credentials"})
    with pytest.raises(Permanent, match="Bad credentials"):
        app.fetch("acme/shop#1", deadline=SOON)


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_wrong_clock_of_ours_is_corrected_by_githubs(api, app, hours) -> None:
    api.now = NOW + timedelta(hours=hours)
    assert app.fetch("acme/shop#1", deadline=SOON).id == "acme/shop#1"


@pytest.mark.parametrize(("reply", "kind"), [
    (Reply(401, {"message": "A JSON web token could not be decoded"}), Permanent), (Reply(404), Permanent),
    (Reply(500), Transient), (Reply(201, {}), Transient), (Reply(201, b"<html>"), Transient),
    (Reply(201, {"token": "ghs_x", "expires_at": None}), Transient), (Reply(cut="before"), Transient),
    (Reply(403, {"message": "This installation has been suspended"}), Permanent),
])  # fmt: skip
def test_without_a_token_the_error_says_who_must_act(api, app, reply, kind) -> None:
    api.before = lambda request: reply if "access_tokens" in request.path else None
    with pytest.raises(kind) as caught:
        app.fetch("acme/shop#1", deadline=SOON)
    assert isinstance(caught.value, RootcausedError)


def test_our_comments_are_known_by_the_apps_own_login(api, app) -> None:
    receipt = app.publish(ALERT, report(), previous=None, deadline=SOON)
    assert app.find(ALERT, deadline=SOON) == receipt
    (kept,) = api.comments["acme/shop#1"]
    kept["user"] = BOT
    assert app.find(ALERT, deadline=SOON) is None


def test_neither_the_token_nor_the_signed_request_shows_in_an_error(api, server, app) -> None:
    sent: list[str] = []

    def echo(request):
        sent.append(request.headers["authorization"].removeprefix("Bearer "))
        return Reply(500, sent[-1].encode()) if request.path.startswith("/repos") or len(sent) > 6 else None

    api.before = echo
    for _ in range(2):
        with pytest.raises(Transient) as caught:
            app.fetch("acme/shop#1", deadline=SOON)
        shown = "".join(traceback.format_exception(caught.value)) + repr(app)
        assert [secret for secret in sent if secret in shown] == []
    assert len(sent) > 4
