"""The embedded Redis, with the real server."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from agent.errors import ConfigError
from tests.support.redis_process import executable as some_server
from worker.queue import make_app
from worker.redis_client import connect
from worker.redis_server import MAX_SOCKET_PATH_BYTES, RedisServer, address, executable, socket_path
from worker.settings import RedisSettings, Settings


def client(url: str) -> redis.Redis:
    return connect(url, RedisSettings(timeout_seconds=2))


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline, "not within 15 s"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.fixture
def abandoned(tmp_path: Path) -> Iterator[int]:
    """The pid of a server whose owner was killed."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom worker.redis_server import RedisServer\n"
        "server = RedisServer(Path(sys.argv[1]))\nserver.start()\nprint(server.pid, flush=True)\ntime.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    with owner.stdout as out:
        pid = int(out.readline())
    owner.kill()
    owner.wait(10)
    yield pid
    if not gone(pid):
        os.kill(pid, signal.SIGKILL)


def test_it_keeps_what_it_was_told_over_a_restart_and_never_evicts(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        one = client(server.url)
        one.set("k", "v")
        assert one.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert one.config_get("append*fsync") == {"appendfsync": "everysec"}
        assert one.config_get("port") == {"port": "0"}
    with RedisServer(tmp_path) as server:
        assert client(server.url).get("k") == "v"


def test_only_its_user_may_look_in(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(server.socket.stat().st_mode) & 0o077 == 0


def test_stopping_ends_the_process(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    server.start()
    pid = server.pid
    assert pid is not None
    server.stop()
    assert gone(pid)
    server.stop()


def test_the_address_is_found_by_the_same_settings_and_told_when_nothing_runs(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path)
    with pytest.raises(ConfigError, match=r"rootcaused run.*redis\.url"):
        address(settings)
    with RedisServer(tmp_path):
        assert client(address(settings)).ping()
    with pytest.raises(ConfigError, match="rootcaused run"):
        address(settings)


def test_a_second_one_shares_the_first_and_leaves_it_running(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as first:
        with RedisServer(tmp_path) as second:
            assert second.url == first.url
            assert second.pid is None
        assert client(first.url).ping()


def test_what_a_killed_server_left_behind_does_not_stop_the_next(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    server.start()
    client(server.url).set("k", "v")
    eventually(lambda: int(client(server.url).info("persistence")["aof_pending_bio_fsync"]) == 0)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    assert server.socket.exists()
    with RedisServer(tmp_path) as again:
        assert client(again.url).get("k") == "v"


def test_a_server_whose_owner_was_killed_is_taken_over_and_ended_with_the_new_owner(
    tmp_path: Path, abandoned: int
) -> None:
    with RedisServer(tmp_path) as server:
        assert client(server.url).info("server")["process_id"] == abandoned
    assert gone(abandoned)


@pytest.mark.parametrize("name", ["with space", "Größe 日本", "a%20b#c?d", "x" * 120, "é" * 70])
def test_any_directory_name_will_do_for_redis_and_for_the_queue(tmp_path: Path, name: str) -> None:
    with RedisServer(tmp_path / name) as server:
        assert len(os.fsencode(server.socket)) <= MAX_SOCKET_PATH_BYTES
        url = address(Settings(state_dir=tmp_path / name))
        assert client(url).ping()
        app = make_app(Settings(), url)
        with app.connection_for_write() as connection:
            assert connection.ensure_connection(max_retries=1, timeout=2).connected


def test_a_long_path_gets_a_private_place_even_where_the_temporary_directory_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("t" * 150)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with RedisServer(tmp_path / ("x" * 120)) as server:
        assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
        assert client(server.url).ping()
    assert not server.socket.parent.exists()


def test_a_place_that_somebody_else_prepared_is_refused(tmp_path: Path) -> None:
    state = tmp_path / ("y" * 120)
    place = socket_path(state).parent
    place.symlink_to(tmp_path)
    try:
        with pytest.raises(ConfigError, match=str(place)):
            RedisServer(state).start()
    finally:
        place.unlink()


@pytest.mark.parametrize("blocked", ["file", "file/below"])
def test_a_state_directory_that_can_not_be_made_is_told(tmp_path: Path, blocked: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="state_dir"):
        RedisServer(tmp_path / blocked).start()


def test_a_program_that_is_no_server_is_told_with_what_it_said(tmp_path: Path) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho cannot load libthings.so >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(ConfigError, match="cannot load libthings"):
        RedisServer(tmp_path / "state", find=lambda: str(program)).start()
    program.write_bytes(b"\x7fELF, of another machine")
    with pytest.raises(ConfigError, match="redis-server"):
        RedisServer(tmp_path / "state", find=lambda: str(program)).start()
    with RedisServer(tmp_path / "state", find=some_server) as server:
        assert client(server.url).ping()


def test_one_on_the_path_goes_before_one_from_a_package() -> None:
    assert executable(which=lambda name: f"/usr/bin/{name}") == "/usr/bin/redis-server"
    valkey = executable(which=lambda name: f"/usr/bin/{name}" if "valkey" in name else None)
    assert valkey == "/usr/bin/valkey-server"
    assert os.access(executable(which=lambda _: None), os.X_OK)


def test_with_none_at_all_the_packages_to_install_are_named() -> None:
    with pytest.raises(ConfigError, match="redis-server or valkey-server"):
        executable(which=lambda _: None, bundled=())
