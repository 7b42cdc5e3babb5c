"""VeNCrypt to a real QEMU that demands a client's certificate: from the first word to a picture; who is kept out."""

from __future__ import annotations

import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from nova.console import relay, rfb, target, vencrypt
from nova.console.stream import Stream
from nova.model.guest.consoles import ConsoleAddress
from tests.fakes.console_papers import Authority
from tests.fakes.console_peers import Browser, browser, exactly, tcp_pair
from tests.fakes.vnc_server import VERSION
from tests.functional.backends import free_port, listening, wait_until

QEMU = "qemu-system-x86_64"
TIMEOUT_S = 30.0

pytestmark = [pytest.mark.in_turn(0, 10),
              pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed")]


class Machine(NamedTuple):
    port: int
    authority: Authority
    stranger: Authority


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine without disks whose screen is shown over VeNCrypt X509None alone, to whom its authority vouches for."""
    folder = tmp_path_factory.mktemp("papers")
    authority, stranger = Authority(folder), Authority(folder / "other", "another authority")
    own = authority.issue("server", server=True)
    assert Path(own.cert).name == "server-cert.pem"  # as QEMU wants them named, beside ca-cert.pem
    port = free_port()
    started = subprocess.Popen(
        [QEMU, "-accel", "tcg", "-m", "64", "-nodefaults", "-vga", "std", "-display", "none",
         "-object", f"tls-creds-x509,id=tls0,dir={folder},endpoint=server,verify-peer=on",
         "-vnc", f"127.0.0.1:{port - 5900},tls-creds=tls0"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until("QEMU's screen", lambda: started.poll() is not None or listening(port), TIMEOUT_S)
        assert started.poll() is None, started.stderr and started.stderr.read()
        yield Machine(port, authority, stranger)
    finally:
        started.kill()
        started.wait()


def security(machine: Machine, client: Authority | None, trusts: Authority) -> rfb.Security:
    mine = client.issue("proxy") if client is not None else None
    papers = vencrypt.TlsFiles(trusts.ca, mine.cert if mine else None, mine.key if mine else None)
    return rfb.Security(("vencrypt", "none"), papers, TIMEOUT_S, ("127.0.0.1",))


def connected(machine: Machine) -> Stream:
    return target.connect(ConsoleAddress(access_url_base="http://proxy/", host="127.0.0.1", port=machine.port),
                          target.Reach(timeout_s=TIMEOUT_S, local_hosts=frozenset(["here"]), host="here"))


def enter(user: Browser) -> None:
    """A viewer's words up to where the result of security comes."""
    assert user.see(12) == VERSION
    user.type(VERSION)
    assert user.see(2) == b"\1\1"
    user.type(b"\1")


def test_console_with_both_certificates_shows_the_screen(machine: Machine) -> None:
    user, front = browser()
    user.sock.settimeout(TIMEOUT_S)
    entering = threading.Thread(target=enter, args=(user,))
    entering.start()
    back = rfb.secure(front, connected(machine), security(machine, machine.authority, machine.authority))
    entering.join()
    assert back.secure
    control = relay.Control()
    carrying = threading.Thread(target=relay.carry, args=(front, back, relay.Times(), control), daemon=True)
    carrying.start()
    assert user.see(4) == bytes(4)  # security's result
    user.type(b"\1")
    width, height = struct.unpack(">HH", user.see(4))
    user.see(struct.unpack(">16xI", user.see(20))[0])
    user.type(struct.pack(">BxHi", 2, 1, 0) + struct.pack(">BBHHHH", 3, 0, 0, 0, width, height))
    kind, rectangles = struct.unpack(">BxH", user.see(4))
    seen = 0
    for _ in range(rectangles):
        _, _, wide, high, encoding = struct.unpack(">HHHHi", user.see(12))
        assert encoding == 0
        seen += len(user.see(wide * high * 4))
    assert kind == 0
    assert seen >= 640 * 400 * 4  # at least: the firmware changes the size of the screen while it starts
    control.end(1001, "seen")
    assert user.last_words() == (1001, "seen")
    user.sock.close()
    carrying.join(TIMEOUT_S)


@pytest.mark.parametrize("wrong", ["no certificate", "another's certificate", "another's server"])
def test_console_with_a_certificate_that_is_missing_or_another_authoritys_is_refused(machine: Machine,
                                                                                     wrong: str) -> None:
    client = {"no certificate": None, "another's certificate": machine.stranger}.get(wrong, machine.authority)
    trusts = machine.stranger if wrong == "another's server" else machine.authority
    viewer, theirs = tcp_pair()
    viewer.settimeout(TIMEOUT_S)
    reported: list[bytes] = []

    def view() -> None:
        exactly(viewer, 12)
        viewer.sendall(VERSION)
        exactly(viewer, 2)
        viewer.sendall(b"\1")
        reported.append(viewer.recv(1000))

    viewing = threading.Thread(target=view, daemon=True)
    viewing.start()
    front = Stream(theirs)
    with pytest.raises(target.TargetError) as failure:
        rfb.secure(front, connected(machine), security(machine, client, trusts))
    viewing.join(TIMEOUT_S)
    assert reported[0][:4] == struct.pack(">I", 1)
    assert failure.value.words in (vencrypt.UNTRUSTED, rfb.CUT_OFF)
    viewer.close()
    front.close()
