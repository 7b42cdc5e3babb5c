"""The helper's socket and its client: who may ask, who waits no more, and what is said when nobody answers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nova import concurrency, errors
from nova.privileged import client, wire
from nova.privileged.about import about
from nova.privileged.helper.calling import TABLE, HelperCall
from nova.privileged.helper.serving import HelperServer, allowed_users, listening
from nova.privileged.helper_socket import SocketHelper
from tests.fakes.helper import settings

ME = frozenset({os.geteuid()})


class Unwanted(Exception):
    pass


@pytest.fixture
def served(tmp_path: Path):
    """From the users who may ask to the way there."""
    stop = threading.Event()
    threads = []

    def serve(users=ME):
        path = tmp_path / "helper.sock"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(path))
        sock.listen(16)
        server = HelperServer(sock, settings(tmp_path), users)
        threads.append(concurrency.spawn(server.serve, stop.is_set))
        return SocketHelper(path)
    yield serve
    client.use(None)
    stop.set()
    for thread in threads:
        thread.join(5)


def test_about_when_the_helper_is_used_then_it_says_what_it_has_read(served, tmp_path) -> None:
    client.use(served())
    assert about().instances_path == str(tmp_path / "instances")
    client.use(None)
    assert about().instances_path == ""


def test_user_when_he_may_not_ask_then_he_is_not_answered(served) -> None:
    with pytest.raises(errors.host.HelperDied, match="about"):
        client.use(served(frozenset({os.geteuid() + 1})))
        about()


def test_helper_when_there_is_none_then_one_line_has_the_cause_and_the_cure(tmp_path) -> None:
    client.use(SocketHelper(tmp_path / "none"))
    try:
        with pytest.raises(errors.host.NoHelper) as error:
            about()
    finally:
        client.use(None)
    assert "No such file" in error.value.message and "nova-privileged.service" in error.value.message
    assert "\n" not in error.value.message


def test_helper_when_it_dies_in_the_middle_then_that_is_said_and_the_next_call_finds_another(tmp_path, served) -> None:
    path = tmp_path / "dying.sock"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        sock.listen(1)

        def die() -> None:
            connection, _ = sock.accept()
            wire.receive(connection)
            connection.close()
        concurrency.spawn(die)
        client.use(SocketHelper(path))
        with pytest.raises(errors.host.HelperDied, match="closed the connection"):
            about()
    client.use(served())
    assert about().release


def test_call_when_nobody_wants_it_any_more_then_its_program_is_ended(served, monkeypatch) -> None:
    ended = threading.Event()

    def wait(call: HelperCall) -> None:
        try:
            call.tools(60.0).run(["sleep", "50"])
        finally:
            ended.set()
    monkeypatch.setitem(TABLE, "test.wait", wait)
    until = time.monotonic() + 0.5

    def check() -> None:
        if time.monotonic() > until:
            raise Unwanted
    with pytest.raises(Unwanted), concurrency.cancellable(check):
        client.ask(served(), "test.wait", {}, None)
    assert ended.wait(10)


def test_calls_when_one_lasts_then_others_do_not_wait_for_it(served, monkeypatch) -> None:
    go = threading.Event()
    monkeypatch.setitem(TABLE, "test.last", lambda call: go.wait(20) and None)
    helper = served()
    lasting = concurrency.spawn(client.ask, helper, "test.last", {}, None)
    client.use(helper)
    assert about().release and lasting.is_alive()
    go.set()
    lasting.join(10)


def test_error_when_it_comes_from_the_helper_then_it_is_of_its_own_class(served, tmp_path) -> None:
    client.use(served())
    from nova.privileged import guest_files, processes

    with pytest.raises(errors.host.HelperRefused, match="outside the directories"):
        guest_files.read_head("/etc/passwd", 1)
    with pytest.raises(FileNotFoundError):
        guest_files.read_head(str(tmp_path / "instances" / "none"), 1)
    assert processes.end(4_000_000, "dnsmasq", "br1") is None


EVENTLET = """
import sys
from nova import concurrency
assert concurrency.patch("eventlet") == "eventlet"
import threading
from pathlib import Path
from nova.privileged import client
from nova.privileged.about import about
from nova.privileged.helper_socket import SocketHelper
client.use(SocketHelper(Path(sys.argv[1])))
found = []
threads = [concurrency.spawn(lambda: found.append(about().release)) for _ in range(8)]
for thread in threads:
    thread.join()
print(len(found), found[0])
"""


def test_client_when_eventlet_has_patched_its_sockets_then_it_asks_the_same(served) -> None:
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", EVENTLET, str(served().path)], capture_output=True,
                          text=True, timeout=60, check=True, env={**os.environ, "NOVA_CONCURRENCY": "eventlet"})
    assert said.stdout.startswith("8 ")


def test_message_when_it_is_longer_than_any_then_it_is_not_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(wire.LENGTH.pack(wire.LARGEST + 1))
        with pytest.raises(ValueError):
            wire.receive(theirs)


def test_user_of_the_daemons_when_there_is_none_then_the_option_is_named() -> None:
    with pytest.raises(errors.config.Wrong, match="privileged"):
        allowed_users("nobody-of-that-name")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_socket_when_the_helper_makes_it_then_root_and_the_daemons_group_alone_reach_it(tmp_path) -> None:
    path = tmp_path / "made.sock"
    with listening(path, "daemon"):
        facts = path.stat()
    assert (facts.st_mode & 0o777, facts.st_uid) == (0o660, 0) and facts.st_gid != 0
