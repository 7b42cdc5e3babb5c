"""Floating addresses on a real kernel: a third network namespace reaches a guest by one, and no more when it goes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from nova.model.network.floating import FloatingOnHost
from nova.model.network.networks import NetworkOnHost
from tests import sampling
from tests.fakes.network import guest, network
from tests.machine.network_cases import Cloud, Namespace, eventually, obstacle

_WHY = obstacle() or (None if shutil.which("conntrack", path="/usr/sbin:/sbin") else "needs Debian's conntrack")
pytestmark = [pytest.mark.in_turn(2, 5),
              pytest.mark.skipif(_WHY is not None, reason=str(_WHY))]

FLOATING, SECOND = "192.0.2.80", "192.0.2.81"
OUTSIDE, HOST = "192.0.2.1", "192.0.2.9"
FIXED, OTHER = "10.0.1.3", "10.0.1.4"

#: Answers each line with who it thinks is asking, until the other end closes.
ECHO = """
import socket, threading
listener = socket.create_server(("0.0.0.0", 7000))
def serve(connection, peer):
    with connection:
        for line in connection.makefile("rb"):
            connection.sendall(f"{NAME} {peer[0]}\\n".encode())
while True:
    threading.Thread(target=serve, args=listener.accept(), daemon=True).start()
"""
#: Asks once a line of standard input, over one connection; says what comes back, or that nothing does.
TALK = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 7000), 5)
connection.settimeout(1.5)
for line in sys.stdin:
    try:
        connection.sendall(b"x\\n")
        print(connection.recv(100).decode().strip() or "closed", flush=True)
    except OSError as error:
        print("nothing", flush=True)
"""


class FloatingCloud(Cloud):
    """The network host, two guests, and the outside in a namespace of its own."""

    def __init__(self, state) -> None:
        self.outside = Namespace(f"nova-out-{os.getpid()}")
        self.second = Namespace(f"nova-guest2-{os.getpid()}")
        super().__init__(state)

    def _wire(self) -> None:
        self.host("ip", "link", "add", "out0", "type", "veth", "peer", "name", "eth0", "netns", self.outside.name)
        self.host("ip", "addr", "add", f"{HOST}/24", "dev", "out0")
        self.host("ip", "link", "set", "out0", "up")
        self.outside("ip", "addr", "add", f"{OUTSIDE}/24", "dev", "eth0")
        self.outside("ip", "link", "set", "eth0", "up")
        for number, (place, address) in enumerate(((self.guest, FIXED), (self.second, OTHER)), 1):
            self.host("ip", "link", "add", f"tap{number}", "type", "veth", "peer", "name", "eth0", "netns", place.name)
            self.host("ip", "link", "set", f"tap{number}", "up")
            place("ip", "addr", "add", f"{address}/24", "dev", "eth0")
            place("ip", "link", "set", "eth0", "up")

    def plug(self) -> None:
        for number in (1, 2):
            self.host("ip", "link", "set", f"tap{number}", "master", "br1")
        # with br_netfilter, what a guest sends to its own floating address is bridged back where it came from
        self.host(sys.executable, "-c", "from nova.privileged import links; links.ensure_guest_ports(['tap1', 'tap2'])")
        for place, name in ((self.guest, "one"), (self.second, "two"), (self.outside, "out")):
            if place is not self.outside:
                place("ip", "route", "replace", "default", "via", "10.0.1.1")
            place.start(sys.executable, "-c", ECHO.replace("{NAME}", name), stderr=subprocess.DEVNULL)
            eventually(lambda place=place: ":7000" in place("ss", "-ltn"), "it listens")

    def floats(self, version: int, **addresses: str) -> str:
        """Serve these: floating address (dots as underscores, and f in front) -> fixed one."""
        floating = tuple(FloatingOnHost(address=name[1:].replace("_", "."), fixed_address=fixed)
                         for name, fixed in addresses.items())
        self.say(NetworkOnHost(network=network(1), addresses=(guest(3), guest(4)), floating=floating, version=version))
        self.tell()
        return self.daemon.stdout.readline().strip()

    def ask(self, place: Namespace, address: str) -> str:
        """Who answers there, and whom it thinks it answers; empty for nobody."""
        code = ("import socket, sys\nc = socket.create_connection((sys.argv[1], 7000), 1.5)\nc.settimeout(1.5)\n"
                "c.sendall(b'x\\n')\nprint(c.recv(100).decode().strip())")
        done = subprocess.run(["ip", "netns", "exec", place.name, sys.executable, "-c", code, address],
                              capture_output=True, text=True, timeout=20)
        return done.stdout.strip()

    def standing(self) -> list[str]:
        shown = json.loads(self.host("ip", "-j", "-4", "addr", "show", "dev", "out0"))
        return [f"{one['local']}/{one['prefixlen']}" for one in shown[0]["addr_info"]]

    def remove(self) -> None:
        super().remove()
        self.outside.remove()
        self.second.remove()


@pytest.fixture(params=[pytest.param("eventlet", marks=pytest.mark.long), "threads"])
def cloud(tmp_path, request, monkeypatch) -> Iterator[FloatingCloud]:
    monkeypatch.setenv("NOVA_CONCURRENCY", request.param)
    made = FloatingCloud(tmp_path)
    try:
        made.order(guest(3), guest(4), version=1)
        made.start()
        assert made.serve(guest(3), guest(4), version=1) == "ok", made.log()
        made.plug()
        yield made
    finally:
        made.remove()


F, S = "f" + FLOATING.replace(".", "_"), "f" + SECOND.replace(".", "_")


class Talk:
    """One connection that goes on."""

    def __init__(self, place: Namespace, address: str, code: str = TALK) -> None:
        self.process = place.start(sys.executable, "-u", "-c", code, address, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self) -> str:
        self.process.stdin.write("x\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def test_guest_is_reached_and_seen_by_its_floating_address(cloud):
    assert cloud.ask(cloud.outside, FLOATING) == ""
    assert cloud.floats(2, **{F: FIXED}) == "ok", cloud.log()
    assert cloud.standing() == [f"{HOST}/24", f"{FLOATING}/32"]
    assert cloud.ask(cloud.outside, FLOATING) == f"one {OUTSIDE}"
    assert cloud.ask(cloud.host, FLOATING).startswith("one "), "from the host itself"
    assert cloud.ask(cloud.guest, OUTSIDE) == f"out {FLOATING}", "it is seen by it"
    assert cloud.ask(cloud.second, OUTSIDE) == f"out {HOST}", "one without is seen by the host's"
    assert cloud.ask(cloud.second, FLOATING).startswith("one "), "from another guest"
    assert cloud.ask(cloud.guest, FLOATING) == f"one {FLOATING}", "from itself"
    order = NetworkOnHost(network=network(1), floating=(FloatingOnHost(address=FLOATING, fixed_address=FIXED),))
    assert cloud.missing(order) == [], "what iptables-save prints is what we wrote"


def test_established_connections_end_with_the_address(cloud):
    assert cloud.floats(2, **{F: FIXED}) == "ok", cloud.log()
    incoming, outgoing = Talk(cloud.outside, FLOATING), Talk(cloud.guest, OUTSIDE)
    try:
        assert (incoming.ask(), outgoing.ask()) == (f"one {OUTSIDE}", f"out {FLOATING}")
        assert cloud.floats(3) == "ok", cloud.log()
        assert incoming.ask() in ("nothing", "closed")
        assert outgoing.ask() in ("nothing", "closed")
    finally:
        incoming.end()
        outgoing.end()
    assert cloud.standing() == [f"{HOST}/24"]
    assert cloud.ask(cloud.outside, FLOATING) == ""
    assert f"{FLOATING}/32" not in cloud.rules()
    assert [line for line in cloud.host("conntrack", "-L").splitlines() if FLOATING in line and FIXED in line] == []


def test_what_asked_for_the_address_before_it_was_there_is_answered_when_it_is(cloud):
    """One flow that goes on, as a ping does: the kernel must not remember that it was translated to nothing."""
    code = ("import socket\nc = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nc.bind(('0.0.0.0', 7001))\n"
            "while True:\n data, peer = c.recvfrom(100)\n c.sendto(data, peer)\n")
    cloud.guest.start(sys.executable, "-c", code, stderr=subprocess.DEVNULL)
    cloud.outside("ip", "route", "add", f"{FLOATING}/32", "via", HOST)
    asks = ("import socket, sys\nc = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nc.bind(('0.0.0.0', 7002))\n"
            "c.settimeout(0.5)\nfor line in sys.stdin:\n c.sendto(b'x', (sys.argv[1], 7001))\n"
            " try: print(c.recv(10).decode(), flush=True)\n except OSError: print('nothing', flush=True)\n")
    flow = Talk(cloud.outside, FLOATING, asks)
    try:
        assert [flow.ask() for _ in range(3)] == ["nothing"] * 3
        assert cloud.floats(2, **{F: FIXED}) == "ok", cloud.log()
        assert flow.ask() == "x"
    finally:
        flow.end()


def test_address_that_moves_reaches_the_other_guest_at_once(cloud):
    assert cloud.floats(2, **{F: FIXED, S: OTHER}) == "ok", cloud.log()
    talk = Talk(cloud.outside, FLOATING)
    try:
        assert talk.ask() == f"one {OUTSIDE}"
        assert cloud.floats(3, **{F: OTHER}) == "ok", cloud.log()
        assert cloud.ask(cloud.outside, FLOATING) == f"two {OUTSIDE}"
        assert talk.ask() in ("nothing", "closed"), "the former guest hears nothing more"
    finally:
        talk.end()
    assert cloud.ask(cloud.outside, SECOND) == "" and cloud.standing() == [f"{HOST}/24", f"{FLOATING}/32"]


def test_restart_leaves_translation_as_it_is_and_a_killed_daemon_finds_what_is_ours(cloud):
    assert cloud.floats(2, **{F: FIXED}) == "ok", cloud.log()
    talk = Talk(cloud.outside, FLOATING)
    try:
        assert talk.ask() == f"one {OUTSIDE}"
        before = (cloud.rules(), cloud.host("ip", "-4", "-o", "addr"))
        cloud.kill()
        assert talk.ask() == f"one {OUTSIDE}", "without the daemon"
        cloud.start()
        assert cloud.floats(2, **{F: FIXED}) == "ok", cloud.log()
        assert (cloud.rules(), cloud.host("ip", "-4", "-o", "addr")) == before
        assert talk.ask() == f"one {OUTSIDE}"
    finally:
        talk.end()
    cloud.kill()
    order = NetworkOnHost(network=network(1), addresses=(guest(3), guest(4)), version=3)
    cloud.say(order)
    cloud.start()
    eventually(lambda: cloud.standing() == [f"{HOST}/24"], "what an earlier run put up is gone")
    assert FLOATING not in cloud.rules()


@pytest.mark.parametrize("delay_ms", sampling.drawn([0, 40, 10, 120], 2, every=5))
def test_killed_while_it_changes_addresses_it_converges(cloud, delay_ms):
    assert cloud.floats(2, **{F: FIXED}) == "ok", cloud.log()
    order = NetworkOnHost(network=network(1), addresses=(guest(3), guest(4)), version=3,
                          floating=(FloatingOnHost(address=SECOND, fixed_address=FIXED),))
    cloud.say(order)
    cloud.tell()
    time.sleep(delay_ms / 1000)
    cloud.kill()
    cloud.start()
    eventually(lambda: cloud.standing() == [f"{HOST}/24", f"{SECOND}/32"], "the addresses are right")
    eventually(lambda: cloud.ask(cloud.outside, SECOND) == f"one {OUTSIDE}", "it is reached")
    assert cloud.ask(cloud.outside, FLOATING) == ""


def test_interface_that_is_missing_is_said_and_the_others_are_served(cloud):
    floating = (FloatingOnHost(address=FLOATING, fixed_address=FIXED, interface="nothere0"),
                FloatingOnHost(address=SECOND, fixed_address=OTHER))
    order = NetworkOnHost(network=network(1), addresses=(guest(3), guest(4)), floating=floating, version=2)
    cloud.say(order)
    cloud.tell()
    assert cloud.daemon.stdout.readline().strip() == "ok"
    assert cloud.ask(cloud.outside, SECOND) == f"two {OUTSIDE}"
    assert f"{FLOATING} cannot be added to nothere0" in cloud.log()


def test_addresses_of_others_on_the_device_stay(cloud):
    cloud.host("ip", "addr", "add", f"{FLOATING}/32", "dev", "out0")
    assert cloud.floats(2, **{F: FIXED}) == "ok"
    assert cloud.floats(3) == "ok"
    assert cloud.standing() == [f"{HOST}/24", f"{FLOATING}/32"]
