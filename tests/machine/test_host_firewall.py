"""The compute host's packet filter on a real kernel: a bridge, and guests that are namespaces on veths named taps."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.compute.filter.host_filter import PacketFilters
from nova.compute.filter.packet_rules import RuleOptions
from nova.model.network.security_groups import AllowedTraffic, GuardedInterface, GuestFirewall, HostFirewall
from nova.privileged.runner import Completed, SystemRunner

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = ("ip", "iptables-restore", "ip6tables-restore", "ebtables-restore")
PORT = 8080
MARK = b"nova-test-frame!"
EVERYBODY = "ff:ff:ff:ff:ff:ff"
MACS = {1: "fa:16:3e:00:00:01", 2: "fa:16:3e:00:00:02"}
STRANGE = "fa:16:3e:66:66:66"
TIMEOUT_S = 10.0


def _obstacle() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    path = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    missing = [program for program in PROGRAMS if not shutil.which(program, path=path)]
    if missing:
        return f"needs {', '.join(missing)} (Debian: iproute2 iptables)"
    probe = subprocess.run(["unshare", "-n", "sh", "-c", "ip link add br0 type bridge && ebtables-save && "
                            "test -e /proc/sys/net/bridge/bridge-nf-call-iptables"], capture_output=True)
    return None if probe.returncode == 0 else "this kernel has no bridges that call iptables"


pytestmark = [pytest.mark.in_turn(9, 10),
              pytest.mark.skipif(_obstacle() is not None, reason=str(_obstacle()))]


def run(*argv: str, stdin: str | None = None) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, input=stdin, cwd=CHECKOUT,
                          env={**os.environ, "PYTHONPATH": str(CHECKOUT)})
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


class Namespace:
    def __init__(self, name: str) -> None:
        self.name = name
        run("ip", "netns", "add", name)
        self("ip", "link", "set", "lo", "up")

    def __call__(self, *argv: str, stdin: str | None = None) -> str:
        return run("ip", "netns", "exec", self.name, *argv, stdin=stdin)

    def frames(self, *argv: str) -> Background:
        return Background(["ip", "netns", "exec", self.name, sys.executable, "-m", "tests.machine.guest_frames", *argv])

    def remove(self) -> None:
        run("ip", "netns", "del", self.name)


class Background:
    """A program that says something, line by line."""

    def __init__(self, argv: list[str]) -> None:
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT,
                                        env={**os.environ, "PYTHONPATH": str(CHECKOUT)})
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.append(line.strip())

    def wait_for(self, count: int) -> None:
        """So many more lines."""
        goal, end = len(self.lines) + count, time.monotonic() + TIMEOUT_S
        while len(self.lines) < goal:
            assert time.monotonic() < end, self.lines
            time.sleep(0.01)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        if self.process.stdout:
            self.process.stdout.close()


class InNamespace(SystemRunner):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def run(self, argv, **more) -> Completed:  # type: ignore[no-untyped-def]
        return super().run(["ip", "netns", "exec", self._name, *argv], **more)


class Cloud:
    """A host with a bridge, and two guests."""

    def __init__(self, folder: Path) -> None:
        word = f"nf{os.getpid()}"
        self.host, self.folder, self._background = Namespace(f"{word}h"), folder, contextlib.ExitStack()
        self.filters = PacketFilters(InNamespace(self.host.name), folder, RuleOptions(same_net=False),
                                     switches=folder / "none")
        self.host("sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1")
        self.host("ip", "link", "add", "br100", "type", "bridge", "forward_delay", "0")
        self.host("ip", "link", "set", "br100", "up")
        self.guests = {number: self._guest(f"{word}g{number}", number) for number in MACS}

    def _guest(self, name: str, number: int) -> Namespace:
        guest = Namespace(name)
        run("ip", "link", "add", f"tap{number}", "netns", self.host.name, "type", "veth", "peer", "name", "eth0",
            "address", MACS[number], "netns", name)
        self.host("ip", "link", "set", f"tap{number}", "master", "br100", "up")
        guest("ip", "address", "add", f"10.0.0.{number}/24", "dev", "eth0")
        guest("ip", "link", "set", "eth0", "up")
        return guest

    def start(self, number: int, *argv: str) -> Background:
        made = self.guests[number].frames(*argv)
        self._background.callback(made.end)
        return made

    def close(self) -> None:
        self._background.close()
        for namespace in (*self.guests.values(), self.host):
            namespace.remove()

    def rules(self) -> str:
        texts = [self.host(f"{program}-save") for program in ("iptables", "ip6tables", "ebtables")]
        return "\n".join(line for text in texts for line in text.splitlines() if not line.startswith("#"))


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    made = Cloud(tmp_path)
    yield made
    made.close()


def guest(number: int, *allowed: AllowedTraffic) -> GuestFirewall:
    card = GuardedInterface(mac=MACS.get(number, f"fa:16:3e:00:00:{number:02x}"), device=f"tap{number}",
                            bridge="br100", addresses=(f"10.0.0.{number}",), ranges=("10.0.0.0/24",))
    return GuestFirewall(server_uuid=f"u{number}", id=number, instance_name=f"i{number}", interfaces=(card,),
                         allowed=allowed)


def state(*guests: GuestFirewall) -> HostFirewall:
    return HostFirewall(host="a", guests=guests)


WEB = AllowedTraffic(protocol="tcp", from_port=PORT, to_port=PORT, cidr="10.0.0.2/32")
CLOSED, OPEN = state(guest(1), guest(2)), state(guest(1, WEB), guest(2))


def test_connections_when_a_rule_is_opened_and_closed_then_they_follow_and_no_change_lets_one_through(cloud):
    cloud.filters.apply(CLOSED)
    cloud.start(1, "serve", str(PORT))
    tries = cloud.start(2, "try", "10.0.0.1", str(PORT))

    def others(of: HostFirewall) -> None:
        """Other guests come and go beside it."""
        for number in (30, 31, 32):
            cloud.filters.apply(msgspec.structs.replace(of, guests=(*of.guests, guest(number, WEB))))
        cloud.filters.apply(of)
    tries.wait_for(2)
    others(CLOSED)
    tries.wait_for(2)
    assert set(tries.lines) == {"no"}
    cloud.filters.apply(OPEN)
    tries.wait_for(3)
    mark = len(tries.lines)
    others(OPEN)
    tries.wait_for(5)
    assert set(tries.lines[mark:]) == {"yes"}
    cloud.filters.apply(CLOSED)
    tries.wait_for(1)  # one that was under way
    mark = len(tries.lines)
    others(CLOSED)
    tries.wait_for(2)
    assert set(tries.lines[mark:]) == {"no"}


#: Of one connection: talks all the time, and answers what it is asked.
TALK = """
import socket, sys, threading, time
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
connection, _peer = listener.accept()
def talk():
    while True:
        connection.sendall(b".")
        time.sleep(0.02)
threading.Thread(target=talk, daemon=True).start()
while connection.recv(1):
    connection.sendall(b"!")
"""
#: Asks each time it is told to, and says whether an answer comes.
ASK = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
connection.settimeout(0.1)
def answered():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            if b"!" in connection.recv(1000):
                return "yes"
        except TimeoutError:
            pass
    return "no"
for line in sys.stdin:
    connection.sendall(b"x")
    print(answered(), flush=True)
"""


@pytest.mark.skipif(not shutil.which("conntrack", path="/usr/sbin:/sbin"), reason="needs Debian's conntrack")
@pytest.mark.parametrize("seen", [True, False])
def test_connection_when_its_rule_is_closed_then_it_carries_nothing_and_another_s_goes_on(cloud, seen):
    """``seen``: by the very process that opened it. However much the guest says, nothing comes in."""
    other = AllowedTraffic(protocol="tcp", from_port=PORT + 1, to_port=PORT + 1, cidr="10.0.0.2/32")
    cloud.filters.apply(state(guest(1, WEB, other), guest(2)))
    with contextlib.ExitStack() as stack:
        asking = [_talk_with(cloud, port, stack) for port in (PORT, PORT + 1)]
        assert [_asked(one) for one in asking] == ["yes", "yes"]
        filters = cloud.filters if seen else PacketFilters(
            InNamespace(cloud.host.name), cloud.folder, RuleOptions(same_net=False), switches=cloud.folder / "none")
        filters.apply(state(guest(1, other), guest(2)))
        assert [_asked(one) for one in asking] == ["no", "yes"]
        assert [_asked(one) for one in asking] == ["no", "yes"]


def _talk_with(cloud: Cloud, port: int, stack: contextlib.ExitStack) -> subprocess.Popen[str]:
    """Of guest 2's, with guest 1."""
    talks = subprocess.Popen(["ip", "netns", "exec", cloud.guests[1].name, sys.executable, "-c", TALK, str(port)],
                             stdout=subprocess.PIPE, text=True)
    stack.callback(_end, talks)
    assert talks.stdout is not None and talks.stdout.readline() == "ready\n"
    asks = subprocess.Popen(["ip", "netns", "exec", cloud.guests[2].name, sys.executable, "-c", ASK, "10.0.0.1",
                             str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.callback(_end, asks)
    return asks


def _asked(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


# -- frames

def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def frame(kind: int, payload: bytes, source: str = MACS[1], destination: str = EVERYBODY) -> bytes:
    return mac(destination) + mac(source) + struct.pack("!H", kind) + payload


def arp(sender_mac: str, sender: str, source: str = MACS[1], target: str = "10.0.0.2") -> bytes:
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + mac(sender_mac) + ipaddress.ip_address(sender).packed + \
        b"\0" * 6 + ipaddress.ip_address(target).packed
    return frame(0x0806, body + MARK, source)


def udp(source_ip: str, first: int, last: int, source: str = MACS[1], destination: str = "255.255.255.255") -> bytes:
    body = struct.pack("!HHHH", first, last, 8 + len(MARK), 0) + MARK
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 17, 0) + \
        ipaddress.ip_address(source_ip).packed + ipaddress.ip_address(destination).packed
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + header[12:]
    return frame(0x0800, header + body, source)


def icmp6(source_ip: str, kind: int, source: str = MACS[1]) -> bytes:
    body = struct.pack("!BBHI", kind, 0, 0, 0) + MARK
    header = struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + ipaddress.ip_address(source_ip).packed + \
        ipaddress.ip_address("ff02::1").packed
    return frame(0x86DD, header + body, source, "33:33:00:00:00:01")


def tagged(inner: bytes) -> bytes:
    return inner[:12] + struct.pack("!HH", 0x8100, 7) + inner[12:]


def untagged(frame_: bytes) -> bytes:
    """As a listener sees it."""
    return frame_[:12] + frame_[16:] if frame_[12:14] == b"\x81\x00" else frame_


OWN = {"arp": arp(MACS[1], "10.0.0.1"), "dhcp request": udp("0.0.0.0", 68, 67), "udp": udp("10.0.0.1", 99, 99),
       "neighbours": icmp6("fe80::f816:3eff:fe00:1", 135), "announcement": frame(0x8035, MARK)}
SPOOFED = {
    "mac": udp("10.0.0.1", 99, 99, source=STRANGE),
    "ip": udp("10.0.0.77", 99, 99),
    "no address, no dhcp": udp("0.0.0.0", 99, 99),
    "arp for another address": arp(MACS[1], "10.0.0.77"),
    "arp for another mac": arp(STRANGE, "10.0.0.1"),
    "arp from another mac": arp(STRANGE, "10.0.0.1", source=STRANGE),
    "dhcp reply": udp("10.0.0.1", 67, 68),
    "router advertisement": icmp6("fe80::f816:3eff:fe00:1", 134),
    "ipv6 of another": icmp6("fe80::1", 135),
    "tagged": tagged(udp("10.0.0.78", 99, 99)),
    "unknown protocol": frame(0x88B5, MARK),
}


def arrived(cloud: Cloud, frames: dict[str, bytes]) -> set[str]:
    """Which of guest 1's frames guest 2 sees. An own one at the end says that all have had their time."""
    seen = cloud.start(2, "listen", "eth0")
    last = udp("10.0.0.1", 1, 1)
    sent = {**frames, "last": last}
    cloud.guests[1](sys.executable, "-m", "tests.machine.guest_frames", "send", "eth0",
                    *[one.hex() for one in sent.values()])
    end = time.monotonic() + TIMEOUT_S
    while not any(line.startswith(last.hex()) for line in seen.lines):
        assert time.monotonic() < end, "the last frame did not arrive"
        time.sleep(0.01)
    return {name for name, one in frames.items() if any(line.startswith(untagged(one).hex()) for line in seen.lines)}


def test_frames_when_they_are_the_guest_s_own_then_they_pass_and_spoofed_ones_do_not(cloud):
    udp_in = AllowedTraffic(protocol="udp", from_port=1, to_port=65535, cidr="0.0.0.0/0")
    cloud.filters.apply(state(guest(1), guest(2, udp_in)))
    assert arrived(cloud, {**OWN, **SPOOFED}) == set(OWN)


def test_frames_when_a_port_gives_frames_back_then_what_the_guest_says_to_all_does_not_come_back(cloud):
    turn_on = "from nova.privileged import links; print(links.ensure_guest_ports(['tap1', 'tap9']))"
    assert [cloud.host(sys.executable, "-c", turn_on).strip() for _ in range(2)] == ["('tap1',)", "()"]

    def echoes() -> int:
        seen = cloud.start(1, "listen", "eth0")
        arrived(cloud, OWN)
        return len([line for line in seen.lines if any(line.startswith(one.hex()) for one in OWN.values())])
    assert echoes() == len(OWN)
    cloud.filters.apply(state(guest(1), guest(2, AllowedTraffic(protocol="udp", cidr="0.0.0.0/0"))))
    assert echoes() == 0


def test_frames_when_nothing_is_filtered_then_all_arrive(cloud):
    assert arrived(cloud, {**OWN, **SPOOFED}) == set(OWN) | set(SPOOFED)


# -- the rules as a whole

def test_rules_when_a_restore_is_refused_then_nothing_changed(cloud):
    cloud.filters.apply(OPEN)
    before = cloud.rules()
    wrong = AllowedTraffic(protocol="tcp", from_port=70000, to_port=70000, cidr="10.0.0.2/32")
    with pytest.raises(errors.host.CommandFailed):
        cloud.filters.apply(state(guest(1, wrong), guest(2)))
    assert cloud.rules() == before


def test_rules_when_they_are_there_then_applying_again_writes_nothing(cloud):
    assert cloud.filters.apply(OPEN)
    before = cloud.rules()
    assert not cloud.filters.apply(OPEN) and cloud.rules() == before
    cloud.host("iptables", "-F", "nova-compute-inst-1")
    cloud.host("ebtables", "-t", "nat", "-F", "nova-compute-tap1")
    assert cloud.filters.apply(OPEN) and cloud.rules() == before


def test_rules_when_guests_are_gone_then_nothing_of_theirs_is_left(cloud):
    cloud.filters.apply(OPEN)
    cloud.filters.apply(state())
    assert "inst-" not in cloud.rules() and "tap" not in cloud.rules().replace("nova-compute-taps", "")


def test_rules_when_others_filter_from_now_on_then_nothing_of_ours_is_left_and_all_pass(cloud):
    own = "-A FORWARD -s 10.9.9.9/32 -j DROP"
    cloud.host("iptables", *own.split())
    cloud.filters.apply(CLOSED)
    later = PacketFilters(InNamespace(cloud.host.name), cloud.folder, RuleOptions(), switches=cloud.folder / "none")
    assert later.withdraw() and not later.withdraw()
    assert "nova-compute" not in cloud.rules() and own in cloud.rules()
    assert arrived(cloud, {**OWN, **SPOOFED}) == set(OWN) | set(SPOOFED)
    assert later.apply(CLOSED) and arrived(cloud, {"mac": SPOOFED["mac"]}) == set()


def test_switch_when_bridges_do_not_ask_iptables_then_it_is_turned_on(cloud):
    name = "bridge-nf-call-iptables"
    cloud.host("sysctl", "-qw", f"net.bridge.{name}=0")
    said = cloud.host(sys.executable, "-m", "tests.machine.host_filter_process", str(cloud.folder),
                      stdin=msgspec.json.encode(CLOSED).decode())
    assert said == "True\n" and cloud.host("cat", f"/proc/sys/net/bridge/{name}") == "1\n"
