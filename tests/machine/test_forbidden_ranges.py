"""Guests and the networks of hosts, on a real kernel: what a guest sends there ends at its own host and at the network
host, and all else goes on. Guests, hosts and the outside are namespaces."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import msgspec
import pytest

from nova.model.network.forbidden_ranges import RangeSetting
from nova.model.network.security_groups import AllowedTraffic, HostFirewall
from nova.privileged.forbidding import Forbidding
from tests.fakes.network import guest
from tests.machine import test_host_firewall as compute
from tests.machine.network_cases import CHECKOUT, Cloud, Namespace, eventually, obstacle

_WHY = obstacle() or compute._obstacle()
pytestmark = [pytest.mark.in_turn(8, 10), pytest.mark.skipif(_WHY is not None, reason=str(_WHY))]

PORT = 8080
OWN = RangeSetting()  # what the host works out by itself
OUTSIDE, OUTSIDE_6 = "198.51.100.1", "2001:db8:9::1"


def answers(ask: Callable[..., str], address: str, timeout_s: int = 10) -> bool:
    """Whether a server answers there, asked from a namespace."""
    with contextlib.suppress(AssertionError):
        ask("curl", "-s", "-m", str(timeout_s), f"http://{address}:{PORT}/")
        return True
    return False


def silent(ask: Callable[..., str], address: str) -> bool:
    """That nobody answers need not be waited for so long: elsewhere the same server is heard."""
    return not answers(ask, address, timeout_s=1)


def serves(place: Namespace) -> None:
    """On all of its addresses, of both versions, until the namespace ends."""
    place.start(sys.executable, "-m", "http.server", str(PORT), "--bind", "::", "--directory", "/proc/self/fdinfo",
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    eventually(lambda: f":{PORT}" in place("ss", "-ltn"), "it listens")


def addressed(place: Callable[..., str], device: str, *addresses: str) -> None:
    if device not in place("ip", "-o", "link"):
        place("ip", "link", "add", device, "type", "bridge")  # kernels without dummy devices have these
    for address in addresses:
        place("ip", "address", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
    place("ip", "link", "set", device, "up")


# -- the network host

class NetworkHostCloud(Cloud):
    """The host's management wire is its way out, too: another host stands there, and beyond it is the outside."""

    def __init__(self, state, **settings: object) -> None:
        super().__init__(state, f"fr{len(settings)}", **{"guest_forbidden_ranges": ["auto"], **settings})
        self.other = self.outside()
        addressed(self.other, "beyond", f"{OUTSIDE}/32")
        self.host("ip", "route", "add", "default", "via", "192.0.2.200")
        self.other("ip", "route", "add", "10.0.1.0/24", "via", "192.0.2.9")
        self.host.respond("192.0.2.9", 8775)
        for place in (self.host, self.other, self.guest):
            serves(place)

    def remove(self) -> None:
        self.other.remove()
        super().remove()


@pytest.fixture
def made(tmp_path) -> Iterator[Callable[..., NetworkHostCloud]]:
    with contextlib.ExitStack() as stack:
        def make(**settings: object) -> NetworkHostCloud:
            cloud = NetworkHostCloud(tmp_path, **settings)
            stack.callback(cloud.remove)
            cloud.order(guest(3), version=1)
            cloud.start()
            assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
            cloud.plug()
            assert cloud.lease()["ip"] == "10.0.1.3", "DHCP"
            return cloud
        yield make


def test_network_host_when_a_guest_calls_other_hosts_then_nobody_answers_and_all_else_works(made):
    cloud = made()
    assert silent(cloud.guest, "192.0.2.200"), "another host's management address"
    assert silent(cloud.guest, "192.0.2.9"), "the network host's own"
    assert answers(cloud.host, "192.0.2.200"), "the host itself gets there"
    assert cloud.get("http://169.254.169.254/latest/") == "10.0.1.3", "metadata, on the same address"
    assert answers(cloud.guest, OUTSIDE)
    assert answers(cloud.other, "10.0.1.3"), "what came in from there is answered"
    before = cloud.rules()
    assert cloud.serve(guest(3), version=2) == "ok" and cloud.rules() == before, "as iptables-save prints it"


@pytest.mark.parametrize("settings", [{"guest_forbidden_ranges": ["none"]}, {"dmz_cidr": ["192.0.2.200/32"]},
                                      {"guest_forbidden_ranges": ["172.16.0.0/12"]}])
def test_network_host_when_the_operator_opens_it_then_guests_reach_other_hosts(made, settings):
    cloud = made(**settings)
    assert answers(cloud.guest, "192.0.2.200")


def test_network_host_when_metadata_is_on_another_host_then_only_by_its_own_address(made):
    cloud = made(metadata_host="192.0.2.200", metadata_port=PORT)
    eventually(lambda: cloud.guest("curl", "-s", "-m", "10", "http://169.254.169.254/") != "", "metadata")
    assert silent(cloud.guest, "192.0.2.200"), "not as that host's service"


def test_network_host_when_a_floating_address_is_on_another_host_then_guests_reach_it(made):
    cloud = made()
    addressed(cloud.other, "beyond", "192.0.2.90/32", "192.0.2.91/32")
    for address in ("192.0.2.90", "192.0.2.91"):
        assert answers(cloud.host, address)
    assert answers(cloud.guest, "192.0.2.90") and silent(cloud.guest, "192.0.2.91")


@pytest.mark.skipif(not shutil.which("radvd", path="/usr/sbin:/sbin"), reason="needs radvd")
def test_network_host_when_a_guest_calls_other_hosts_by_ipv6_then_nobody_answers_and_the_outside_does(made):
    cloud = made(use_ipv6=True)
    addressed(cloud.host, "out0", "fd12::9/64")
    addressed(cloud.other, "out1", "fd12::200/64")
    addressed(cloud.other, "beyond", f"{OUTSIDE_6}/128")
    cloud.host("ip", "route", "add", "default", "via", "fd12::200")
    cloud.other("ip", "route", "add", "fd20::/64", "via", "fd12::9")
    served = {"version": 2, "cidr_v6": "fd20::/64", "gateway_v6": "fd20::1"}
    assert cloud.serve(guest(3), **served) == "ok", cloud.log()
    addressed(cloud.guest, "eth0", "fd20::3/64")
    cloud.guest("ip", "-6", "route", "replace", "default", "via", "fd20::1")
    eventually(lambda: answers(cloud.guest, f"[{OUTSIDE_6}]"), "the outside")
    assert silent(cloud.guest, "[fd12::200]") and silent(cloud.guest, "[fd12::9]")
    assert answers(cloud.host, "[fd12::200]") and answers(cloud.other, "[fd20::3]")


# -- the compute host

class ComputeCloud(compute.Cloud):
    """A bridge that nobody of ours made, two guests, and on the guests' wire a router that is another host, too. This
    host has its own address on the bridge, as an operator's one-wire host may."""

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.other = Namespace(f"nf{os.getpid()}o")
        self.host("ip", "link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", self.other.name)
        self.host("ip", "link", "set", "eth1", "master", "br100", "up")
        self.host("sysctl", "-qw", "net.bridge.bridge-nf-call-ip6tables=1")
        addressed(self.host, "eth0", "10.200.0.11/24", "fd12::11/64")
        addressed(self.host, "br100", "10.0.0.77/24", "fd00::77/64")
        addressed(self.other, "eth1", "10.0.0.254/24", "fd00::254/64")
        addressed(self.other, "eth0", "10.200.0.12/24", "fd12::12/64")
        addressed(self.other, "beyond", f"{OUTSIDE}/32", f"{OUTSIDE_6}/128")
        for number, place in self.guests.items():
            addressed(place, "eth0", f"fd00::{number}/64")
            for to, via in (("default", "254"), ("{}11", "77")):
                place("ip", "route", "add", to.format("10.200.0."), "via", f"10.0.0.{via}")
                place("ip", "-6", "route", "add", to.format("fd12::"), "via", f"fd00::{via}")
        self.servers = [self._serves(place.name) for place in (*self.guests.values(), self.other, self.host)]

    def _serves(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["ip", "netns", "exec", name, sys.executable, "-m", "http.server", str(PORT), "--bind",
                                 "::", "--directory", "/proc/self/fdinfo"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def found(self) -> tuple[str, ...]:
        """Networks of this host, as nova-compute in it would find them."""
        code = "from nova.privileged import host_networks; print(*host_networks.networks())"
        return tuple(compute.run("ip", "netns", "exec", self.host.name, sys.executable, "-c", code).split())

    def forbid(self, guests: tuple[str, ...] = ("10.0.0.0/24", "fd00::/64"), setting: RangeSetting = OWN) -> None:
        self.filters.forbids = Forbidding(setting, (), lambda: guests, self.found).now

    def close(self) -> None:
        for process in self.servers:
            process.kill()
            process.wait()
        self.other.remove()
        super().close()


@pytest.fixture
def cloud(tmp_path) -> Iterator[ComputeCloud]:
    made = ComputeCloud(tmp_path)
    for place in (made.host, made.other, *made.guests.values()):
        eventually(lambda place=place: f":{PORT}" in place("ss", "-ltn"), "it listens")
    yield made
    made.close()


def _state() -> HostFirewall:
    """Both guests serve everybody."""
    allowed = tuple(AllowedTraffic(protocol="tcp", from_port=PORT, to_port=PORT, cidr=cidr)
                    for cidr in ("0.0.0.0/0", "::/0"))
    guests = []
    for number in compute.MACS:
        one = compute.guest(number, *allowed)
        card = msgspec.structs.replace(one.interfaces[0], addresses=(f"10.0.0.{number}", f"fd00::{number}"))
        guests.append(msgspec.structs.replace(one, interfaces=(card,)))
    return compute.state(*guests)


#: Where a guest gets an answer, by who answers: (IPv4, IPv6).
OPEN = {"another guest": ("10.0.0.1", "[fd00::1]"), "its router": ("10.0.0.254", "[fd00::254]"),
        "the outside": (OUTSIDE, f"[{OUTSIDE_6}]")}
CLOSED = {"another host": ("10.200.0.12", "[fd12::12]"), "its own host": ("10.200.0.11", "[fd12::11]")}


@pytest.mark.parametrize("version", [4, 6])
def test_compute_host_when_a_guest_calls_hosts_then_nobody_answers_and_all_else_works(cloud, version):
    pick = 0 if version == 4 else 1
    asker = cloud.guests[2]
    cloud.filters.apply(_state())
    assert [name for name, to in {**OPEN, **CLOSED}.items() if not answers(asker, to[pick])] == []
    cloud.forbid()
    cloud.filters.apply(_state())
    assert [name for name, to in OPEN.items() if not answers(asker, to[pick])] == []
    assert [name for name, to in CLOSED.items() if not silent(asker, to[pick])] == []
    source = ("10.200.0.12", "fd12::12")[pick]
    cloud.other("curl", "-s", "-m", "10", "--interface", source, f"http://{('10.0.0.2', '[fd00::2]')[pick]}:{PORT}/")
    assert not cloud.filters.apply(_state()), "what the kernel's tools print is what we wrote"


def test_compute_host_when_its_network_lies_inside_a_forbidden_range_then_the_network_is_open(cloud):
    cloud.forbid(setting=RangeSetting(True, ("10.0.0.0/8",)))
    cloud.filters.apply(_state())
    assert answers(cloud.guests[2], "10.0.0.1") and answers(cloud.guests[2], "10.0.0.254")
    assert silent(cloud.guests[2], "10.200.0.12")


def test_compute_host_when_a_connection_was_there_before_the_rules_then_it_ends(cloud):
    cloud.filters.apply(_state())
    with contextlib.ExitStack() as stack:
        talks = subprocess.Popen(["ip", "netns", "exec", cloud.other.name, sys.executable, "-c", compute.TALK, "8081"],
                                 stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
        stack.callback(compute._end, talks)
        assert talks.stdout is not None and talks.stdout.readline() == "ready\n"
        asks = subprocess.Popen(["ip", "netns", "exec", cloud.guests[2].name, sys.executable, "-c", compute.ASK,
                                 "10.200.0.12", "8081"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(compute._end, asks)
        assert compute._asked(asks) == "yes"
        cloud.forbid()
        cloud.filters.apply(_state())
        assert compute._asked(asks) == "no"
