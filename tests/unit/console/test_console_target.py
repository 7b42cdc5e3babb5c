"""The way to a console: what may be connected to, and what stands between the host and its console."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from nova import errors
from nova.conf import register
from nova.console import target
from nova.console.target import Reach, TargetError
from nova.model.guest.consoles import ConsoleAddress
from tests.fakes.console_peers import close, exactly, reset, serving


def at(port: int, host: str = "127.0.0.1", path: str | None = None) -> ConsoleAddress:
    return ConsoleAddress(access_url_base="http://proxy/", host=host, port=port, internal_access_path=path)


def here(**fields: Any) -> Reach:
    """For a console of a host that is this machine."""
    return Reach(**fields, local_hosts=frozenset(["here"])).of("here")


def refused(address: ConsoleAddress, reach: Reach | None = None) -> TargetError:
    with pytest.raises(TargetError) as found:
        target.connect(address, reach or here(timeout_s=0.2))
    assert str(address.port) not in found.value.words  # a tenant learns nothing of the cloud's addresses
    return found.value


# -- TCP


def test_connect_reaches_a_host_in_a_reachable_network_without_delay_and_with_keepalive() -> None:
    with serving(lambda sock: sock.sendall(b"hello")) as port:
        stream = target.connect(at(port), here(networks=target.networks(["10.0.0.0/8", "127.0.0.0/8"])))
        assert stream.exactly(5, time.monotonic() + 2) == b"hello"
        assert stream.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        stream.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::ffff:127.0.0.1"])
def test_connect_outside_the_reachable_networks_connects_to_nothing(host: str) -> None:
    met: list[bool] = []
    with serving(lambda sock: met.append(True)) as port:
        assert refused(at(port, host), here(networks=target.networks(["10.0.0.0/8", "fd00::/8"]))).words \
            == target.REFUSED_ADDRESS
        time.sleep(0.02)
    assert met == []


@pytest.mark.parametrize("place", ["127.0.0.1", "127.1.2.3", "localhost", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["another", "", "HERE"])
def test_connect_to_loopback_of_a_host_that_is_elsewhere_connects_to_nothing(place: str, host: str) -> None:
    """There may be a guest of this machine at that port: another tenant's."""
    met: list[bool] = []
    with serving(lambda sock: met.append(True)) as port:
        error = refused(at(port, place), here().of(host))
        time.sleep(0.02)
    assert met == [] and error.words == target.REFUSED_ADDRESS
    assert f"host {host} reports" in error.detail and "server_proxyclient_address" in error.detail


def test_connect_to_a_socket_of_a_host_that_is_elsewhere_connects_to_nothing(folder: Path) -> None:
    error = refused(unix(folder / "port0"), here(socket_dir=str(folder)).of("another"))
    assert error.words == target.REFUSED_ADDRESS and "host another" in error.detail


def test_connect_to_ipv6_s_loopback_of_a_host_that_is_elsewhere_connects_to_nothing() -> None:
    assert "host another" in refused(at(5900, "::1"), here().of("another")).detail


def test_reach_when_nothing_is_said_then_the_proxy_s_own_name_is_this_machine() -> None:
    options = register(cfg.ConfigOpts())
    options([], default_config_files=[])
    options.set_override("host", "ctl")
    assert Reach.from_conf(options).local_hosts == {"ctl"}
    options.set_override("local_hosts", ["ctl-1", "ctl-2"], "console")
    assert Reach.from_conf(options).local_hosts == {"ctl", "ctl-1", "ctl-2"}


@pytest.mark.parametrize(("address", "networks", "allowed"), [
    ("10.1.2.3", ["10.0.0.0/8"], True), ("11.1.2.3", ["10.0.0.0/8"], False), ("10.1.2.3", [], True),
    ("::ffff:10.1.2.3", ["10.0.0.0/8"], True), ("::ffff:11.1.2.3", ["10.0.0.0/8"], False),
    ("fd00::1", ["fd00::/8"], True), ("fd00::1", ["10.0.0.0/8"], False), ("0.0.0.0", [], False), ("::", [], False),
    ("0.0.0.0", ["0.0.0.0/0"], False), ("224.0.0.1", [], False), ("::ffff:0.0.0.0", [], False)])
def test_allowed_compares_addresses_with_networks(address: str, networks: list[str], allowed: bool) -> None:
    assert target.allowed(ipaddress.ip_address(address), target.networks(networks)) is allowed


def test_networks_of_a_malformed_option_are_refused_by_name() -> None:
    with pytest.raises(errors.Invalid, match="'10.0.0.0/33'"):
        target.networks(["10.0.0.0/33"])


def test_connect_to_a_closed_port_says_that_there_is_no_console() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    assert refused(at(port)).words == target.NO_CONSOLE


def test_connect_to_a_host_that_takes_none_gives_up_in_time() -> None:
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    others = []
    try:
        for _ in range(3):
            others.append(socket.socket())
            others[-1].setblocking(False)
            others[-1].connect_ex(full.getsockname())
        began = time.monotonic()
        assert refused(at(full.getsockname()[1])).words == target.NOT_ANSWERING
        assert time.monotonic() - began < 2
    finally:
        for sock in (full, *others):
            sock.close()


@pytest.mark.parametrize("address", [
    ConsoleAddress(access_url_base=""), at(1, ""), at(0), at(5900, "no.such.host.invalid"), at(70000), at(-1),
    at(5900, "a" * 70 + ".example")])
def test_connect_to_what_is_no_address_is_refused(address: ConsoleAddress) -> None:
    refused(address)


# -- unix sockets


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory with a socket, a link to one outside, and a file."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "deeper").mkdir()
    made = []
    for path in (inside / "port0", outside / "port0", inside / "deeper" / "port0"):
        made.append(socket.socket(socket.AF_UNIX))
        made[-1].bind(str(path))
        made[-1].listen()
    (inside / "link").symlink_to(outside / "port0")
    (inside / "file").write_text("")
    yield inside
    for sock in made:
        sock.close()


def unix(path: Path | str) -> ConsoleAddress:
    return ConsoleAddress(access_url_base="http://proxy/", socket_path=str(path))


def test_connect_reaches_a_socket_in_the_directory(folder: Path) -> None:
    target.connect(unix(folder / "port0"), here(socket_dir=str(folder))).close()


@pytest.mark.parametrize("name", ["../out/port0", "deeper/port0", "link", "file", "", ".", "..", "port0\0x",
                                  "deeper/../port0"])
def test_connect_to_what_is_no_socket_directly_in_the_directory_is_refused(folder: Path, name: str) -> None:
    assert refused(unix(f"{folder}/{name}"), here(socket_dir=str(folder))).words == target.REFUSED_ADDRESS


def test_connect_to_a_socket_is_refused_where_there_is_no_directory_for_them(folder: Path) -> None:
    assert refused(unix(folder / "port0"), Reach()).words == target.REFUSED_ADDRESS


def test_connect_to_a_socket_that_is_gone_or_left_over_says_that_there_is_no_console(folder: Path) -> None:
    assert refused(unix(folder / "gone"), here(socket_dir=str(folder))).words == target.NO_CONSOLE
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(folder / "left"))
    left.close()
    assert refused(unix(folder / "left"), here(socket_dir=str(folder))).words == target.NO_CONSOLE
    assert refused(unix(folder / ("x" * 200)), here(socket_dir=str(folder))).words == target.NO_CONSOLE


# -- the internal access path


def answering(answer: bytes, asked: list[bytes]) -> Callable[[socket.socket], None]:
    def handle(sock: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += exactly(sock, 1)
        asked.append(head)
        sock.sendall(answer)
        sock.recv(1)
    return handle


def test_connect_asks_for_the_internal_path_and_keeps_what_follows_the_answer() -> None:
    asked: list[bytes] = []
    with serving(answering(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nRFB 003.008\n", asked)) as port:
        stream = target.connect(at(port, path="/console?session_id=x"), here())
        assert stream.read() == b"RFB 003.008\n"
        stream.close()
    assert asked == [b"CONNECT /console?session_id=x HTTP/1.1\r\n\r\n"]


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 404 Not Found\r\n\r\n", b"HTTP/1.1 403 200\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"200 OK\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 404 x\r\nHTTP/1.1 200 OK\r\n\r\n", b"RFB 003.008\n\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 5000 + b"\r\n\r\n", b"x" * 100_000])
def test_connect_with_any_other_answer_than_200_is_refused(answer: bytes) -> None:
    with serving(answering(answer, [])) as port:
        assert refused(at(port, path="/console")).words == target.ACCESS_DENIED


@pytest.mark.parametrize("path", ["/a\r\nHost: x", "/a b", "/a\n", "/a\0", "/ä", "/" + "x" * 3000, "\r\n"])
def test_connect_with_a_path_that_would_inject_lines_sends_nothing(path: str) -> None:
    heard: list[bytes] = []
    with serving(lambda sock: heard.append(sock.recv(100))) as port:
        assert refused(at(port, path=path)).words == target.ACCESS_DENIED
        time.sleep(0.02)
    assert heard in ([], [b""])


def test_connect_that_is_never_answered_or_answered_byte_by_byte_gives_up_in_time() -> None:
    def dribble(sock: socket.socket) -> None:
        for _ in range(100):
            sock.sendall(b"x")
            time.sleep(0.02)

    for handle in (lambda sock: time.sleep(0.5), dribble):
        with serving(handle) as port:
            began = time.monotonic()
            assert refused(at(port, path="/x")).words == target.NOT_ANSWERING
            assert time.monotonic() - began < 1


@pytest.mark.parametrize("leave", [reset, close])
def test_connect_that_is_cut_off_is_refused(leave: Callable[[socket.socket], None]) -> None:
    with serving(lambda sock: leave(sock)) as port:
        assert refused(at(port, path="/x")).words == target.ACCESS_DENIED


def test_refused_connections_leave_no_descriptor_behind() -> None:
    with serving(answering(b"HTTP/1.1 404 Not Found\r\n\r\n", [])) as port:
        refused(at(port, path="/x"))
        time.sleep(0.02)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            refused(at(port, path="/x"))
        time.sleep(0.02)
        assert len(os.listdir("/proc/self/fd")) <= before
